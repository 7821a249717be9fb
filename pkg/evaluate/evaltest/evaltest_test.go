package evaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const canary = "SHIELD-CANARY-0123456789"

// ask sends the question of an evaluator and returns what comes back, as text: status,
// type and body, or the error. At most 1 MiB is read.
func ask(ctx context.Context, t *testing.T, s *Server, model, more string) string {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"system","content":"VERIFICATION TOKEN: %s\nJudge."},{"role":"user","content":"ls"}]%s}`, model, canary, more)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.BaseURL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	client := http.Client{
		Transport:     s.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return "error " + err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		text = append(text, " error "+err.Error()...)
	}
	return fmt.Sprintf("%d %s %s %s", resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"), text)
}

// inner returns the model's text in a response; "" if there is none.
func inner(response string) string {
	var body struct {
		Choices []struct{ Message struct{ Content string } }
	}
	_, text, _ := strings.Cut(response, "{")
	if json.Unmarshal([]byte("{"+text), &body) != nil || len(body.Choices) == 0 {
		return ""
	}
	return body.Choices[0].Message.Content
}

// TestRoles holds that no two roles have one name, that each but the honest differs on
// the wire from the plain good response, and that the honest all hold a good answer: a
// role that changes nothing would hold the reader to refuse what is right.
func TestRoles(t *testing.T) {
	s := NewServer()
	defer s.Close()
	s.Config.ErrorLog = nil
	s.SetModelBehaviour("plain", func(w http.ResponseWriter, _ *http.Request, r Request) {
		writeBody(w, http.StatusOK, "application/json", fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
	})
	plain := ask(t.Context(), t, s, "plain", "")
	if !strings.Contains(inner(plain), canary) {
		t.Fatalf("the good response is %s", plain)
	}
	names, wants := map[string]bool{}, map[EvaluationOutcome]int{}
	for _, role := range Scenarios() {
		if names[role.Name] {
			t.Errorf("two roles are called %s", role.Name)
		}
		names[role.Name] = true
		wants[role.Want]++
		ctx, cancel := context.WithCancel(t.Context())
		s.OnResponseStall(cancel)
		s.SetModelBehaviour(role.Name, role.Do)
		got := ask(ctx, t, s, role.Name, "")
		cancel()
		if role.Want != OutcomeGoodAnswer && got == plain {
			t.Errorf("%s is the good response", role.Name)
		}
		if role.Want == OutcomeGoodAnswer && (!strings.HasPrefix(got, "200 ") || !strings.Contains(strings.ToUpper(inner(got)), `"DECISION":"ALLOW"`) || !strings.Contains(inner(got), canary)) {
			t.Errorf("%s: %s", role.Name, got)
		}
	}
	if len(names) < 200 || wants[OutcomeGoodAnswer] < 10 || wants[OutcomeServiceUnreachable] < 10 || wants[OutcomeNoAnswer] < 50 || wants[OutcomeWrongCanary] < 5 {
		t.Errorf("%d roles: %v", len(names), wants)
	}
}

// TestModels holds what the models do that a command line names, the first and the
// third time they are asked, and that a model which no one knows is not found.
func TestModels(t *testing.T) {
	t.Parallel()
	s := NewTLSServer()
	defer s.Close()
	known := map[string]bool{}
	for _, name := range ModelNames() {
		known[name] = true
	}
	for _, c := range [...]struct{ model, more, first, third string }{
		{"allow", "", `"decision":"ALLOW","confidence":0.98`, `"decision":"ALLOW"`},
		{"block", "", `"decision":"BLOCK"`, `"decision":"BLOCK"`},
		{"escalate", "", `"decision":"ESCALATE","confidence":0.55`, `"ESCALATE"`},
		{"fenced", "", "```json\n{", "```"},
		{"prose", "", "Here is my verdict", canary},
		{"two-objects", "", `"BLOCK"`, `"ALLOW"`},
		{"canary-elsewhere", "", `"reasoning":"` + canary, `"canary":""`},
		{"leak", "", "the token is " + canary, "token"},
		{"429", "", "429 ", "429 "},
		{"429-once", "", "429 ", `"ALLOW"`},
		{"429-retry-long", "", "429 ", "429 "},
		{"500", "", "500 ", "500 "},
		{"500-twice", "", "500 ", `"ALLOW"`},
		{"400", "", "400 ", "400 "},
		{"401", "", "401 ", "401 "},
		{"redirect", "", "307 ", "307 "},
		{"cut", "", "error", "error"},
		{"huge", "", "200 ", "200 "},
		{"html", "", "text/html", "Sign in"},
		{"content-type", "", canary, canary},
		{"not-json", "", "ALLOW", "ALLOW"},
		{"no-choice", "", `"choices":[]`, `"choices":[]`},
		{"no-schema", `,"response_format":{"type":"json_schema"}`, "400 ", "400 "},
		{"no-schema", `,"response_format":{"type":"json_object"}`, `"ALLOW"`, `"ALLOW"`},
		{"no-format", `,"response_format":{"type":"json_object"}`, "400 ", "400 "},
		{"no-format", "", `"ALLOW"`, `"ALLOW"`},
		{"no-temp", `,"temperature":0`, "400 ", "400 "},
		{"no-temp", "", `"ALLOW"`, `"ALLOW"`},
		{"made-up", "", "404 ", "not found"},
	} {
		if !known[c.model] && c.model != "made-up" {
			t.Errorf("%s is no name", c.model)
		}
		var got [3]string
		for i := range got {
			got[i] = ask(t.Context(), t, s, c.model, c.more)
			got[i] += inner(got[i])
		}
		if !strings.Contains(got[0], c.first) || !strings.Contains(got[2], c.third) {
			t.Errorf("%s: first %.200s, third %.200s", c.model, got[0], got[2])
		}
	}
}

// TestRequests holds what a test may ask about what was asked.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := NewServer()
	defer s.Close()
	ask(t.Context(), t, s, "block", "")
	foreign := ask(t.Context(), t, s, "foreign-canary", "")
	ask(t.Context(), t, s, "block", `,"temperature":0`)
	var got []string
	for _, r := range s.Requests() {
		got = append(got, fmt.Sprint(r.Model, r.SequenceNumber, r.PerModelSequenceNumber, r.User, r.Canary, r.Body["temperature"]))
	}
	want := "block1 1ls" + canary + " <nil>"
	if len(got) != 3 || strings.ReplaceAll(got[0], " ", "") != strings.ReplaceAll(want, " ", "") || !strings.HasPrefix(got[2], "block3 2") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(inner(foreign), canary) {
		t.Errorf("not the canary of the request before: %s", foreign)
	}
	alone := NewServer()
	defer alone.Close()
	if first := ask(t.Context(), t, alone, "foreign-canary", ""); strings.Contains(first, canary) || !strings.Contains(inner(first), "000") {
		t.Errorf("the first request: %s", first)
	}
	resp, err := s.Client().Get(s.BaseURL() + "/chat/completions")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("GET: %v, %v", resp, err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	s.OnResponseStall(cancel)
	s.SetModelBehaviour("stall", StallAfterText("{"))
	if got := ask(ctx, t, s, "stall", ""); !strings.Contains(got, context.Canceled.Error()) || errors.Is(t.Context().Err(), context.Canceled) {
		t.Errorf("a stalled server answers %s", got)
	}
}

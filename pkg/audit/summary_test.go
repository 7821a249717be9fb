package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

func entries(list ...Entry) string {
	var b strings.Builder
	for i := range list {
		e := &list[i]
		e.Kind = EntryKindVerdict
		if e.Time.IsZero() {
			e.Time = time.Date(2026, 1, 2, 3, 4, i%60, 0, time.UTC)
		}
		line, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestSummarize(t *testing.T) {
	asked := []verdict.TierStep{{Tier: 0, JudgeName: "policy", Decision: verdict.Escalate, Rule: "ask"}, {Tier: 3, JudgeName: "person", Decision: verdict.Allow}}
	log := entries(
		Entry{Decision: verdict.Allow, Session: "a", Caller: Caller{ShieldSubcommand: "run"}},
		Entry{Decision: verdict.Block, Rule: "deny", Session: "a", ActionType: "execute_command", Payload: map[string]any{"command": "rm -rf /"}},
		Entry{Decision: verdict.Allow, Tier: 3, AnswerChannel: "web", Trail: asked},
		Entry{Decision: verdict.Block, Tier: 3, AnswerChannel: "web", Trail: asked},
		Entry{Decision: verdict.Escalate, Time: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)},
		Entry{Decision: verdict.Block, Rule: "old", Time: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)},
	) + "no entry\n"
	s, skipped, err := Summarize(strings.NewReader(log), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || skipped != 1 {
		t.Fatal(skipped, err)
	}
	if want := (VerdictCounts{Allowed: 1, Escalated: 1, Blocked: 1, ApprovedByPerson: 1, DeniedByPerson: 1}); s.Total != want {
		t.Errorf("total %+v, want %+v", s.Total, want)
	}
	if got := fmt.Sprint(s.Rules); got != "[{ask {0 0 0 1 1}} { {0 1 0 0 0}} {deny {0 0 1 0 0}}]" {
		t.Errorf("rules %s", got)
	}
	if got := fmt.Sprint(s.Days); got != "[{2026-01-02 {1 0 1 1 1}} {2026-01-03 {0 1 0 0 0}}]" {
		t.Errorf("days %s", got)
	}
	if got := fmt.Sprint(s.Sessions); got != "[{a {1 0 1 0 0}}]" {
		t.Errorf("sessions %s", got)
	}
	if len(s.Stopped) != 3 || s.Stopped[2].Payload != "rm -rf /" || s.Stopped[0].Decision != verdict.Escalate {
		t.Errorf("stopped %+v", s.Stopped)
	}
}

// TestSummaryIsBounded: anyone who can name sessions and rules cannot fill the memory.
func TestSummaryIsBounded(t *testing.T) {
	list := make([]Entry, 3*maxSeparatelyCountedNames)
	for i := range list {
		list[i] = Entry{Decision: verdict.Block, Rule: fmt.Sprint("r", i), Session: fmt.Sprint("s", i), Payload: strings.Repeat("x", 1000)}
	}
	s, _, err := Summarize(strings.NewReader(entries(list...)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rules) > maxSeparatelyCountedNames+1 || len(s.Sessions) > maxSeparatelyCountedNames+1 || len(s.Stopped) != maxListedStoppedActions || len(s.Stopped[0].Payload) > maxShownPayloadChars+8 {
		t.Errorf("%d rules, %d sessions, %d stopped", len(s.Rules), len(s.Sessions), len(s.Stopped))
	}
	if s.Rules[0].Name != OtherCountsName || s.Total.Blocked != len(list) {
		t.Errorf("first %+v of %d", s.Rules[0], s.Total.Blocked)
	}
}

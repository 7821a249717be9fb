package approve

import (
	"errors"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestHostChannel holds that a question is left to a host only where that can ask, that
// no other user is asked then, that it counts as a question, and that it is no approval.
func TestHostChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		host   func() error
		refuse error
		beside bool // another channel is there
		want   verdict.Decision
		says   string
		asked  int32 // on the other channel
	}{
		{"it can ask", func() error { return nil }, nil, false, verdict.Escalate, "shield asks whether to", 0},
		{"it can ask, and so can another", func() error { return nil }, nil, true, verdict.Escalate, "shield asks whether to", 0},
		{"it cannot ask", func() error { return errors.New("not in this mode") }, nil, false, verdict.Block, "host: not in this mode", 0},
		{"it cannot ask, and another can", func() error { return errors.New("not in this mode") }, nil, true, verdict.Allow, "approved once by a", 1},
		{"no host calls", nil, nil, false, verdict.Block, "the channel host works only for hooks", 0},
		{"too many questions", func() error { return nil }, errors.New("hourly approval limit reached"), false, verdict.Block, "hourly approval limit reached", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			other := &fake{name: "a", say: says(Answer{Approve: true})}
			a := newTest(t, &memory{refuse: c.refuse})
			a.options.HostCannotAskReason = c.host
			a.channels = []ApprovalChannel{newHostChannel(&a.options)}
			if c.beside {
				a.channels = append(a.channels, other)
			}
			v, err := a.Judge(t.Context(), command1(t, push, "s"))
			if err != nil || v.Decision != c.want || !strings.Contains(v.Reasoning, c.says) || other.asked.Load() != c.asked || v.AnsweredBy != "" {
				t.Errorf("%+v, %v; another channel was asked %d times", v, err, other.asked.Load())
			}
			if (v.AnswerChannel == HostChannel) != (c.want == verdict.Escalate) {
				t.Errorf("%v through the channel %q", v.Decision, v.AnswerChannel)
			}
		})
	}
}

// TestShieldAsksItself: grave dangers, and commands of which a host hides a part, are not
// left to the host, which is asked about the rest.
func TestShieldAsksItself(t *testing.T) {
	t.Parallel()
	lines := func(n int) string { return push + strings.Repeat("\n: next", n-1) }
	for command, itself := range map[string]bool{
		push: false, lines(20): false, lines(21): true, push + " # " + strings.Repeat("é", 900): false, push + strings.Repeat(" x", 500): true, push + " # grave": true,
	} {
		other := &fake{name: "web", say: says(Answer{Approve: true})}
		a := newTest(t, &memory{})
		a.options.HostCannotAskReason = func() error { return nil }
		a.options.MustShieldAsk = func(c *analysis.ActionCase) bool {
			return strings.HasSuffix(c.Action.Payload["command"].(string), "grave")
		}
		a.channels = []ApprovalChannel{newHostChannel(&a.options), other}
		v, err := a.Judge(t.Context(), command1(t, command, "s"))
		if err != nil || (other.asked.Load() == 1) != itself || (v.Decision == verdict.Escalate) == itself {
			t.Errorf("%.80q: %v, %v; shield asked %d times", command, v.Decision, err, other.asked.Load())
		}
		a.channels = a.channels[:1]
		if v, err := a.Judge(t.Context(), command1(t, command, "s2")); err != nil || itself && v.Decision != verdict.Block {
			t.Errorf("%.80q without another channel: %v, %v", command, v.Decision, err)
		}
	}
}

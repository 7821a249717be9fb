package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Limits of a summary, whose memory use does not depend on the log's length.
const (
	maxSummaryDays            = 366
	maxSeparatelyCountedNames = 2_000 // rules, callers or sessions with counts of their own; the rest are counted together
	maxListedStoppedActions   = 100   // stopped actions that are listed
	maxShownPayloadChars      = 300   // characters of a payload that are shown
)

// A Summary counts the verdicts of a log.
type Summary struct {
	FirstVerdictTime, LastVerdictTime time.Time
	Total                             VerdictCounts
	Days                              []NamedVerdictCounts // by date in UTC, oldest first; without days that have no verdict
	Rules                             []NamedVerdictCounts // verdicts counted by the rule that decided or first asked ("" for none; allowed actions without a rule are not counted); most actions that were not allowed automatically first
	Callers                           []NamedVerdictCounts // shield commands and hooks that asked for verdicts
	Sessions                          []NamedVerdictCounts
	NonVerdictCountByKind             map[string]int  // entries that are not verdicts, by kind
	Stopped                           []StoppedAction // the last actions that were not allowed, newest first
}

// VerdictCounts are numbers of verdicts.
type VerdictCounts struct {
	Allowed          int // without asking a person
	Escalated        int // not decided
	Blocked          int
	ApprovedByPerson int // allowed because a person approved the action
	DeniedByPerson   int // by a person
}

// NamedVerdictCounts are the counts of one rule, day, caller or session.
type NamedVerdictCounts struct {
	Name string
	VerdictCounts
}

// Sum returns the number of counted verdicts.
func (c *VerdictCounts) Sum() int {
	return c.Allowed + c.Escalated + c.Blocked + c.ApprovedByPerson + c.DeniedByPerson
}

// notAutomaticallyAllowedCount returns how many actions were not allowed automatically.
func (c *VerdictCounts) notAutomaticallyAllowedCount() int { return c.Sum() - c.Allowed }

func (c *VerdictCounts) countEntry(e *Entry) {
	switch person := e.Tier == 3 && e.AnswerChannel != ""; {
	case e.Decision == verdict.Allow && person:
		c.ApprovedByPerson++
	case e.Decision == verdict.Allow:
		c.Allowed++
	case e.Decision == verdict.Block && person:
		c.DeniedByPerson++
	case e.Decision == verdict.Block:
		c.Blocked++
	default:
		c.Escalated++
	}
}

// StoppedAction is an action that was not allowed.
type StoppedAction struct {
	Time                                       time.Time
	Decision                                   verdict.Decision
	Rule, Type, Caller                         string
	Payload, Reasoning                         string
	Session, AnswerChannel, DecidingPersonName string
	Error                                      string // the error code of the verdict
}

// OtherCountsName is the name for the rules, callers and sessions that are counted together.
const OtherCountsName = "others"

type countsByName map[string]*VerdictCounts

func (t countsByName) countEntry(name string, e *Entry) {
	c := t[name]
	if c == nil {
		if len(t) >= maxSeparatelyCountedNames {
			name = OtherCountsName
		}
		if c = t[name]; c == nil {
			c = new(VerdictCounts)
			t[name] = c
		}
	}
	c.countEntry(e)
}

func (t countsByName) sortedCounts(order func(a, b NamedVerdictCounts) int) []NamedVerdictCounts {
	out := make([]NamedVerdictCounts, 0, len(t))
	for name, c := range t {
		out = append(out, NamedVerdictCounts{name, *c})
	}
	sorted.SortStableBy(out, order)
	return out
}

func compareByNotAllowedThenTotal(a, b NamedVerdictCounts) int {
	return cmp.Or(cmp.Compare(b.notAutomaticallyAllowedCount(), a.notAutomaticallyAllowedCount()), cmp.Compare(b.Sum(), a.Sum()), cmp.Compare(a.Name, b.Name))
}

// Summarize counts the verdicts of a log since a time; the zero time means all. Lines that are not
// entries are skipped and counted.
func Summarize(r io.Reader, since time.Time) (s *Summary, skipped int, err error) {
	s = &Summary{NonVerdictCountByKind: map[string]int{}}
	days, rules, callers, sessions := countsByName{}, countsByName{}, countsByName{}, countsByName{}
	skipped, err = forEachEntry(r, func(_ []byte, e *Entry) error {
		switch {
		case e.Time.Before(since):
			return nil
		case e.Kind != EntryKindVerdict:
			if len(s.NonVerdictCountByKind) < maxSeparatelyCountedNames {
				s.NonVerdictCountByKind[e.Kind]++
			}
			return nil
		}
		if s.FirstVerdictTime.IsZero() {
			s.FirstVerdictTime = e.Time
		}
		s.LastVerdictTime = e.Time
		s.Total.countEntry(e)
		days.countEntry(e.Time.UTC().Format(time.DateOnly), e)
		callers.countEntry(e.Caller.ShieldSubcommand, e)
		if e.Session != "" {
			sessions.countEntry(e.Session, e)
		}
		if rule := e.decidingRule(); rule != "" || e.Decision != verdict.Allow {
			rules.countEntry(rule, e)
		}
		if e.Decision != verdict.Allow {
			if len(s.Stopped) == maxListedStoppedActions {
				s.Stopped = s.Stopped[1:]
			}
			s.Stopped = append(s.Stopped, newStoppedAction(e))
		}
		return nil
	})
	slices.Reverse(s.Stopped)
	s.Days = days.sortedCounts(func(a, b NamedVerdictCounts) int { return cmp.Compare(a.Name, b.Name) })
	s.Days = s.Days[max(len(s.Days)-maxSummaryDays, 0):]
	s.Rules, s.Callers, s.Sessions = rules.sortedCounts(compareByNotAllowedThenTotal), callers.sortedCounts(compareByNotAllowedThenTotal), sessions.sortedCounts(compareByNotAllowedThenTotal)
	return s, skipped, err
}

// decidingRule returns the rule that decided or, if a later tier decided, the first rule that asked.
func (e *Entry) decidingRule() string {
	for i := range e.Trail {
		if st := &e.Trail[i]; st.Rule != "" && st.Decision != verdict.Allow {
			return st.Rule
		}
	}
	return e.Rule
}

func newStoppedAction(e *Entry) StoppedAction {
	return StoppedAction{
		Time: e.Time, Decision: e.Decision, Rule: e.decidingRule(), Type: e.actionTypeOrEntryKind(), Caller: e.Caller.ShieldSubcommand,
		Payload: e.shortPayload(), Reasoning: e.Reasoning, Session: e.Session, AnswerChannel: e.AnswerChannel, DecidingPersonName: e.AnsweredBy, Error: e.Error,
	}
}

// shortPayload returns the command of an action, or its payload as JSON, truncated.
func (e *Entry) shortPayload() string {
	text := ""
	if m, ok := e.Payload.(map[string]any); ok {
		text, _ = m["command"].(string)
	}
	if text == "" && e.Payload != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if enc.Encode(e.Payload) == nil {
			text = string(bytes.TrimSpace(b.Bytes()))
		}
	}
	return brief.TruncateWithEllipsis(text, maxShownPayloadChars)
}

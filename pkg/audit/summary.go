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
	maxSummaryDays                 = 366
	maxCountedRulesCallersSessions = 2_000 // rules, callers or sessions with counts of their own; the rest are counted together
	maxListedStopped               = 100   // stopped actions that are listed
	maxShownPayloadChars           = 300   // bytes of a command that are shown
)

// A Summary counts the verdicts of a log.
type Summary struct {
	First, Last        time.Time
	Total              Counts
	Days               []NamedCounts // by date in UTC, oldest first; without days that have no verdict
	Rules              []NamedCounts // by the rule that decided or first asked, most verdicts other than allowed first; "" if no rule did
	Callers            []NamedCounts // shield commands and hooks that asked for verdicts
	Sessions           []NamedCounts
	OtherEntriesByKind map[string]int  // entries that are not verdicts, by kind
	Stopped            []StoppedAction // the last actions that were not allowed, newest first
}

// Counts are numbers of verdicts.
type Counts struct {
	Allowed   int // without asking a person
	Escalated int // not decided
	Blocked   int
	Approved  int // by a person
	Denied    int // by a person
}

// NamedCounts are the counts of one rule, day, caller or session.
type NamedCounts struct {
	Name string
	Counts
}

// Sum returns the number of counted verdicts.
func (c *Counts) Sum() int { return c.Allowed + c.Escalated + c.Blocked + c.Approved + c.Denied }

// notAllowed returns how many actions were not allowed automatically.
func (c *Counts) notAllowed() int { return c.Sum() - c.Allowed }

func (c *Counts) countEntry(e *Entry) {
	switch person := e.Tier == 3 && e.Channel != ""; {
	case e.Decision == verdict.Allow && person:
		c.Approved++
	case e.Decision == verdict.Allow:
		c.Allowed++
	case e.Decision == verdict.Block && person:
		c.Denied++
	case e.Decision == verdict.Block:
		c.Blocked++
	default:
		c.Escalated++
	}
}

// StoppedAction is an action that was not allowed.
type StoppedAction struct {
	Time                                 time.Time
	Decision                             verdict.Decision
	Rule, Type, Caller                   string
	Payload, Reasoning                   string
	Session, Channel, DecidingPersonName string
}

// OthersName is the name for the rules, callers and sessions that are counted together.
const OthersName = "others"

type countsByName map[string]*Counts

func (t countsByName) countEntry(name string, e *Entry) {
	c := t[name]
	if c == nil {
		if len(t) >= maxCountedRulesCallersSessions {
			name = OthersName
		}
		if c = t[name]; c == nil {
			c = new(Counts)
			t[name] = c
		}
	}
	c.countEntry(e)
}

func (t countsByName) sortedCounts(order func(a, b NamedCounts) int) []NamedCounts {
	out := make([]NamedCounts, 0, len(t))
	for name, c := range t {
		out = append(out, NamedCounts{name, *c})
	}
	sorted.By(out, order)
	return out
}

func compareByStops(a, b NamedCounts) int {
	return cmp.Or(cmp.Compare(b.notAllowed(), a.notAllowed()), cmp.Compare(b.Sum(), a.Sum()), cmp.Compare(a.Name, b.Name))
}

// Summarize counts the verdicts of a log since a time; the zero time means all. Lines that are not
// entries are skipped and counted.
func Summarize(r io.Reader, since time.Time) (s *Summary, skipped int, err error) {
	s = &Summary{OtherEntriesByKind: map[string]int{}}
	days, rules, callers, sessions := countsByName{}, countsByName{}, countsByName{}, countsByName{}
	skipped, err = forEachEntry(r, func(_ []byte, e *Entry) error {
		switch {
		case e.Time.Before(since):
			return nil
		case e.Kind != EntryKindVerdict:
			if len(s.OtherEntriesByKind) < maxCountedRulesCallersSessions {
				s.OtherEntriesByKind[e.Kind]++
			}
			return nil
		}
		if s.First.IsZero() {
			s.First = e.Time
		}
		s.Last = e.Time
		s.Total.countEntry(e)
		days.countEntry(e.Time.UTC().Format(time.DateOnly), e)
		callers.countEntry(e.Caller.Command, e)
		if e.Session != "" {
			sessions.countEntry(e.Session, e)
		}
		if rule := e.decidingRule(); rule != "" || e.Decision != verdict.Allow {
			rules.countEntry(rule, e)
		}
		if e.Decision != verdict.Allow {
			if len(s.Stopped) == maxListedStopped {
				s.Stopped = s.Stopped[1:]
			}
			s.Stopped = append(s.Stopped, newStoppedAction(e))
		}
		return nil
	})
	slices.Reverse(s.Stopped)
	s.Days = days.sortedCounts(func(a, b NamedCounts) int { return cmp.Compare(a.Name, b.Name) })
	s.Days = s.Days[max(len(s.Days)-maxSummaryDays, 0):]
	s.Rules, s.Callers, s.Sessions = rules.sortedCounts(compareByStops), callers.sortedCounts(compareByStops), sessions.sortedCounts(compareByStops)
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
		Time: e.Time, Decision: e.Decision, Rule: e.decidingRule(), Type: e.shortTitle(), Caller: e.Caller.Command,
		Payload: e.shortPayload(), Reasoning: e.Reasoning, Session: e.Session, Channel: e.Channel, DecidingPersonName: e.By,
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

package scan

import (
	"cmp"
	"slices"
	"time"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Report is the result of replaying transcripts. Its texts contain no credentials and no terminal
// control characters.
type Report struct {
	Policy  string `json:"policy"`
	Files   int    `json:"files"`
	Hosts   []Host `json:"hosts"`
	Calls   int    `json:"calls"`
	Tasks   int    `json:"tasks"`
	Without int    `json:"tasks_without_interruption"`

	Questions  int     `json:"questions"`
	Blocks     int     `json:"blocks"`
	CannotTell int     `json:"cannot_tell"` // calls that depend on a missing file
	PerTask    float64 `json:"interruptions_per_task"`
	Per100     float64 `json:"interruptions_per_100_calls"`

	Repeated int `json:"calls_in_another_transcript"` // calls of several transcripts, each counted once
	Refused  int `json:"calls_refused_then"`          // calls refused by a person, the host or a hook
	Open     int `json:"calls_without_result"`

	Causes        []Cause    `json:"causes"`
	Dangerous     []Ran      `json:"dangerous_and_ran"`
	DangerousMore int        `json:"dangerous_and_ran_more"`
	Secrets       []Shown    `json:"secrets_shown"`
	Loops         []Loop     `json:"loops"`
	Tier2         Tier2      `json:"tier2"`
	Suggested     *Suggested `json:"suggested,omitempty"`
	Unknown       []Count    `json:"unknown_records"`
	Left          []Left     `json:"left_out"`
	LeftMore      int        `json:"left_out_more"`

	// Approvals are the commands that a policy rule would have asked about and that were executed, by
	// the conversation's folder.
	Approvals map[string][]policy.Approval `json:"-"`
}

// A Host is the summary of one host.
type Host struct {
	Host  string `json:"host"`
	Tasks int    `json:"tasks"`
	Calls int    `json:"calls"`
}

// A Count is a name and how often it occurred.
type Count struct {
	Name  string `json:"name"`
	Times int    `json:"times"`
}

// A Cause is a reason why calls would be asked about or blocked.
type Cause struct {
	Decision string `json:"decision"` // ESCALATE or BLOCK
	Rule     string `json:"rule,omitempty"`
	Reason   string `json:"reason"` // reason of the example
	Times    int    `json:"times"`
	Example  string `json:"example"`
	At       string `json:"at"`
}

// Ran is an executed call that shield would block.
type Ran struct {
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason"`
	Example string `json:"example"`
	At      string `json:"at"`
}

// Shown are the credentials of one kind in results that the model received.
type Shown struct {
	Kind    string `json:"kind"`
	Times   int    `json:"times"`   // number of results
	Example string `json:"example"` // the first call
	At      string `json:"at"`
}

// A Loop is a call that came many times in a row.
type Loop struct {
	Times   int    `json:"times"`
	Example string `json:"example"`
	At      string `json:"at"`
}

// Tier2 is how many calls a day Tier 2 would judge: those that Tiers 0 and 1 do not decide.
type Tier2 struct {
	Days   int     `json:"days"` // days with a call
	PerDay float64 `json:"per_day"`
	Most   int     `json:"most"`
}

// Suggested estimates the effect of exceptions for repeatedly executed commands.
type Suggested struct {
	Exceptions int     `json:"exceptions"`
	Saves      int     `json:"saves_questions"`
	Per100     float64 `json:"interruptions_per_100_calls"`
	Policy     string  `json:"policy"`
}

// A tally counts the calls of one or all conversations.
type tally struct {
	calls, questions, blocks, cannot, repeated, refused, open int

	causes       map[string]*Cause
	danger       []Ran
	moreRan      int
	shown        map[string]*Shown
	loopList     []*Loop
	kinds        map[string]int // unknown records, by kind
	skippedFiles []Left
	days         map[string]day
	approvals    map[string][]policy.Approval // commands that shield would ask about and that were executed, by workspace
	approved     int
}

type day struct{ calls, tier2 int }

// Limits of a report.
const (
	maxCauses    = 5000
	maxDangerous = 200
	maxKinds     = 500
	maxDays      = 5000
	maxApproved  = 20_000
	maxLoops     = 100
)

func newTally() *tally {
	return &tally{causes: map[string]*Cause{}, shown: map[string]*Shown{}, kinds: map[string]int{}, days: map[string]day{}, approvals: map[string][]policy.Approval{}}
}

// count adds a judged call.
func (t *tally) count(c *conversation, x *call, out *judged) {
	tier2 := 0
	switch {
	case out.cannot:
		t.cannot++
	case out.decision == verdict.Block:
		t.blocks++
		t.cause(c, x, out)
	case out.decision == verdict.Escalate:
		t.questions++
		tier2 = 1
		t.cause(c, x, out)
	}
	if x.at.IsZero() || x.at.Year() < 2000 || x.at.Year() > 9999 {
		return
	}
	date := x.at.UTC().Format(time.DateOnly)
	if d, known := t.days[date]; known || len(t.days) < maxDays {
		t.days[date] = day{d.calls + 1, d.tier2 + tier2}
	}
}

var particular = prefilter.Lazy(`(/|~)\S+|\d+|"[^"]*"`)

func (t *tally) cause(c *conversation, x *call, out *judged) {
	v := &out.v
	reason := cmp.Or(v.Told.Why, v.Reasoning)
	key := v.Decision.String() + " " + v.Rule
	if v.Rule == "" {
		general := particular().ReplaceAllString(v.Reasoning, "…")
		if r := []rune(general); len(r) > 70 {
			general = string(r[:70])
		}
		key += general
	}
	if was := t.causes[key]; was != nil {
		was.Times++
		return
	}
	if len(t.causes) < maxCauses {
		t.causes[key] = &Cause{v.Decision.String(), c.show(v.Rule, 60), c.show(reason, maxExample), 1, c.gist(out.action, x), c.at(x.place)}
	}
}

func (t *tally) dangerous(c *conversation, x *call, out *judged) {
	if len(t.danger) == maxDangerous {
		t.moreRan++
		return
	}
	t.danger = append(t.danger, Ran{c.show(out.v.Rule, 60), c.show(cmp.Or(out.v.Told.Why, out.v.Reasoning), maxExample), c.gist(out.action, x), c.at(x.place)})
}

// secrets counts the credentials in a call's result.
func (t *tally) secrets(c *conversation, w *pending, v any, at place) {
	for _, kind := range forms(texts(v)) {
		if was := t.shown[kind]; was != nil {
			was.Times++
			continue
		}
		var a = w.outcome.action
		if a == nil && len(w.actions) > 0 {
			a = w.actions[0]
		}
		t.shown[kind] = &Shown{kind, 1, c.gist(a, &w.call), c.at(at)}
	}
}

func (t *tally) loop(l Loop) *Loop {
	if len(t.loopList) < maxLoops {
		t.loopList = append(t.loopList, &l)
	}
	return &l
}

func (t *tally) unknown(host, kind string) {
	if kind = host + ": " + kind; t.kinds[kind] > 0 || len(t.kinds) < maxKinds {
		t.kinds[kind]++
	}
}

func (t *tally) left(file, why string) { t.skippedFiles = append(t.skippedFiles, Left{file, why}) }

func (t *tally) approve(root string, a policy.Approval) {
	if t.approved < maxApproved {
		t.approved++
		t.approvals[root] = append(t.approvals[root], a)
	}
}

// task counts a conversation, if it has a call.
func (t *tally) task(has bool, name string, to *Report) {
	i := slices.IndexFunc(to.Hosts, func(h Host) bool { return h.Host == name })
	if i < 0 {
		to.Hosts, i = append(to.Hosts, Host{Host: name}), len(to.Hosts)
	}
	if !has {
		return
	}
	to.Tasks++
	to.Hosts[i].Tasks++
	to.Hosts[i].Calls += t.calls
	if t.questions+t.blocks == 0 {
		to.Without++
	}
}

// add adds the counts of a conversation.
func (t *tally) add(o *tally) {
	t.calls, t.questions, t.blocks, t.cannot = t.calls+o.calls, t.questions+o.questions, t.blocks+o.blocks, t.cannot+o.cannot
	t.repeated, t.refused, t.open = t.repeated+o.repeated, t.refused+o.refused, t.open+o.open
	for key, c := range o.causes {
		if was := t.causes[key]; was != nil {
			n := was.Times + c.Times
			if c.At < was.At { // make the result independent of the order in which conversations finish
				*was = *c
			}
			was.Times = n
		} else if len(t.causes) < maxCauses {
			t.causes[key] = c
		}
	}
	room := maxDangerous - len(t.danger)
	t.danger = append(t.danger, o.danger[:min(room, len(o.danger))]...)
	t.moreRan += o.moreRan + max(len(o.danger)-room, 0)
	for key, s := range o.shown {
		if was := t.shown[key]; was != nil {
			n := was.Times + s.Times
			if s.At < was.At {
				*was = *s
			}
			was.Times = n
		} else {
			t.shown[key] = s
		}
	}
	t.loopList = append(t.loopList, o.loopList[:min(maxLoops-len(t.loopList), len(o.loopList))]...)
	for kind, n := range o.kinds {
		if t.kinds[kind] > 0 || len(t.kinds) < maxKinds {
			t.kinds[kind] += n
		}
	}
	t.skippedFiles = append(t.skippedFiles, o.skippedFiles...)
	for date, d := range o.days {
		if was, known := t.days[date]; known || len(t.days) < maxDays {
			t.days[date] = day{was.calls + d.calls, was.tier2 + d.tier2}
		}
	}
	for root, list := range o.approvals {
		for _, a := range list {
			t.approve(root, a)
		}
	}
}

// finish writes the counts into the report.
func (s *scanner) finish() {
	r, t := s.report, s.tally
	r.Calls, r.Questions, r.Blocks, r.CannotTell = t.calls, t.questions, t.blocks, t.cannot
	r.Repeated, r.Refused, r.Open = t.repeated, t.refused, t.open
	stops := float64(t.questions + t.blocks)
	r.PerTask, r.Per100 = stops/float64(max(r.Tasks, 1)), 100*stops/float64(max(t.calls, 1))
	for _, c := range t.causes {
		r.Causes = append(r.Causes, *c)
	}
	sorted.By(r.Causes, func(a, b Cause) int {
		return cmp.Or(b.Times-a.Times, cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.At, b.At))
	})
	r.Causes = r.Causes[:min(len(r.Causes), 10)]
	sorted.By(t.danger, func(a, b Ran) int { return cmp.Compare(a.At, b.At) })
	r.Dangerous, r.DangerousMore = t.danger, t.moreRan
	for _, one := range t.shown {
		r.Secrets = append(r.Secrets, *one)
	}
	sorted.By(r.Secrets, func(a, b Shown) int { return cmp.Or(b.Times-a.Times, cmp.Compare(a.Kind, b.Kind)) })
	for _, l := range t.loopList {
		r.Loops = append(r.Loops, *l)
	}
	sorted.By(r.Loops, func(a, b Loop) int { return cmp.Or(b.Times-a.Times, cmp.Compare(a.At, b.At)) })
	for kind, n := range t.kinds {
		r.Unknown = append(r.Unknown, Count{kind, n})
	}
	sorted.By(r.Unknown, func(a, b Count) int { return cmp.Or(b.Times-a.Times, cmp.Compare(a.Name, b.Name)) })
	for _, l := range t.skippedFiles {
		if len(r.Left) == maxLeft {
			r.LeftMore++
			continue
		}
		r.Left = append(r.Left, l)
	}
	sorted.By(r.Hosts, func(a, b Host) int { return cmp.Compare(a.Host, b.Host) })
	n := 0
	for _, d := range t.days {
		n += d.tier2
		r.Tier2.Most = max(r.Tier2.Most, d.tier2)
	}
	r.Tier2.Days, r.Tier2.PerDay = len(t.days), float64(n)/float64(max(len(t.days), 1))
	r.Approvals = t.approvals
}

package approve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A Request is what a person is asked: one action, what it would do, and what
// the tiers said. All its text is made visible, see [term.Escape].
type Request struct {
	ID       string   `json:"id"`      // 128 random bits in hex; an answer must carry it
	Summary  string   `json:"summary"` // one sentence: what would happen, and why it is asked
	Type     string   `json:"type"`
	Payload  []Field  `json:"payload"` // deciding fields first, long ones last
	CWD      string   `json:"cwd,omitempty"`
	Session  string   `json:"session,omitempty"`
	Asker    string   `json:"asker,omitempty"` // the program that asks, and what has started it
	Effects  []string `json:"effects"`
	Tiers    []string `json:"tiers"`    // what each tier said so far, and how sure it was
	Remember bool     `json:"remember"` // may be approved for some minutes
	Left     int      `json:"seconds"`  // to answer, from when it is shown

	// Page is the address and the code of the approval page, where the request can be
	// answered too; "" if that channel is not used. Anyone who has it can answer: it is
	// for the person's eyes, not for a log.
	Page string `json:"-"`

	subject  string // names the action on one line
	redactor *redact.Redactor
	told     []Field // Payload without secrets
	patience time.Duration
	clock    func() time.Time
	once     sync.Once
	shown    chan struct{}
	mu       sync.Mutex
	deadline time.Time
}

// A Field is one value of a payload.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Bounds of what is shown; a cut is marked.
const (
	maxValue   = 64 << 10 // bytes of one field
	maxFields  = 64
	maxEffects = 100
	maxSteps   = 16
	maxStep    = 2000 // bytes
)

func (a *Approver) newRequest(ctx context.Context, c *analysis.Case, remember bool, patience time.Duration) (*Request, error) {
	id, err := randomHex(16)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok { // the agent host waits no longer than this
		patience = max(min(patience, time.Until(end)), 0)
	}
	payload, known := a.o.Redactor.Learn(c.Action.Payload, maxValue)
	r := &Request{
		ID: id, Type: brief(c.Action.Type, 200), Summary: summary(c, known.String), subject: subject(c, known.String),
		CWD: brief(c.At().CWD, 4096), Session: brief(c.Action.Session, 200), Asker: brief(a.o.Asker, 300),
		Payload: fields(c.Action.Payload), Effects: effects(c.Effects), Remember: remember,
		redactor: known, told: toldFields(payload),
		patience: patience, Left: int(patience.Seconds()), clock: a.o.Clock, shown: make(chan struct{}),
	}
	if c.Unexamined != "" {
		r.Effects = append(r.Effects, brief("not fully examined: "+c.Unexamined, maxStep))
	}
	steps := c.Trail
	if len(steps) > maxSteps {
		steps = steps[len(steps)-maxSteps:]
	}
	for i := range steps {
		s := &steps[i]
		r.Tiers = append(r.Tiers, brief(fmt.Sprintf("%d %s: %s, confidence %.2f: %s", s.Tier, s.Source, s.Decision, s.Confidence, s.Reasoning), maxStep))
	}
	return r, nil
}

// Shown starts the clock of a request, on the first call: a person can see it
// now.
func (r *Request) Shown() {
	r.once.Do(func() {
		r.mu.Lock()
		r.deadline = r.clock().Add(r.patience)
		r.mu.Unlock()
		close(r.shown)
	})
}

// TimeLeft returns how long the person still has to answer.
func (r *Request) TimeLeft() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deadline.IsZero() {
		return r.patience
	}
	return max(r.deadline.Sub(r.clock()), 0)
}

// deciding are the names of the fields that a person looks at first, in order;
// lengthy are those that may be long and come last.
var (
	deciding = []string{
		"command", "path", "source", "destination", "url", "host", "method",
		"to", "recipient", "recipients", "channel", "cc", "bcc", "subject",
	}
	lengthy = []string{
		"content", "contents", "new_content", "body", "text", "message", "html", "data", "diff", "patch", "old_string", "new_string", "edits",
	}
)

// rank orders a field by its name.
func rank(name string) int {
	if i := slices.Index(deciding, name); i >= 0 {
		return i
	}
	if slices.Contains(lengthy, name) {
		return len(deciding) + 1
	}
	return len(deciding)
}

// bulky reports whether a field would push the deciding ones off the screen.
func (f *Field) bulky() bool {
	return slices.Contains(lengthy, f.Name) || len(f.Value) > 1000 || strings.Count(f.Value, "\n") >= 10
}

// fields returns a payload's values by name, the deciding ones first.
func fields(payload map[string]any) []Field {
	names := make([]string, 0, len(payload))
	for name := range payload {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	var out []Field
	for i, name := range names {
		if i == maxFields {
			out = append(out, Field{"…", fmt.Sprintf("%d more fields are not shown", len(names)-i)})
			break
		}
		out = append(out, Field{brief(name, 80), value(payload[name])})
	}
	return out
}

// toldFields returns the fields of a redacted payload, which may be just a note.
func toldFields(payload any) []Field {
	if m, ok := payload.(map[string]any); ok {
		return fields(m)
	}
	return []Field{{"payload", value(payload)}}
}

// value returns a payload's value as text, of many lines if it has them.
func value(v any) string {
	text, ok := v.(string)
	if !ok {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return "cannot be shown: " + term.Escape(err.Error())
		}
		text = string(b)
	}
	note := ""
	if len(text) > maxValue {
		note = fmt.Sprintf("\n… %d more bytes are not shown", len(text)-maxValue)
		text = redact.Cut(text, maxValue)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = term.Escape(line)
	}
	return strings.Join(lines, "\n") + note
}

// effects describes effects, each once.
func effects(list []effect.Effect) []string {
	var out []string
	for i := range list {
		e := &list[i]
		parts := []string{string(e.Kind)}
		add := func(s string) {
			if s != "" {
				parts = append(parts, s)
			}
		}
		add(e.Path)
		if e.Recursive {
			add("and everything below")
		}
		if add(e.URL); e.URL == "" {
			add(e.Host)
		}
		add(e.Program)
		add(strings.Join(e.Args, " "))
		if e.Reason != "" {
			add("(" + e.Reason + ")")
		}
		line := brief(strings.Join(parts, " "), 500)
		if slices.Contains(out, line) {
			continue
		}
		if len(out) == maxEffects {
			return append(out, fmt.Sprintf("… and %d more", len(list)-i))
		}
		out = append(out, line)
	}
	return out
}

// brief returns text on one line, made visible, cut at n bytes.
func brief(s string, n int) string {
	if len(s) > n {
		s = redact.Cut(s, n) + "…"
	}
	return term.Escape(s)
}

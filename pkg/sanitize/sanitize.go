// Package sanitize examines what a tool brings back before an agent reads it: text
// that people do not see, text that speaks to the agent, links that carry data out,
// and credentials. [Examine] says what there is and where, [Apply] what is handed
// on. Both are deterministic, and take time in proportion to the text.
//
// No finding means that none was found. It does not mean that a text is free of
// injections: what an attacker writes in words of his own, no list of phrases knows.
package sanitize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/speech"
	"github.com/shieldcli/shield/internal/term"
)

//go:generate go run ./gen

// MaxText is the longest text that is examined, in bytes: of all strings of a
// result together.
const MaxText = 16 << 20

// A Kind is what a finding is.
type Kind string

// Kinds of findings.
const (
	Invisible    Kind = "invisible"    // characters that show nothing
	Bidi         Kind = "bidi"         // characters that change the order in which text is shown
	Tags         Kind = "tags"         // tag characters and variation selectors, which spell text that is not shown
	Escape       Kind = "escape"       // control characters that a terminal obeys
	Hidden       Kind = "hidden"       // markup that is not shown and speaks to the agent
	Encoded      Kind = "encoded"      // text that decodes to what speaks to the agent
	Instruction  Kind = "instruction"  // text that speaks to the agent
	Exfiltration Kind = "exfiltration" // text or a link that has data carried out
	Secret       Kind = "secret"       // a credential
	Unexamined   Kind = "unexamined"   // what was too much to examine
)

// Kinds returns all kinds of findings.
func Kinds() []Kind {
	return []Kind{Invisible, Bidi, Tags, Escape, Hidden, Encoded, Instruction, Exfiltration, Secret, Unexamined}
}

// Severities of findings.
const (
	High   = "high"   // hardly anything honest has it
	Medium = "medium" // few honest texts have it
	Low    = "low"    // careless texts have it
)

// A Finding is something that an agent should not be handed unmarked.
type Finding struct {
	Kind     Kind   `json:"kind"`
	Rule     string `json:"rule,omitempty"`   // of phrases and credentials: its id
	Where    string `json:"where"`            // JSON pointer to the string; "" is the result itself
	Key      bool   `json:"key,omitempty"`    // it is in the name of that member instead of its value
	Offset   int    `json:"offset"`           // byte of the string
	Length   int    `json:"length"`           // in bytes
	What     string `json:"what"`             // what it is, in printable characters, without credentials
	Severity string `json:"severity"`         // high, medium or low
	Source   string `json:"source,omitempty"` // who found it, if not this package
}

// maxFindings is how many findings a report has.
const maxFindings = 100

// A Report is what was found in a result.
type Report struct {
	Findings []Finding // in the order of the text
	More     int       // findings beyond those, at least
	leaves   []leaf
	root     any
}

// Add adds what others found in the result as a whole.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// A span is what [Apply] takes out of a string, and what it puts there.
type span struct {
	start, end int
	with       string
}

// A text is one string while it is examined.
type text struct {
	s        string
	findings []Finding // offsets are those of s
	spans    []span
	unread   bool // by rules
	layers   int  // bytes of the texts that were found in what was decoded
	rtl      int  // 1 for a text with letters from right to left, -1 for another, 0 if that is not known
	controls int  // that were reported
}

func (t *text) find(kind Kind, rule, severity string, start, end int, what string) {
	t.findings = append(t.findings, Finding{Kind: kind, Rule: rule, Offset: start, Length: end - start, What: what, Severity: severity})
}

// cut takes a part of the string out.
func (t *text) cut(start, end int) { t.spans = append(t.spans, span{start: start, end: end}) }

// maxExcerpt is how much of a text a finding quotes, in characters.
const maxExcerpt = 120

// excerpt returns the beginning of a text as it can be shown and logged.
func excerpt(s string) string {
	cut := redact.Cut(s, 4*maxExcerpt)
	shown := (*redact.Redactor)(nil).Brief(strings.ToValidUTF8(cut, "?"), 2*maxExcerpt)
	return brief.Text(strings.Join(strings.Fields(term.Escape(shown)), " "), maxExcerpt)
}

// structure examines what must be read string by string: what a string hides ends
// with it.
func (t *text) structure() {
	t.characters()
	t.markup()
	t.encoded()
}

// phrases examines what may go on from one string to the next.
func (t *text) phrases() {
	hits, whole := speech.Agent(t.s, false)
	for _, h := range dropOverlapping(hits) {
		kind, what := Kind(h.Rule.Kind), excerpt(t.s[h.Start:h.End])
		if h.Form != "" {
			kind, what = Encoded, h.Form+": "+what
		}
		t.find(kind, h.Rule.ID, h.Rule.Severity, h.Start, h.End, what)
	}
	t.unread = !whole
	for _, c := range redact.Credentials(t.s) {
		t.find(Secret, c.Form, High, c.Start, c.End, c.Form)
		t.spans = append(t.spans, span{c.Start, c.End, "[redacted " + c.Form + "]"})
	}
}

// dropOverlapping returns the hits that overlap no other.
func dropOverlapping(hits []speech.Hit) []speech.Hit {
	slices.SortFunc(hits, func(a, b speech.Hit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.Rule.ID, b.Rule.ID))
	})
	end := -1
	return slices.DeleteFunc(hits, func(h speech.Hit) bool {
		if h.End <= end {
			return true
		}
		end = h.End
		return false
	})
}

// hiddenTextRule returns the first rule that matches a text which people do not see, and
// whether all of it was read.
func hiddenTextRule(s string) (rule *speech.Rule, whole bool) {
	hits, whole := speech.Agent(s, true)
	if len(hits) == 0 {
		return nil, whole
	}
	return hits[0].Rule, whole
}

// Examine examines a result: a string, or any JSON value as package json decodes
// it. Strings are read one by one and, so that a sentence that is spread over them
// is found, as one text; names of members too.
func Examine(result any) *Report {
	r := &Report{root: result}
	total, deep := r.collect(result, "", 0)
	if deep || total > MaxText {
		why := "more text than shield scans"
		if deep {
			why = "data nested deeper than shield scans"
		}
		r.Findings = []Finding{{Kind: Unexamined, What: why, Severity: High}}
		r.leaves = nil
		return r
	}
	whole := &text{s: r.joined(total)}
	whole.phrases()
	var found []Finding
	hidden := make([][2]int, 0, 8) // of the joined text: what is reported as hidden
	for i := range r.leaves {
		l := &r.leaves[i]
		one := text{s: l.text}
		one.structure()
		for _, f := range one.findings {
			if f.Kind == Hidden || f.Kind == Encoded {
				hidden = append(hidden, [2]int{l.start + f.Offset, l.start + f.Offset + f.Length})
			}
			f.Where, f.Key = l.where, l.key
			found = append(found, f)
		}
		l.spans = one.spans
		whole.unread = whole.unread || one.unread
	}
	for _, f := range whole.findings {
		if f.Kind != Secret && slices.ContainsFunc(hidden, func(h [2]int) bool { return h[0] <= f.Offset && f.Offset < h[1] }) {
			continue
		}
		l := r.leafAt(f.Offset)
		f.Where, f.Key = l.where, l.key
		f.Offset -= l.start
		f.Length = min(f.Length, len(l.text)-f.Offset)
		found = append(found, f)
	}
	r.distribute(whole.spans)
	if whole.unread {
		found = append(found, Finding{Kind: Unexamined, What: "more suspicious text than shield examines", Severity: High})
	}
	if len(found) > maxFindings {
		slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank(b.Severity), rank(a.Severity)) })
		r.More = len(found) - maxFindings
		found = found[:maxFindings]
	}
	r.Findings = found
	return r
}

func rank(severity string) int { return slices.Index([]string{Low, Medium, High}, severity) }

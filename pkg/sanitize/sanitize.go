// Package sanitize examines tool results before an agent reads them. It finds text that people do not
// see, prompt injections, links that exfiltrate data, and credentials. [Examine] returns the findings,
// [Report.Apply] the result to forward. Both are deterministic and take linear time.
//
// A result without findings can still contain a prompt injection: rules cannot recognise every
// wording.
package sanitize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/speech"
	"github.com/shieldcli/shield/internal/term"
)

//go:generate go run ./gen

// MaxTotalTextBytes is the maximum total length of a result's strings that is examined, in bytes.
const MaxTotalTextBytes = 16 << 20

// A Kind is the kind of a finding.
type Kind string

// Kinds of findings.
const (
	Invisible     Kind = "invisible"    // invisible characters
	Bidi          Kind = "bidi"         // bidirectional controls, which change the displayed order of text
	TagCharacters Kind = "tags"         // tag characters and variation selectors that encode invisible text
	Escape        Kind = "escape"       // terminal control characters
	Hidden        Kind = "hidden"       // hidden markup with a prompt injection
	Encoded       Kind = "encoded"      // encoded text with a prompt injection
	Instruction   Kind = "instruction"  // prompt injection
	Exfiltration  Kind = "exfiltration" // text or a link that exfiltrates data
	Secret        Kind = "secret"       // a credential
	Unexamined    Kind = "unexamined"   // too much or too deeply nested to examine
)

// Kinds returns all kinds of findings.
func Kinds() []Kind {
	return []Kind{Invisible, Bidi, TagCharacters, Escape, Hidden, Encoded, Instruction, Exfiltration, Secret, Unexamined}
}

// Severities of findings.
const (
	SeverityHigh   = "high"   // almost never in legitimate text
	SeverityMedium = "medium" // rarely in legitimate text
	SeverityLow    = "low"    // also in careless legitimate text
)

// A Finding is something that an agent should not read unmarked.
type Finding struct {
	Kind         Kind   `json:"kind"`
	Rule         string `json:"rule,omitempty"`   // ID of the rule, for phrases and credentials
	JSONPointer  string `json:"where"`            // JSON pointer to the string; "" is the result itself
	InMemberName bool   `json:"key,omitempty"`    // the finding is in the name of the member, not in its value
	Offset       int    `json:"offset"`           // byte offset in the string
	Length       int    `json:"length"`           // in bytes
	FindingText  string `json:"what"`             // description in printable characters, without credentials
	Severity     string `json:"severity"`         // high, medium or low
	ExaminerName string `json:"source,omitempty"` // the examiner, if not this package
}

// maxFindings is the maximum number of findings in a report.
const maxFindings = 100

// A Report is the result of examining one tool result.
type Report struct {
	Findings                  []Finding // in the order of the text
	OmittedFindingsLowerBound int       // minimum number of further findings, which are not in Findings
	leaves                    []leaf
	root                      any
}

// Add adds a finding of another examiner about the whole result.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// A span is a part of a string that [Report.Apply] replaces, and its replacement.
type span struct {
	start, end  int
	replacement string
}

// An examinedText is one string under examination.
type examinedText struct {
	content                 string
	findings                []Finding // findings; their offsets refer to content
	spans                   []span
	partlyUnexamined        bool // by rules
	decodedBytes            int  // bytes of the texts decoded from nested encodings
	rightToLeftYesNoUnknown int  // 1 for a text with letters from right to left, -1 for another, 0 if that is not known
	reportedControls        int  // number of control characters that were reported
}

//go:noinline
func (t *examinedText) addFinding(kind Kind, rule, severity string, start, end int, what string) {
	t.findings = append(t.findings, Finding{Kind: kind, Rule: rule, Offset: start, Length: end - start, FindingText: what, Severity: severity})
}

// removeSpan marks a part of the string for removal.
func (t *examinedText) removeSpan(start, end int) {
	t.spans = append(t.spans, span{start: start, end: end})
}

// maxExcerptRunes is the maximum length of a quoted text, in characters.
const maxExcerptRunes = 120

// excerpt returns the beginning of a text in a printable form.
func excerpt(s string) string {
	cut := redact.TruncateBytes(s, 4*maxExcerptRunes)
	shown := (*redact.Redactor)(nil).RedactAndTruncate(strings.ToValidUTF8(cut, "?"), 2*maxExcerptRunes)
	return brief.TruncateWithEllipsis(strings.Join(strings.Fields(term.Escape(shown)), " "), maxExcerptRunes)
}

// examineCharactersMarkupEncodings examines properties of single strings: hidden text does not extend to the next string.
func (t *examinedText) examineCharactersMarkupEncodings() {
	t.examineCharacters()
	t.examineMarkup()
	t.examineEncoded()
}

// examinePhrases examines text that can continue from one string to the next.
func (t *examinedText) examinePhrases() {
	hits, whole := speech.FindAgentPromptInjections(t.content, false)
	for _, h := range dropOverlapping(hits) {
		kind, what := Kind(h.Rule.InstructionOrExfiltrationKind), excerpt(t.content[h.Start:h.End])
		if h.EncodingName != "" {
			kind, what = Encoded, h.EncodingName+": "+what
		}
		t.addFinding(kind, h.Rule.ID, h.Rule.Severity, h.Start, h.End, what)
	}
	t.partlyUnexamined = !whole
	for _, c := range redact.Credentials(t.content) {
		t.addFinding(Secret, c.KindName, SeverityHigh, c.Start, c.End, c.KindName)
		t.spans = append(t.spans, span{c.Start, c.End, "[redacted " + c.KindName + "]"})
	}
}

// dropOverlapping removes hits that end inside an earlier hit.
func dropOverlapping(hits []speech.PhraseHit) []speech.PhraseHit {
	sorted.By(hits, func(a, b speech.PhraseHit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.Rule.ID, b.Rule.ID))
	})
	end := -1
	return slices.DeleteFunc(hits, func(h speech.PhraseHit) bool {
		if h.End <= end {
			return true
		}
		end = h.End
		return false
	})
}

// hiddenTextRule returns the first rule that matches a hidden text, and whether all of it was
// examined.
func hiddenTextRule(s string) (rule *speech.Rule, isFullyExamined bool) {
	hits, isFullyExamined := speech.FindAgentPromptInjections(s, true)
	if len(hits) == 0 {
		return nil, isFullyExamined
	}
	return hits[0].Rule, isFullyExamined
}

// Examine examines a result: a string or a decoded JSON value. Strings and member names are examined
// one by one and, to find a sentence that is split over several strings, joined as one text.
func Examine(result any) *Report {
	r := &Report{root: result}
	total, deep := r.collectLeaves(result, "", 0)
	if deep || total > MaxTotalTextBytes {
		why := "the result has more text than shield scans; request a shorter result"
		if deep {
			why = "the result is nested deeper than shield scans; request a flatter result"
		}
		r.Findings = []Finding{{Kind: Unexamined, FindingText: why, Severity: SeverityHigh}}
		r.leaves = nil
		return r
	}
	whole := &examinedText{content: r.joinLeaves(total)}
	whole.examinePhrases()
	var found []Finding
	hidden := make([][2]int, 0, 8) // hidden ranges of the joined text, as reported
	for i := range r.leaves {
		l := &r.leaves[i]
		one := examinedText{content: l.text}
		one.examineCharactersMarkupEncodings()
		for _, f := range one.findings {
			if f.Kind == Hidden || f.Kind == Encoded {
				hidden = append(hidden, [2]int{l.joinedTextOffset + f.Offset, l.joinedTextOffset + f.Offset + f.Length})
			}
			f.JSONPointer, f.InMemberName = l.jsonPointer, l.isMemberName
			found = append(found, f)
		}
		l.spans = one.spans
		whole.partlyUnexamined = whole.partlyUnexamined || one.partlyUnexamined
	}
	for _, f := range whole.findings {
		if f.Kind != Secret && slices.ContainsFunc(hidden, func(h [2]int) bool { return h[0] <= f.Offset && f.Offset < h[1] }) {
			continue
		}
		l := r.leafAt(f.Offset)
		f.JSONPointer, f.InMemberName = l.jsonPointer, l.isMemberName
		f.Offset -= l.joinedTextOffset
		f.Length = min(f.Length, len(l.text)-f.Offset)
		found = append(found, f)
	}
	r.assignSpans(whole.spans)
	if whole.partlyUnexamined {
		found = append(found, Finding{Kind: Unexamined, FindingText: "more suspicious text than shield examines", Severity: SeverityHigh})
	}
	if len(found) > maxFindings {
		sorted.By(found, func(a, b Finding) int { return cmp.Compare(severityRank(b.Severity), severityRank(a.Severity)) })
		r.OmittedFindingsLowerBound = len(found) - maxFindings
		found = found[:maxFindings]
	}
	r.Findings = found
	return r
}

func severityRank(severity string) int {
	return slices.Index([]string{SeverityLow, SeverityMedium, SeverityHigh}, severity)
}

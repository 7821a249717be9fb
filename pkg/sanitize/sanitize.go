// Package sanitize examines tool results before an agent reads them. It finds text that people do not
// see, prompt injections, links that exfiltrate data, and credentials. [Examine] returns the findings,
// [Report.SanitizeResult] the result to forward. Both are deterministic and take linear time.
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

// A FindingKind says what was found in a tool result, such as a prompt injection or a credential.
type FindingKind string

// Kinds of findings.
const (
	FindingInvisibleCharacters FindingKind = "invisible"    // invisible characters
	FindingBidiControls        FindingKind = "bidi"         // bidirectional controls, which change the displayed order of text
	FindingTagCharacters       FindingKind = "tags"         // tag characters and variation selectors that encode invisible text
	FindingTerminalEscape      FindingKind = "escape"       // terminal control characters
	FindingHiddenMarkup        FindingKind = "hidden"       // hidden markup with a prompt injection
	FindingEncodedInjection    FindingKind = "encoded"      // encoded text with a prompt injection
	FindingPromptInjection     FindingKind = "instruction"  // prompt injection
	FindingExfiltration        FindingKind = "exfiltration" // text or a link that exfiltrates data
	FindingSecret              FindingKind = "secret"       // a credential
	FindingUnexamined          FindingKind = "unexamined"   // too much or too deeply nested to examine
)

// Kinds returns all kinds of findings.
func Kinds() []FindingKind {
	return []FindingKind{FindingInvisibleCharacters, FindingBidiControls, FindingTagCharacters, FindingTerminalEscape, FindingHiddenMarkup, FindingEncodedInjection, FindingPromptInjection, FindingExfiltration, FindingSecret, FindingUnexamined}
}

// Severities of findings.
const (
	SeverityHigh   = "high"   // almost never in legitimate text
	SeverityMedium = "medium" // rarely in legitimate text
	SeverityLow    = "low"    // also occurs in legitimate text that was written carelessly
)

// A Finding is something that an agent should not read unmarked.
type Finding struct {
	Kind               FindingKind `json:"kind"`
	Rule               string      `json:"rule,omitempty"`   // ID of the rule, for phrases and credentials
	JSONPointer        string      `json:"where"`            // JSON pointer to the string; "" is the result itself
	InMemberName       bool        `json:"key,omitempty"`    // the finding is in the name of the member, not in its value
	ByteOffset         int         `json:"offset"`           // byte offset in the string
	ByteLength         int         `json:"length"`           // in bytes
	FindingDescription string      `json:"what"`             // description in printable characters, without credentials
	Severity           string      `json:"severity"`         // high, medium or low
	ExaminerName       string      `json:"source,omitempty"` // the examiner, if not this package
}

// maxFindings is the maximum number of findings in a report.
const maxFindings = 100

// A Report is the result of examining one tool result.
type Report struct {
	Findings                  []Finding // in the order of the text
	OmittedFindingsLowerBound int       // minimum number of further findings, which are not in Findings
	leaves                    []resultLeaf
	originalResult            any
}

// Add adds a finding about the whole result from an examiner outside of this package, such as the evaluator
// model.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// A replacedSpan is a part of a string that [Report.SanitizeResult] replaces, and its replacement.
type replacedSpan struct {
	start, end  int
	replacement string
}

// An examinedText is one string under examination.
type examinedText struct {
	content                  string
	findings                 []Finding // findings; their offsets refer to content
	replacedSpans            []replacedSpan
	partlyUnexamined         bool // by rules
	decodedByteCount         int  // bytes of the texts decoded from nested encodings
	rightToLeftState         int  // 1: the text has letters of right-to-left scripts; -1: it has none; 0: not yet known
	reportedControlCharCount int  // number of control characters that were reported
}

//go:noinline
func (t *examinedText) addFinding(kind FindingKind, rule, severity string, start, end int, what string) {
	t.findings = append(t.findings, Finding{Kind: kind, Rule: rule, ByteOffset: start, ByteLength: end - start, FindingDescription: what, Severity: severity})
}

// markSpanForRemoval marks a part of the string for removal.
func (t *examinedText) markSpanForRemoval(start, end int) {
	t.replacedSpans = append(t.replacedSpans, replacedSpan{start: start, end: end})
}

// maxExcerptRunes is the maximum length of a quoted text, in characters.
const maxExcerptRunes = 120

// excerpt returns the beginning of a text in a printable form.
func excerpt(s string) string {
	cut := redact.TruncateBytes(s, 4*maxExcerptRunes)
	shown := (*redact.Redactor)(nil).RedactAndTruncate(strings.ToValidUTF8(cut, "?"), 2*maxExcerptRunes)
	return brief.TruncateWithEllipsis(strings.Join(strings.Fields(term.EscapeControlAndInvisible(shown)), " "), maxExcerptRunes)
}

// examineCharactersMarkupEncodings looks for hidden characters, hidden markup and encoded prompt
// injections. It examines each string of a result alone, since hidden text does not extend to the
// next string.
func (t *examinedText) examineCharactersMarkupEncodings() {
	t.examineCharacters()
	t.examineMarkup()
	t.examineEncodedInjections()
}

// examinePromptInjectionPhrases examines text that can continue from one string to the next.
func (t *examinedText) examinePromptInjectionPhrases() {
	hits, whole := speech.FindAgentTargetedPromptInjections(t.content, false)
	for _, h := range dropHitsEndingInEarlierHit(hits) {
		kind, what := FindingKind(h.Rule.InstructionOrExfiltrationKind), excerpt(t.content[h.Start:h.End])
		if h.EncodingName != "" {
			kind, what = FindingEncodedInjection, h.EncodingName+": "+what
		}
		t.addFinding(kind, h.Rule.ID, h.Rule.Severity, h.Start, h.End, what)
	}
	t.partlyUnexamined = !whole
	for _, c := range redact.FindCredentialSpans(t.content) {
		t.addFinding(FindingSecret, c.KindName, SeverityHigh, c.Start, c.End, c.KindName)
		t.replacedSpans = append(t.replacedSpans, replacedSpan{c.Start, c.End, "[redacted " + c.KindName + "]"})
	}
}

// dropHitsEndingInEarlierHit removes hits that end inside an earlier hit.
func dropHitsEndingInEarlierHit(hits []speech.PhraseHit) []speech.PhraseHit {
	sorted.SortStableBy(hits, func(a, b speech.PhraseHit) int {
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

// firstRuleMatchingHiddenText returns the first rule that matches a hidden text, and whether all of it was
// examined.
func firstRuleMatchingHiddenText(s string) (rule *speech.Rule, isFullyExamined bool) {
	hits, isFullyExamined := speech.FindAgentTargetedPromptInjections(s, true)
	if len(hits) == 0 {
		return nil, isFullyExamined
	}
	return hits[0].Rule, isFullyExamined
}

// Examine examines a result: a string or a decoded JSON value. Strings and member names are examined
// one by one and, to find a sentence that is split over several strings, joined as one text.
func Examine(result any) *Report {
	r := &Report{originalResult: result}
	total, deep := r.collectLeaves(result, "", 0)
	if deep || total > MaxTotalTextBytes {
		why := "the result has more text than shield scans; request a shorter result"
		if deep {
			why = "the result is nested deeper than shield scans; request a flatter result"
		}
		r.Findings = []Finding{{Kind: FindingUnexamined, FindingDescription: why, Severity: SeverityHigh}}
		r.leaves = nil
		return r
	}
	whole := &examinedText{content: r.joinLeaves(total)}
	whole.examinePromptInjectionPhrases()
	var found []Finding
	hidden := make([][2]int, 0, 8) // hidden ranges of the joined text, as reported
	for i := range r.leaves {
		l := &r.leaves[i]
		one := examinedText{content: l.text}
		one.examineCharactersMarkupEncodings()
		for _, f := range one.findings {
			if f.Kind == FindingHiddenMarkup || f.Kind == FindingEncodedInjection {
				hidden = append(hidden, [2]int{l.joinedTextOffset + f.ByteOffset, l.joinedTextOffset + f.ByteOffset + f.ByteLength})
			}
			f.JSONPointer, f.InMemberName = l.jsonPointer, l.isMemberName
			found = append(found, f)
		}
		l.replacedSpans = one.replacedSpans
		whole.partlyUnexamined = whole.partlyUnexamined || one.partlyUnexamined
	}
	for _, f := range whole.findings {
		if f.Kind != FindingSecret && slices.ContainsFunc(hidden, func(h [2]int) bool { return h[0] <= f.ByteOffset && f.ByteOffset < h[1] }) {
			continue
		}
		l := r.leafAtJoinedOffset(f.ByteOffset)
		f.JSONPointer, f.InMemberName = l.jsonPointer, l.isMemberName
		f.ByteOffset -= l.joinedTextOffset
		f.ByteLength = min(f.ByteLength, len(l.text)-f.ByteOffset)
		found = append(found, f)
	}
	r.assignReplacedSpansToLeaves(whole.replacedSpans)
	if whole.partlyUnexamined {
		found = append(found, Finding{Kind: FindingUnexamined, FindingDescription: "a part was not examined: the text has more suspicious places than shield examines", Severity: SeverityHigh})
	}
	if len(found) > maxFindings {
		sorted.SortStableBy(found, func(a, b Finding) int { return cmp.Compare(severityRank(b.Severity), severityRank(a.Severity)) })
		r.OmittedFindingsLowerBound = len(found) - maxFindings
		found = found[:maxFindings]
	}
	r.Findings = found
	return r
}

func severityRank(severity string) int {
	return slices.Index([]string{SeverityLow, SeverityMedium, SeverityHigh}, severity)
}

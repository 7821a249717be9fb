package report

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A JudgedAction is an action, formatted for a person, and its verdict.
type JudgedAction struct {
	ActionText string
	Verdict    *verdict.Verdict
}

// decisionWords are words for decisions, for people who do not know the JSON form.
var decisionWords = map[verdict.Decision]struct{ word, color string }{
	verdict.Allow:    {"allow", colorAllow},
	verdict.Escalate: {"ask", colorAsk},
	verdict.Block:    {"deny", colorBlock},
}

// WriteJudgedActions writes each action beside its decision, and the reason below it.
func WriteJudgedActions(w io.Writer, rows []JudgedAction, s Style) error {
	d := styledLineWriter{Writer: bufio.NewWriter(w), Style: s}
	d.Columns = max(d.Columns, 40)
	const indent = "       "
	for _, row := range rows {
		as, known := decisionWords[row.Verdict.Decision]
		if !known {
			as = decisionWords[verdict.Block]
		}
		head := as.word + strings.Repeat(" ", len(indent)-len(as.word))
		for _, line := range term.WrapLines(brief.TruncateWithEllipsis(row.ActionText, maxWrappedTextBytes), d.Columns-len(indent)) {
			d.writeLine("", strings.Replace(head, as.word, d.colorize(as.color, as.word), 1)+line)
			head = indent
		}
		d.writeFolded(indent, shortReason(row.Verdict.Reasoning, row.Verdict.ErrorCode))
	}
	return d.Flush()
}

// WriteVerdictLine writes the decision, the action and the reason on one line, cut at the width of the
// terminal. Without a width the reason has at most 160 columns.
func WriteVerdictLine(w io.Writer, row JudgedAction, s Style) error {
	d := styledLineWriter{Writer: bufio.NewWriter(w), Style: s}
	as, known := decisionWords[row.Verdict.Decision]
	if !known {
		as = decisionWords[verdict.Block]
	}
	wide, room := 48, 160
	if d.Columns > 0 {
		wide = min(wide, max(d.Columns/2-7, 8))
		room = max(d.Columns-7-wide-2, 8)
	}
	what := d.cutLine(row.ActionText, wide)
	line := d.colorize(as.color, as.word) + strings.Repeat(" ", 7-len(as.word)) + what
	if reason := shortReason(row.Verdict.Reasoning, row.Verdict.ErrorCode); reason != "" {
		line += strings.Repeat(" ", wide-term.Width(what)+2) + d.cutLine(reason, room)
	}
	d.writeLine("", line)
	return d.Flush()
}

// findingPrefix is the begin of a reason that a rule gives: what went wrong with the review, if anything, and the
// rule. People are shown the rest.
var findingPrefix = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[^:;\[]*: )?(?:policy|heuristic)[a-z ]*\[[^\]]*\]: `)
})

// shortReason returns the reason of a verdict without the rule's name at its beginning and the advice to the
// agent at its end. If a rule asked, but no one could be asked, the reason says so.
func shortReason(reasoning, errorCode string) string {
	finding := strings.TrimPrefix(reasoning, findingPrefix().FindString(reasoning))
	reason, _, _ := strings.Cut(finding, "; ")
	if finding != reasoning && (errorCode == "unavailable" || errorCode == "nobody") {
		return "no one could be asked: " + reason
	}
	return reason
}

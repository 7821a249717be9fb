package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An AuditPage is the content of the HTML report of an audit log.
type AuditPage struct {
	Summary             *audit.Summary
	ChainIntact         bool   // the hash chain is intact
	VerificationText    string // result of the verification
	SuggestedPolicyYAML string // a policy with exceptions for repeatedly approved actions; "" for none
}

type logPage struct {
	Verified            htmlCheck
	Period              string
	Days                []dayBar
	Tables              []htmlTable
	SuggestedPolicyText string
}

// A dayBar is one day of the chart, which is 100 wide and high.
type dayBar struct {
	Title string
	Parts []htmlBar
}

// WriteAuditPageHTML writes an HTML page without scripts and external files: decisions over time, by rule,
// caller and session, the last actions that were not allowed, and the exceptions that 'policy suggest'
// proposes.
func WriteAuditPageHTML(w io.Writer, auditPage *AuditPage) error {
	t, err := templates()
	if err != nil {
		return err
	}
	s := auditPage.Summary
	page := logPage{Verified: htmlCheck{auditPage.ChainIntact, escapeInvisible(auditPage.VerificationText)}, Period: "No verdict.", Days: dayBars(s.Days), SuggestedPolicyText: escapeLines(auditPage.SuggestedPolicyYAML)}
	if s.Total.Sum() > 0 {
		page.Period = fmt.Sprintf("%d verdicts from %s to %s.", s.Total.Sum(), s.First.UTC().Format("2006-01-02 15:04"), s.Last.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if n := s.OtherEntriesByKind[audit.EntryKindHookTest]; n > 0 {
		page.Period += fmt.Sprintf(" %d probes of 'shield hook status' are not counted.", n)
	}
	rows := []reportTable{
		countTable("Total", "", []audit.NamedCounts{{Name: "all", Counts: s.Total}}),
		questionTable(s.Rules),
		countTable("By rule", "rule", s.Rules),
		countTable("By caller", "caller", s.Callers),
		countTable("By session", "session", s.Sessions),
		stoppedTable(s.Stopped),
		countTable("By day", "day", s.Days),
	}
	for _, t := range rows {
		if len(t.rows) > 0 {
			page.Tables = append(page.Tables, htmlTableOf(t))
		}
	}
	return t.ExecuteTemplate(w, "log.html", page)
}

// maxLogRows is how many rows of a table the page shows.
const maxLogRows = 100

func countTable(title, name string, list []audit.NamedCounts) reportTable {
	t := reportTable{title: title, head: []string{name, "verdicts", "allowed", "blocked", "not decided", "approved", "denied"}}
	if len(list) > maxLogRows {
		t.title += fmt.Sprintf(", %d of %d", maxLogRows, len(list))
		list = list[:maxLogRows]
	}
	for _, n := range list {
		row := []string{cmp.Or(n.Name, "–")}
		for _, count := range []int{n.Sum(), n.Allowed, n.Blocked, n.Escalated, n.Approved, n.Denied} {
			row = append(row, strconv.Itoa(count))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// minAnsweredQuestions is the least number of questions of a rule that is checked for false alarms.
const minAnsweredQuestions = 3

// questionTable lists the rules with at least minAnsweredQuestions answered questions, of which people approved at
// least 90 %.
func questionTable(rules []audit.NamedCounts) reportTable {
	t := reportTable{title: "Rules whose questions were mostly approved (possible false alarms)", head: []string{"rule", "asked", "approved", "share"}}
	for _, n := range rules {
		asked := n.Approved + n.Denied
		if asked >= minAnsweredQuestions && 10*n.Approved >= 9*asked && len(t.rows) < maxLogRows {
			t.rows = append(t.rows, []string{n.Name, strconv.Itoa(asked), strconv.Itoa(n.Approved), formatPercent(float64(n.Approved) / float64(asked))})
		}
	}
	return t
}

func stoppedTable(list []audit.StoppedAction) reportTable {
	t := reportTable{title: "Last actions that were not allowed", head: []string{"time (UTC)", "decision", "rule", "caller", "action", "reason"}}
	for i := range list {
		s := &list[i]
		t.rows = append(t.rows, []string{
			s.Time.UTC().Format("01-02 15:04:05"), s.Decision.String(), s.Rule, s.Caller, s.Payload, shortReason(&verdict.Verdict{Rule: s.Rule, Reasoning: s.Reasoning}),
		})
	}
	return t
}

// dayBars returns the bars of the days, each with allowed actions below the others.
func dayBars(days []audit.NamedCounts) []dayBar {
	most := 1
	for _, d := range days {
		most = max(most, d.Sum())
	}
	out := make([]dayBar, len(days))
	width := 100 / float64(max(len(days), 14))
	for i, d := range days {
		ok := d.Allowed + d.Approved
		out[i].Title = fmt.Sprintf("%s: %d allowed, %d not", d.Name, ok, d.Sum()-ok)
		from := 100.0
		for _, part := range []struct {
			class string
			n     int
		}{{"honest", ok}, {"attacks", d.Sum() - ok}} {
			h := 100 * float64(part.n) / float64(most)
			from -= h
			out[i].Parts = append(out[i].Parts, htmlBar{part.class, fmt.Sprintf("%.2f", float64(i)*width), fmt.Sprintf("%.2f", from), fmt.Sprintf("%.2f", width*0.9), fmt.Sprintf("%.2f", h)})
		}
	}
	return out
}

// escapeLines escapes invisible characters in each line of a text, and keeps the line breaks.
func escapeLines(s string) string {
	list := strings.Split(s, "\n")
	for i := range list {
		list[i] = escapeInvisible(list[i])
	}
	return strings.Join(list, "\n")
}

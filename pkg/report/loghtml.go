package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/audit"
)

// An AuditPage is the content of the HTML report of an audit log.
type AuditPage struct {
	Summary               *audit.Summary
	ChainIntact           bool   // the hash chain is intact
	ChainVerificationText string // result of the verification
	SuggestedPolicyYAML   string // a policy with exceptions for repeatedly approved actions; "" for none
}

type auditPageData struct {
	Verified            htmlCheckResult
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
	t, err := pageTemplates()
	if err != nil {
		return err
	}
	s := auditPage.Summary
	page := auditPageData{Verified: htmlCheckResult{auditPage.ChainIntact, escapeInvisible(auditPage.ChainVerificationText)}, Period: "No verdict.", Days: dayBars(s.Days), SuggestedPolicyText: escapeInvisibleInLines(auditPage.SuggestedPolicyYAML)}
	if s.Total.Sum() > 0 {
		page.Period = fmt.Sprintf("%d verdicts from %s to %s.", s.Total.Sum(), s.FirstVerdictTime.UTC().Format("2006-01-02 15:04"), s.LastVerdictTime.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if n := s.NonVerdictCountByKind[audit.EntryKindHookTest]; n > 0 {
		page.Period += fmt.Sprintf(" %d probes of 'shield hook status' are not counted.", n)
	}
	rows := []reportTable{
		verdictCountTable("Total", "", []audit.NamedVerdictCounts{{Name: "all", VerdictCounts: s.Total}}),
		mostlyApprovedRulesTable(s.Rules),
		verdictCountTable("By rule", "rule", s.Rules),
		verdictCountTable("By caller", "caller", s.Callers),
		verdictCountTable("By session", "session", s.Sessions),
		stoppedActionTable(s.Stopped),
		verdictCountTable("By day", "day", s.Days),
	}
	for _, t := range rows {
		if len(t.rows) > 0 {
			page.Tables = append(page.Tables, htmlTableOf(t))
		}
	}
	return t.ExecuteTemplate(w, "log.html", page)
}

// maxAuditTableRows is how many rows of a table the page shows.
const maxAuditTableRows = 100

func verdictCountTable(title, nameColumnTitle string, list []audit.NamedVerdictCounts) reportTable {
	t := reportTable{title: title, head: []string{nameColumnTitle, "verdicts", "allowed", "blocked", "not decided", "approved", "denied"}}
	if len(list) > maxAuditTableRows {
		t.title += fmt.Sprintf(", %d of %d", maxAuditTableRows, len(list))
		list = list[:maxAuditTableRows]
	}
	for _, n := range list {
		row := []string{cmp.Or(n.Name, "–")}
		for _, count := range []int{n.Sum(), n.Allowed, n.Blocked, n.Escalated, n.ApprovedByPerson, n.DeniedByPerson} {
			row = append(row, strconv.Itoa(count))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// minAnsweredQuestionsPerRule is the minimum number of answered questions that a rule must have to
// be listed as a possible cause of false alarms.
const minAnsweredQuestionsPerRule = 3

// mostlyApprovedRulesTable lists the rules with at least minAnsweredQuestionsPerRule answered questions, of which people approved at
// least 90 %.
func mostlyApprovedRulesTable(rules []audit.NamedVerdictCounts) reportTable {
	t := reportTable{title: "Rules whose questions were mostly approved (possible false alarms)", head: []string{"rule", "asked", "approved", "share"}}
	for _, n := range rules {
		asked := n.ApprovedByPerson + n.DeniedByPerson
		if asked >= minAnsweredQuestionsPerRule && 10*n.ApprovedByPerson >= 9*asked && len(t.rows) < maxAuditTableRows {
			t.rows = append(t.rows, []string{n.Name, strconv.Itoa(asked), strconv.Itoa(n.ApprovedByPerson), formatPercent(float64(n.ApprovedByPerson) / float64(asked))})
		}
	}
	return t
}

func stoppedActionTable(list []audit.StoppedAction) reportTable {
	t := reportTable{title: "Last actions that were not allowed", head: []string{"time (UTC)", "decision", "rule", "caller", "action", "reason"}}
	for i := range list {
		s := &list[i]
		t.rows = append(t.rows, []string{
			s.Time.UTC().Format("01-02 15:04:05"), s.Decision.String(), s.Rule, s.Caller, s.Payload, shortReason(s.Reasoning, s.Error),
		})
	}
	return t
}

// dayBars returns the bars of the days, each with allowed actions below the others.
func dayBars(days []audit.NamedVerdictCounts) []dayBar {
	most := 1
	for _, d := range days {
		most = max(most, d.Sum())
	}
	out := make([]dayBar, len(days))
	width := 100 / float64(max(len(days), 14))
	for i, d := range days {
		ok := d.Allowed + d.ApprovedByPerson
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

// escapeInvisibleInLines escapes invisible characters in each line of a text, and keeps the line breaks.
func escapeInvisibleInLines(s string) string {
	list := strings.Split(s, "\n")
	for i := range list {
		list[i] = escapeInvisible(list[i])
	}
	return strings.Join(list, "\n")
}

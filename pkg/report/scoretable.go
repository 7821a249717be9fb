package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A reportTable is one table of a score, for any format.
type reportTable struct {
	title          string
	head           []string
	rows           [][]string
	totalsRowCount int // rows at the end with totals
}

// tables returns a score's figures as tables, without empty ones.
func (s *CorpusScore) tables() []reportTable {
	var out []reportTable
	add := func(t reportTable) {
		if len(t.rows) > 0 {
			out = append(out, t)
		}
	}
	add(s.summaryTable())
	add(rowsByVerdictTierTable(s))
	for _, part := range []struct {
		name   string
		p      *CorpusLabelResult
		attack bool
	}{{"Attacks", &s.Attacks, true}, {"Honest", &s.Benign, false}, {"For a person", &s.PersonDecisionRows, false}} {
		if part.p.Total.Rows == 0 {
			continue
		}
		add(decisionCountTable(part.name+" by source", part.p.Sources, part.p.Total, part.attack))
		add(decisionCountTable(part.name+" by category", part.p.Categories, part.p.Total, part.attack))
	}
	add(latencyTable(s.TierLatencies))
	add(modelROCCurveTable(s.ModelROCCurve))
	for _, t := range s.misjudgedRowTables() {
		add(t)
	}
	return out
}

// misjudgedRowTables returns the tables of the rows whose decision contradicts their label: attacks that were
// allowed, and honest actions that were not.
func (s *CorpusScore) misjudgedRowTables() []reportTable {
	return []reportTable{misjudgedRowTable("Attacks that passed", s.AllowedAttacks), misjudgedRowTable("Honest actions that were stopped", s.StoppedBenign)}
}

// headline summarises in one line what was judged and how.
func (s *CorpusScore) headline() string {
	line := fmt.Sprintf("policy %s, model %s, tiers up to %s: %d rows judged", s.PolicyName, s.Model, s.LastEnabledTierName, s.JudgedRows)
	for _, more := range []struct {
		n    int
		what string
	}{{s.ExcludedRows, "not chosen"}, {s.RowsWithoutAction, "with a text instead of an action (not judged)"}, {s.MalformedRows, "malformed"}} {
		if more.n > 0 {
			line += fmt.Sprintf("; %d %s", more.n, more.what)
		}
	}
	return line
}

func (s *CorpusScore) summaryTable() reportTable {
	t := reportTable{title: "Total", head: []string{"", "rows", "ALLOW", "ESCALATE", "BLOCK", "rate", "share", "95 %"}}
	add := func(name string, g *DecisionCounts, rate string, r RowShareWithInterval) {
		t.rows = append(t.rows, append(append([]string{name}, decisionCountCells(g)...), rate, formatPercent(r.Share), formatInterval(r)))
	}
	if g := &s.Attacks.Total; g.Rows > 0 {
		add("attacks", g, "passed", g.Allowed())
	}
	if g := &s.Benign.Total; g.Rows > 0 {
		add("honest", g, "not allowed", g.NotAllowed())
		add("", g, "blocked", g.Blocked())
	}
	if g := &s.PersonDecisionRows.Total; g.Rows > 0 {
		add("for a person", g, "allowed", g.Allowed())
	}
	return t
}

func rowsByVerdictTierTable(s *CorpusScore) reportTable {
	t := reportTable{title: "Rows by the tier of their verdict", head: []string{"", "0 policy", "1 classify", "2 evaluate", "3 approve"}}
	for _, p := range []struct {
		name string
		g    *DecisionCounts
	}{{"attacks", &s.Attacks.Total}, {"honest", &s.Benign.Total}, {"for a person", &s.PersonDecisionRows.Total}} {
		if p.g.Rows == 0 {
			continue
		}
		row := []string{p.name}
		for _, n := range p.g.VerdictsByTier {
			row = append(row, strconv.Itoa(n))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func decisionCountCells(g *DecisionCounts) []string {
	return []string{strconv.Itoa(g.Rows), strconv.Itoa(g.Allow), strconv.Itoa(g.Escalate), strconv.Itoa(g.Block)}
}

func decisionCountTable(title string, groups []DecisionCounts, total DecisionCounts, areAttackRows bool) reportTable {
	t := reportTable{title: title, head: []string{"", "rows", "ALLOW", "ESCALATE", "BLOCK"}, totalsRowCount: 1}
	if areAttackRows {
		t.head = append(t.head, "passed", "95 %")
	} else {
		t.head = append(t.head, "not allowed", "95 %", "blocked", "95 %")
	}
	total.RowGroupName = "total"
	for i := range len(groups) + 1 {
		g := &total
		if i < len(groups) {
			g = &groups[i]
		}
		row := append([]string{g.RowGroupName}, decisionCountCells(g)...)
		if r := g.Allowed(); areAttackRows {
			row = append(row, formatPercent(r.Share), formatInterval(r))
		} else {
			r, b := g.NotAllowed(), g.Blocked()
			row = append(row, formatPercent(r.Share), formatInterval(r), formatPercent(b.Share), formatInterval(b))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func latencyTable(ls []TierLatency) reportTable {
	t := reportTable{title: "Latency", head: []string{"", "actions", "p50", "p95", "p99", "worst"}}
	for _, l := range ls {
		t.rows = append(t.rows, []string{l.TierNameOrWholeJudgement, strconv.Itoa(l.Count), formatDuration(l.P50), formatDuration(l.P95), formatDuration(l.P99), formatDuration(l.Max)})
	}
	return t
}

// formatDuration formats a time with three digits.
func formatDuration(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d >= u.of {
			return fmt.Sprintf("%.3g %s", float64(d)/float64(u.of), u.name)
		}
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

func modelROCCurveTable(c *ROCCurve) reportTable {
	if c == nil {
		return reportTable{}
	}
	return reportTable{
		title: "Model alone",
		head:  []string{"attacks", "honest", "AUC", "attacks found at 1 % false alarms", "at 5 %"},
		rows: [][]string{{
			strconv.Itoa(sumCounts(c.AttackScoreHistogram)), strconv.Itoa(sumCounts(c.BenignScoreHistogram)),
			fmt.Sprintf("%.3f", c.AUC), formatPercent(c.MaxStoppedAttackShare(0.01)), formatPercent(c.MaxStoppedAttackShare(0.05)),
		}},
	}
}

func sumCounts(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

func misjudgedRowTable(title string, rows []MisjudgedRow) reportTable {
	t := reportTable{title: title, head: []string{"id", "category", "decision", "tier", "confidence", "rule", "action"}}
	for i := range rows {
		m := &rows[i]
		t.rows = append(t.rows, []string{m.ID, m.Category, m.Decision, strconv.Itoa(m.Tier), fmt.Sprintf("%.2f", m.Confidence), m.Rule, m.ActionSummary})
	}
	return t
}

// writeScoreTable writes aligned columns: names left-aligned, figures right-aligned.
func writeScoreTable(w io.Writer, s *CorpusScore) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, escapeInvisible(s.headline()))
	for _, t := range s.tables() {
		fmt.Fprintf(b, "\n%s\n", t.title)
		writeColumns(b, t)
	}
	for _, c := range s.Checks {
		fmt.Fprintf(b, "\n%s\n", c)
	}
	return b.Flush()
}

func writeColumns(b *bufio.Writer, t reportTable) {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(escapeInvisible(cell)))
		}
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		line := " "
		for i, cell := range row {
			cell = escapeInvisible(cell)
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 || !isNumericColumn(t, i) {
				line += " " + cell + pad
			} else {
				line += " " + pad + cell
			}
			line += " "
		}
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
}

// isNumericColumn reports whether a column contains numbers, which are right-aligned.
func isNumericColumn(t reportTable, col int) bool {
	for _, row := range t.rows {
		if c := row[col]; c != "" && (c[0] < '0' || c[0] > '9') {
			return false
		}
	}
	return true
}

func writeScoreMarkdown(w io.Writer, s *CorpusScore) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n", markdownCell(s.headline()))
	for _, t := range s.tables() {
		fmt.Fprintf(b, "\n### %s\n\n", t.title)
		line := "|"
		for i := range t.head {
			if i > 0 && isNumericColumn(t, i) {
				line += " --: |"
			} else {
				line += " --- |"
			}
		}
		fmt.Fprintf(b, "%s\n%s\n", markdownRow(t.head), line)
		for _, row := range t.rows {
			fmt.Fprintln(b, markdownRow(row))
		}
	}
	for _, c := range s.Checks {
		fmt.Fprintf(b, "\n%s\n", markdownCell(c.String()))
	}
	return b.Flush()
}

func markdownRow(cells []string) string {
	line := "|"
	for _, c := range cells {
		line += " " + markdownCell(c) + " |"
	}
	return line
}

// markdownCell escapes characters that would end a cell or begin markup: an action's text could
// otherwise add links, images and HTML to a page.
func markdownCell(s string) string {
	var b strings.Builder
	for _, r := range escapeInvisible(s) {
		switch r {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '\\', '`', '*', '_', '[', ']', '|', '~', '#', '!', '$', '@', '>':
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// MarshalJSON adds the rates to the counts.
func (g DecisionCounts) MarshalJSON() ([]byte, error) {
	type plain DecisionCounts
	return json.Marshal(struct {
		plain
		Allowed    RowShareWithInterval `json:"allowed"`
		NotAllowed RowShareWithInterval `json:"not_allowed"`
		Blocked    RowShareWithInterval `json:"blocked"`
	}{plain(g), g.Allowed(), g.NotAllowed(), g.Blocked()})
}

func writeScoreJSON(w io.Writer, s *CorpusScore) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}

package scan

import (
	"fmt"
	"strings"

	"github.com/shieldcli/shield/internal/term"
)

// A ReportSection is one table or text of a report.
type ReportSection struct {
	Title            string
	TableHeaderCells []string
	Rows             [][]string
	Text             string // a policy
}

// Headline returns one line about what was read.
func (r *Report) Headline() string {
	var hosts []string
	for _, h := range r.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s %d", h.Host, h.Conversations))
	}
	from := ""
	if len(hosts) > 0 {
		from = " (" + strings.Join(hosts, ", ") + ")"
	}
	return fmt.Sprintf("policy %s: %d tool calls of %d tasks%s in %d files", r.PolicyName, r.Calls, r.Conversations, from, r.Files)
}

// Sections returns the report as tables, without empty tables.
func (r *Report) Sections() (out []ReportSection) {
	add := func(s ReportSection) {
		if len(s.Rows) > 0 || s.Text != "" {
			out = append(out, s)
		}
	}
	share := func(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(of, 1))) }
	add(ReportSection{Title: "Replayed with shield", TableHeaderCells: []string{"", "number", ""}, Rows: [][]string{
		{"tasks without an interruption", fmt.Sprint(r.ConversationsWithoutShieldInterruption), share(r.ConversationsWithoutShieldInterruption, r.Conversations)},
		{"questions", fmt.Sprint(r.EscalatedCalls), fmt.Sprintf("%.2f per task", float64(r.EscalatedCalls)/float64(max(r.Conversations, 1)))},
		{"blocks", fmt.Sprint(r.BlockedCalls), fmt.Sprintf("%.2f per task", float64(r.BlockedCalls)/float64(max(r.Conversations, 1)))},
		{"interruptions per 100 calls", fmt.Sprintf("%.2f", r.InterruptionsPer100Calls), ""},
		{"calls with a missing file (not judged)", fmt.Sprint(r.CallsOnFilesMissingAtScan), share(r.CallsOnFilesMissingAtScan, r.Calls)},
		{"questions to a model (Tier 2) per day", fmt.Sprintf("%.1f", r.Tier2CallsPerDay.CallsPerDay), fmt.Sprintf("at most %d a day; %d days counted", r.Tier2CallsPerDay.MaxCallsPerDay, r.Tier2CallsPerDay.DaysWithAnyToolCall)},
		{"refused by a person or the host", fmt.Sprint(r.CallsRefusedInTranscript), share(r.CallsRefusedInTranscript, r.Calls)},
		{"without a result", fmt.Sprint(r.CallsWithoutResult), share(r.CallsWithoutResult, r.Calls)},
		{"also in another transcript, counted once", fmt.Sprint(r.DuplicateCallsAcrossTranscripts), ""},
	}})
	causes := ReportSection{Title: "Most frequent causes", TableHeaderCells: []string{"times", "", "rule", "example", "where"}}
	for _, c := range r.InterruptionCauses {
		what := "question"
		if c.Decision == "BLOCK" {
			what = "block"
		}
		rule := c.Rule
		if rule == "" {
			rule = c.Reason
		}
		causes.Rows = append(causes.Rows, []string{fmt.Sprint(c.Times), what, rule, c.ExampleCall, c.TranscriptPosition})
	}
	add(causes)
	danger := ReportSection{Title: fmt.Sprintf("Would be blocked, but ran (%d)", len(r.DangerousCalls)+r.OmittedDangerousCallCount), TableHeaderCells: []string{"rule", "reason", "example", "where"}}
	for _, d := range r.DangerousCalls[:min(len(r.DangerousCalls), 20)] {
		danger.Rows = append(danger.Rows, []string{d.Rule, d.Reason, d.CallSummary, d.TranscriptPosition})
	}
	add(danger)
	secrets := ReportSection{Title: "Credentials that reached the model", TableHeaderCells: []string{"kind", "results", "first call", "where"}}
	for _, s := range r.CredentialsShownToModel {
		secrets.Rows = append(secrets.Rows, []string{s.Kind, fmt.Sprint(s.Times), s.ExampleCall, s.TranscriptPosition})
	}
	add(secrets)
	loops := ReportSection{Title: fmt.Sprintf("Loops: the same call %d times in a row or more", minLoopCalls), TableHeaderCells: []string{"times", "call", "where"}}
	for _, l := range r.Loops {
		loops.Rows = append(loops.Rows, []string{fmt.Sprint(l.Times), l.ExampleCall, l.TranscriptPosition})
	}
	add(loops)
	if s := r.SuggestedExceptions; s != nil {
		add(ReportSection{
			Title: fmt.Sprintf("Proposed exceptions: %d, which save %d questions and leave %.2f interruptions per 100 calls", s.Count, s.AvoidedQuestions, s.RemainingInterruptionsPer100Calls),
			Text:  s.PolicyYAML,
		})
	}
	odd := ReportSection{Title: "Records that were not read", TableHeaderCells: []string{"records", "kind"}}
	for _, u := range r.UnknownRecordKinds[:min(len(r.UnknownRecordKinds), 20)] {
		odd.Rows = append(odd.Rows, []string{fmt.Sprint(u.Times), u.RecordKind})
	}
	add(odd)
	left := ReportSection{Title: fmt.Sprintf("Transcripts that were skipped (%d)", len(r.SkippedFiles)+r.OmittedSkippedFileCount), TableHeaderCells: []string{"file", "why"}}
	for _, l := range r.SkippedFiles[:min(len(r.SkippedFiles), 20)] {
		left.Rows = append(left.Rows, []string{term.EscapeControlAndInvisible(l.File), term.EscapeControlAndInvisible(l.Reason)})
	}
	add(left)
	return out
}

// Text returns the report for a terminal with a number of columns.
func (r *Report) Text(columns int) string {
	var b strings.Builder
	b.WriteString(r.Headline() + "\n")
	for _, s := range r.Sections() {
		b.WriteString("\n" + s.Title + "\n")
		if s.Text != "" {
			for line := range strings.Lines(s.Text) {
				b.WriteString("  " + term.EscapeControlAndInvisible(strings.TrimSuffix(line, "\n")) + "\n")
			}
			continue
		}
		s.writeTable(&b, columns)
	}
	return b.String()
}

// writeTable writes a table. Cells that do not fit on a line are written below it.
func (s *ReportSection) writeTable(b *strings.Builder, columns int) {
	wide := 0 // number of leading columns that are aligned; the cells of the other columns are written below
	widths := make([]int, len(s.TableHeaderCells))
	for i := range s.TableHeaderCells {
		for _, row := range s.Rows {
			widths[i] = max(widths[i], term.Width(row[i]))
		}
		if widths[i] > 40 || i == len(s.TableHeaderCells)-1 && len(s.TableHeaderCells) > 3 {
			break
		}
		wide = i + 1
	}
	for _, row := range s.Rows {
		line := " "
		for i, cell := range row[:wide] {
			line += " " + cell + strings.Repeat(" ", widths[i]-term.Width(cell))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, cell := range row[wide:] {
			for _, part := range term.WrapLines(cell, max(columns-8, 20)) {
				b.WriteString("        " + part + "\n")
			}
		}
	}
}

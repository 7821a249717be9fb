package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
)

//go:embed *.html
var pageFiles embed.FS

// pageTemplates holds the templates of all pages, by file name.
var pageTemplates = sync.OnceValues(func() (*template.Template, error) { return template.ParseFS(pageFiles, "*.html") })

// The data of score.html, the HTML page of a score. Invisible characters are escaped here, and the template
// escapes the texts for HTML.
type (
	scorePageData struct {
		Headline              string
		MisjudgedRowSummaries []string    // sentences with the numbers of attacks that passed and of honest actions that were not allowed
		MisjudgedRowTables    []htmlTable // tables of the worst rows that were judged against their labels
		Checks                []htmlCheckResult
		Plot                  *htmlROCPlot
		Tables                []htmlTable
	}
	htmlCheckResult struct {
		OK   bool
		Text string
	}
	htmlTable struct {
		Title string
		Head  []htmlCell
		Rows  []htmlRow
	}
	htmlRow struct {
		Total bool
		Cells []htmlCell
	}
	htmlCell struct {
		IsNumber bool
		Text     string
	}
	htmlROCPlot struct {
		AUC               float64
		ROCPolylinePoints string
		Bars              []htmlBar
	}
	htmlBar struct{ Class, X, Y, Width, Height string }
)

// writeScoreHTML writes an HTML page without scripts and external files.
func writeScoreHTML(w io.Writer, s *CorpusScore) error {
	t, err := pageTemplates()
	if err != nil {
		return err
	}
	page := scorePageData{Headline: escapeInvisible(s.headline()), Plot: newPlot(s.ModelROCCurve)}
	for _, c := range s.Checks {
		page.Checks = append(page.Checks, htmlCheckResult{c.OK, escapeInvisible(c.String())})
	}
	if g := s.Attacks.Total; g.Rows > 0 {
		page.MisjudgedRowSummaries = append(page.MisjudgedRowSummaries, fmt.Sprintf("%d of %d attacks passed (%s).", g.Allow, g.Rows, formatPercent(g.Allowed().Share)))
	}
	if g := s.Benign.Total; g.Rows > 0 {
		page.MisjudgedRowSummaries = append(page.MisjudgedRowSummaries, fmt.Sprintf("%d of %d honest actions were not allowed (%s).", g.Rows-g.Allow, g.Rows, formatPercent(g.NotAllowed().Share)))
	}
	all := s.tables()
	missed := slices.DeleteFunc(s.misjudgedRowTables(), func(t reportTable) bool { return len(t.rows) == 0 })
	for _, t := range missed {
		page.MisjudgedRowTables = append(page.MisjudgedRowTables, htmlTableOf(t))
	}
	for _, t := range all[:len(all)-len(missed)] { // without the tables of misjudged rows, which come last and were added above
		page.Tables = append(page.Tables, htmlTableOf(t))
	}
	return t.ExecuteTemplate(w, "score.html", page)
}

func htmlTableOf(t reportTable) htmlTable {
	cells := func(texts []string) []htmlCell {
		out := make([]htmlCell, len(texts))
		for i, text := range texts {
			out[i] = htmlCell{i > 0 && isNumericColumn(t, i), escapeInvisible(text)}
		}
		return out
	}
	out := htmlTable{Title: t.title, Head: cells(t.head)}
	for i, row := range t.rows {
		out.Rows = append(out.Rows, htmlRow{i >= len(t.rows)-t.totalsRowCount, cells(row)})
	}
	return out
}

// newPlot scales a curve to a square of 100 by 100.
func newPlot(c *ROCCurve) *htmlROCPlot {
	if c == nil {
		return nil
	}
	p := &htmlROCPlot{AUC: c.AUC}
	points := make([]string, len(c.Points))
	for i, pt := range c.Points {
		points[i] = fmt.Sprintf("%.2f,%.2f", 100*pt.StoppedBenignShare, 100-100*pt.StoppedAttackShare)
	}
	p.ROCPolylinePoints = strings.Join(points, " ")
	bars := func(class string, counts []int) {
		sum := 0
		for _, n := range counts {
			sum += n
		}
		width := 100 / float64(max(len(counts), 1))
		for i, n := range counts {
			if n == 0 {
				continue
			}
			h := 100 * float64(n) / float64(sum)
			p.Bars = append(p.Bars, htmlBar{class, fmt.Sprintf("%.2f", float64(i)*width), fmt.Sprintf("%.2f", 100-h), fmt.Sprintf("%.2f", width), fmt.Sprintf("%.2f", h)})
		}
	}
	bars("attacks", c.AttackScoreHistogram)
	bars("honest", c.BenignScoreHistogram)
	return p
}

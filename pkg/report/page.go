package report

import "io"

// An HTMLTablePage is a page of tables.
type HTMLTablePage struct {
	Title           string
	IntroParagraphs []string
	Sections        []PageSection
}

// A PageSection is a table of a page, or a text.
type PageSection struct {
	Title string
	Head  []string
	Rows  [][]string
	Text  string
}

// WriteHTMLTablePage writes an HTML page without scripts and external files.
func WriteHTMLTablePage(w io.Writer, p HTMLTablePage) error {
	t, err := pageTemplates()
	if err != nil {
		return err
	}
	type text struct{ Title, Text string }
	page := struct {
		Title  string
		Lines  []string
		Tables []htmlTable
		Texts  []text
	}{Title: escapeInvisible(p.Title)}
	for _, line := range p.IntroParagraphs {
		page.Lines = append(page.Lines, escapeInvisible(line))
	}
	for _, s := range p.Sections {
		if s.Text != "" {
			page.Texts = append(page.Texts, text{escapeInvisible(s.Title), escapeInvisibleInLines(s.Text)})
			continue
		}
		page.Tables = append(page.Tables, htmlTableOf(reportTable{title: s.Title, head: s.Head, rows: s.Rows}))
	}
	return t.ExecuteTemplate(w, "page.html", page)
}

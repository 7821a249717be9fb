package report

import (
	"encoding/xml"
	"fmt"
	"io"
)

type junitScore struct {
	XMLName  xml.Name         `xml:"testsuite"`
	Name     string           `xml:"name,attr"`
	Tests    int              `xml:"tests,attr"`
	Failures int              `xml:"failures,attr"`
	Skipped  int              `xml:"skipped,attr"`
	Cases    []junitScoreCase `xml:"testcase"`
}

type junitScoreCase struct {
	Class     string        `xml:"classname,attr"`
	Name      string        `xml:"name,attr"`
	Failure   *junitFailure `xml:"failure,omitempty"`
	Skipped   *junitFailure `xml:"skipped,omitempty"`
	SystemOut string        `xml:"system-out,omitempty"`
}

// writeScoreJUnit writes a test case for each limit and each row. A row judged against its label
// fails, or is skipped while the limit for its label is met: a build server then shows the row, but
// does not count it.
func writeScoreJUnit(w io.Writer, s *CorpusScore) error {
	suite := junitScore{Name: "shield score"}
	met := map[string]bool{} // whether the limit is met, by the label that it applies to
	for _, c := range s.Checks {
		j := junitScoreCase{Class: "limits", Name: c.LimitName, SystemOut: c.String()}
		if !c.OK {
			suite.Failures++
			j.Failure = &junitFailure{Message: escapeInvisible(c.String()), Text: escapeInvisible(s.headline())}
		}
		met[c.RowLabel] = c.OK
		suite.Cases = append(suite.Cases, j)
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		j := junitScoreCase{Class: escapeInvisible(r.Label + "." + r.Source), Name: escapeInvisible(r.ID)}
		said := &junitFailure{Message: escapeInvisible(fmt.Sprintf("label %s, got %s in tier %d", r.Label, r.Decision, r.Tier)), Text: escapeInvisible(r.Reasoning + "\n" + r.ActionSummary)}
		switch {
		case !r.contradictsLabel():
		case met[r.Label]:
			suite.Skipped++
			j.Skipped = said
		default:
			suite.Failures++
			j.Failure = said
		}
		suite.Cases = append(suite.Cases, j)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

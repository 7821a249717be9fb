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
	Cases    []junitScoreCase `xml:"testcase"`
}

type junitScoreCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

// writeScoreJUnit writes a test case for each limit, and one that cannot fail
// for each source, which carries its figures.
func writeScoreJUnit(w io.Writer, s *Score) error {
	suite := junitScore{Name: "shield score"}
	for _, c := range s.Checks {
		j := junitScoreCase{Class: "limits", Name: c.Name, Out: c.String()}
		if !c.OK {
			suite.Failures++
			j.Failure = &junitFailure{Message: visible(c.String()), Text: visible(s.headline())}
		}
		suite.Cases = append(suite.Cases, j)
	}
	for _, part := range []struct {
		name string
		p    *Part
	}{{"attacks", &s.Attacks}, {"honest", &s.Honest}, {"for a person", &s.Ask}} {
		for i := range part.p.Sources {
			g := &part.p.Sources[i]
			suite.Cases = append(suite.Cases, junitScoreCase{
				Class: part.name, Name: visible(g.Name),
				Out: fmt.Sprintf("%d rows: ALLOW %d, ESCALATE %d, BLOCK %d; allowed %s (%s)",
					g.Rows, g.Allow, g.Escalate, g.Block, percent(g.Allowed().Share), interval(g.Allowed())),
			})
		}
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

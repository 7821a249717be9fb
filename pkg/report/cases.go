// Package report writes shield's results for people and for other tools.
package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A PolicyTestResult is the result of one tested expectation.
type PolicyTestResult struct {
	Suite         string `json:"suite"` // what was tested, such as a policy's name
	Name          string `json:"name"`
	File          string `json:"file"`
	Line          int    `json:"line"` // line in File, counted from 1
	Want          string `json:"want"`
	Got           string `json:"got"`
	DecidingRule  string `json:"rule,omitempty"` // the rule that decided
	ReasonOrError string `json:"why,omitempty"`
	OK            bool   `json:"ok"`
}

// A policyTestFormat writes tested cases.
type policyTestFormat struct {
	name  string
	write func(io.Writer, []PolicyTestResult) error
}

// policyTestFormats are the formats of tested cases, in the order help lists them.
var policyTestFormats = [...]policyTestFormat{
	{"text", writePolicyTestText},
	{"tap", writePolicyTestTAP},
	{"junit", writePolicyTestJUnit},
	{"json", writePolicyTestJSON},
}

// PolicyTestFormatNames returns the names of the formats that [WritePolicyTestResults] knows.
func PolicyTestFormatNames() []string {
	names := make([]string, len(policyTestFormats))
	for i, f := range policyTestFormats {
		names[i] = f.name
	}
	return names
}

// WritePolicyTestResults writes tested cases: as text for people, as TAP version 14, as JUnit XML, or as JSON
// Lines.
func WritePolicyTestResults(w io.Writer, format string, cases []PolicyTestResult) error {
	for _, f := range policyTestFormats {
		if f.name == format {
			return f.write(w, cases)
		}
	}
	return fmt.Errorf("unknown format %q; use %s", format, strings.Join(PolicyTestFormatNames(), ", "))
}

// writePolicyTestText lists the failures and counts the rest.
func writePolicyTestText(w io.Writer, cases []PolicyTestResult) error {
	failed := 0
	for i := range cases {
		c := &cases[i]
		if c.OK {
			continue
		}
		failed++
		_, err := fmt.Fprintf(w, "%s:%d: %s: %s\n\twant %s, got %s\n\t%s\n",
			escapeInvisible(c.File), c.Line, escapeInvisible(c.Suite), escapeInvisible(c.Name), escapeInvisible(c.Want), escapeInvisible(c.Got), escapeInvisible(c.ReasonOrError))
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d of %d cases as expected\n", len(cases)-failed, len(cases))
	return err
}

func writePolicyTestTAP(w io.Writer, cases []PolicyTestResult) error {
	if _, err := fmt.Fprintf(w, "TAP version 14\n1..%d\n", len(cases)); err != nil {
		return err
	}
	// A "#" would begin a directive: "# skip" hides a failure.
	name := strings.NewReplacer(`\`, `\\`, "#", `\#`)
	for i := range cases {
		c := &cases[i]
		result := "ok"
		if !c.OK {
			result = "not ok"
		}
		if _, err := fmt.Fprintf(w, "%s %d - %s\n", result, i+1, name.Replace(escapeInvisible(c.Suite+": "+c.Name))); err != nil {
			return err
		}
		if c.OK {
			continue
		}
		_, err := fmt.Fprintf(w, "  ---\n  at: %q\n  want: %q\n  got: %q\n  why: %q\n  ...\n",
			c.File+":"+strconv.Itoa(c.Line), c.Want, c.Got, escapeInvisible(c.ReasonOrError))
		if err != nil {
			return err
		}
	}
	return nil
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func writePolicyTestJUnit(w io.Writer, cases []PolicyTestResult) error {
	s := junitSuite{Name: "shield policy test", Tests: len(cases)}
	for i := range cases {
		c := &cases[i]
		j := junitCase{Class: escapeInvisible(c.Suite), Name: escapeInvisible(c.Name), File: escapeInvisible(c.File), Line: c.Line}
		if !c.OK {
			s.Failures++
			j.Failure = &junitFailure{Message: escapeInvisible("want " + c.Want + ", got " + c.Got), Text: escapeInvisible(c.ReasonOrError)}
		}
		s.Cases = append(s.Cases, j)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func writePolicyTestJSON(w io.Writer, cases []PolicyTestResult) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range cases {
		if err := enc.Encode(&cases[i]); err != nil {
			return err
		}
	}
	return nil
}

// escapeInvisible returns text with control, escape and bidirectional characters escaped, so that a case
// cannot control the terminal or end a line.
func escapeInvisible(s string) string {
	if strings.IndexFunc(s, isUnprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isUnprintable(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !strconv.IsPrint(r) }

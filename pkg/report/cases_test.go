package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"strings"
	"testing"
)

var sample = []PolicyTestResult{
	{Suite: "default", Name: "reads a key", File: "t.yaml", Line: 3, Want: "BLOCK", Got: "BLOCK", OK: true},
	{Suite: "default", Name: "lies # skip\nok 2 \x1b[2J\u202e", File: "t.yaml", Line: 9, Want: "ALLOW", Got: "ESCALATE 1", ReasonOrError: "no <rule> & \"nothing\""},
}

func TestWriteCases(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"text": `t.yaml:9: default: lies # skip\nok 2 \x1b[2J\u202e
	want ALLOW, got ESCALATE 1
	no <rule> & "nothing"
1 of 2 cases as expected
`,
		"tap": `TAP version 14
1..2
ok 1 - default: reads a key
not ok 2 - default: lies \# skip\\nok 2 \\x1b[2J\\u202e
  ---
  at: "t.yaml:9"
  want: "ALLOW"
  got: "ESCALATE 1"
  why: "no <rule> & \"nothing\""
  ...
`,
		"junit": xml.Header + `<testsuite name="shield policy test" tests="2" failures="1">
  <testcase classname="default" name="reads a key" file="t.yaml" line="3"></testcase>
  <testcase classname="default" name="lies # skip\nok 2 \x1b[2J\u202e" file="t.yaml" line="9">
    <failure message="want ALLOW, got ESCALATE 1">no &lt;rule&gt; &amp; &#34;nothing&#34;</failure>
  </testcase>
</testsuite>
`,
	}
	for format, want := range want {
		var b bytes.Buffer
		if err := WritePolicyTestResults(&b, format, sample); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, b.String(), want)
		}
	}
}

func TestWriteCasesJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WritePolicyTestResults(&b, "json", sample); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(sample) {
		t.Fatalf("%d lines for %d cases", len(lines), len(sample))
	}
	for i, line := range lines {
		var c PolicyTestResult
		if err := json.Unmarshal([]byte(line), &c); err != nil || c != sample[i] {
			t.Errorf("line %d: %+v, %v; want %+v", i, c, err, sample[i])
		}
	}
}

func TestWriteCasesUnknownFormat(t *testing.T) {
	t.Parallel()
	err := WritePolicyTestResults(new(bytes.Buffer), "yaml", sample)
	if err == nil || !strings.Contains(err.Error(), "text, tap, junit, json") {
		t.Errorf("error %v, want one that lists the formats", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteCasesReportsErrors(t *testing.T) {
	t.Parallel()
	for _, format := range PolicyTestFormatNames() {
		if err := WritePolicyTestResults(fullDisk{}, format, sample); err == nil {
			t.Errorf("%s: no error when nothing could be written", format)
		}
	}
}

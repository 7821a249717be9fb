package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestTableIsFresh checks that go generate would change nothing.
func TestTableIsFresh(t *testing.T) {
	want, err := generate("../rules")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../speech_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("speech_gen.go is older than its rules; run go generate ./pkg/evaluate")
	}
}

func TestExpandRefuses(t *testing.T) {
	if _, err := expand(map[string]string{"a": "x"}, "{a}{b}"); err == nil {
		t.Error("an unknown macro was accepted")
	}
}

// TestWrite holds how a pattern becomes an expression: macros are put in, a
// blank may be missing but in patterns on the text itself, and "~" is bounded.
func TestWrite(t *testing.T) {
	t.Parallel()
	macros := map[string]string{"verb": "(?:skip|{more})", "more": "leave out"}
	for _, c := range [...]struct{ on, pattern, want string }{
		{"", "{verb} it", "(?s)(?:skip|leave ?out) ?it"},
		{"text", "{verb} it", "(?s)(?:skip|leave out) it"},
		{"", "skip ?it", "(?s)skip ?it"},
		{"", "skip~it", "(?s)skip.{0,40}it"},
	} {
		var b bytes.Buffer
		if err := write(&b, macros, rule{ID: "a", Name: "b", On: c.on, Pattern: c.pattern}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "`"+c.want+"`") {
			t.Errorf("%q on %q: %s, want %s", c.pattern, c.on, b.String(), c.want)
		}
	}
	if got := quote("a`b"); got != "\"a`b\"" {
		t.Errorf("quoted as %s", got)
	}
}

// TestSources holds that a source that is wrong is refused with its file and
// rule, and that the table is written only from one that is right.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("rules", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range [...]struct{ text, names string }{
		{"rules: [{id: EV-1, pattern: '('}]", "EV-1"},
		{"rules: [{id: EV-1, pattern: '{who}'}]", "{who}"},
		{"rules: [{id: EV-1, colour: red}]", "colour"},
		{"rules: [{id: EV-1, name: n, pattern: ignore}]", ""},
	} {
		if err := os.WriteFile("rules/a.yaml", []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := generate("rules")
		switch {
		case c.names == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), "a.yaml")):
			t.Errorf("%s: error %v, which is to name the file and %q", c.text, err, c.names)
		}
	}
	main()
	if src, err := os.ReadFile("speech_gen.go"); err != nil || !bytes.Contains(src, []byte("EV-1")) {
		t.Errorf("%v\n%s", err, src)
	}
}

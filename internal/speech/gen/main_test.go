package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"rules"}, []string{"speech_gen.go"})
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
		var b, none bytes.Buffer
		if err := writeRuleToAddresseeTables(&b, &none, macros, phraseRuleYAML{ID: "a", Name: "b", On: c.on, Pattern: c.pattern}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "`"+c.want+"`") {
			t.Errorf("%q on %q: %s, want %s", c.pattern, c.on, b.String(), c.want)
		}
	}
	if got := quoteAsGoString("a`b"); got != "\"a`b\"" {
		t.Errorf("quoted as %s", got)
	}
}

// TestSources holds that a source that is wrong is refused with its file and
// rule, and that the table is written only from one that is right.
func TestSources(t *testing.T) {
	for text, name := range map[string]string{
		"rules: [{id: EV-1, pattern: '('}]":                                                        "EV-1",
		"rules: [{id: EV-1, pattern: '{who}'}]":                                                    "{who}",
		"rules: [{id: EV-1, colour: red}]":                                                         "colour",
		"rules: [{id: EV-1, to: nobody}]":                                                          "nobody",
		"rules: [{id: EV-1, to: agent, pattern: x}]":                                               "kind",
		"rules: [{id: EV-1, to: agent, kind: instruction, pattern: x}]":                            "severity",
		"rules: [{id: EV-1, to: agent, kind: instruction, severity: low, pattern: x, near: [ab]}]": "near",
	} {
		_, err := generatePhraseRules(gentest.WriteFolder(t, map[string]string{"a.yaml": text}))
		gentest.CheckErrorMentions(t, text, err, name, "a.yaml")
	}
	t.Chdir(gentest.WriteFolder(t, map[string]string{"rules/a.yaml": "rules: [{id: EV-1, name: n, pattern: ignore}]"}))
	main()
	if src, err := os.ReadFile("speech_gen.go"); err != nil || !bytes.Contains(src, []byte("EV-1")) {
		t.Errorf("%v\n%s", err, src)
	}
}

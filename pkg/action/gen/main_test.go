package main

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"names.yaml"}, []string{"names_gen.go"})
}

// TestRefuses holds that names which would be ambiguous, or belong to nothing,
// are refused, and what is named in the error.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"types: {a: [b], c: [B]}\nfields: {}":                          "stands for a and for c",
		"types: {read_file: [], c: [readFile]}":                        "read_file",
		"fields: {path: [file], url: [file]}":                          "field",
		"types: {a: []}\ntype_fields: {a: {x: [z], y: [z]}}":           `a: "z"`,
		"types: {a: []}\ntype_fields: {b: {x: [y]}}":                   "b is not a type",
		"types: {a: []}\nrequired: {b: [x]}":                           "b is not a type",
		"types: {a: []}\ncolours: {}":                                  "colours",
		"types: [a":                                                    "types",
		"types: {a: [b, B, a]}\nfields: {x: [y]}\nrequired: {a: []}\n": "",
	} {
		src, err := generateNameTables([]byte(text))
		if name != "" {
			gentest.CheckErrorMentions(t, text, err, name)
		} else if err != nil || !strings.Contains(string(src), "return nil, true") {
			t.Errorf("%s: %v\n%s", text, err, src)
		}
	}
}

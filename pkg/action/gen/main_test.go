package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestTableIsFresh(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../names.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../names_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("names_gen.go is older than names.yaml; run go generate ./pkg/action")
	}
}

// TestRefuses holds that names which would be ambiguous, or belong to nothing,
// are refused, and what is named in the error.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, names := range map[string]string{
		"types: {a: [b], c: [B]}\nfields: {}":                          "stands for a and for c",
		"types: {read_file: [], c: [readFile]}":                        "read_file",
		"fields: {path: [file], url: [file]}":                          "field",
		"types: {a: []}\ntype_fields: {a: {x: [z], y: [z]}}":           `a: "z"`,
		"types: {a: []}\ntype_fields: {b: {x: [y]}}":                   "b is no type",
		"types: {a: []}\nrequired: {b: [x]}":                           "b is no type",
		"types: {a: []}\ncolours: {}":                                  "colours",
		"types: [a":                                                    "types",
		"types: {a: [b, B, a]}\nfields: {x: [y]}\nrequired: {a: []}\n": "",
	} {
		src, err := generate([]byte(text))
		switch {
		case names == "":
			if err != nil || !strings.Contains(string(src), "return nil, true") {
				t.Errorf("%s: %v\n%s", text, err, src)
			}
		case err == nil || !strings.Contains(err.Error(), names):
			t.Errorf("%s: error %v, which is to name %q", text, err, names)
		}
	}
}

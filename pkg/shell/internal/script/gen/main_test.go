package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestTableIsFresh(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../calls.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../calls_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("calls_gen.go is older than calls.yaml; run go generate ./pkg/shell/internal/script")
	}
}

// TestFiles holds that the table is written beside its source, and only from a
// source that is right.
func TestFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := run(); err == nil {
		t.Error("no source, and no error")
	}
	write := func(text string) {
		if err := os.WriteFile("calls.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("- {role: dance, calls: x}")
	if err := run(); err == nil {
		t.Error("a wrong role was accepted")
	}
	if _, err := os.Stat("calls_gen.go"); err == nil {
		t.Error("a table was written from a wrong source")
	}
	write("- {role: delete, calls: x}")
	main()
	if src, err := os.ReadFile("calls_gen.go"); err != nil || !bytes.Contains(src, []byte("deletes")) {
		t.Errorf("%v\n%s", err, src)
	}
}

// TestGenerate holds that the entries of one name stay in their order, since
// the first that fits counts, and that a bad entry is refused with its number.
func TestGenerate(t *testing.T) {
	t.Parallel()
	src, err := generate([]byte("- {role: delete, calls: rm wipe, owner: os, in: python}\n- {role: list, calls: rm, notin: perl, unless: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(src)), " ")
	for _, want := range []string{
		`"rm": {{role: deletes, owner: []string{"os"}, in: []string{"python"}}, {role: lists, unless: []string{"x"}, notIn: []string{"perl"}}}`,
		`"wipe": {{role: deletes, owner: []string{"os"}, in: []string{"python"}}}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, src)
		}
	}
	for text, names := range map[string]string{
		"- {role: delete, calls: rm}\n- {role: dance, calls: x}": "entry 2",
		"- {role: delete}":                  "entry 1",
		"- {role: delete, calls: x, at: y}": "at",
		"- {role: delete, calls: x":         "",
	} {
		if _, err := generate([]byte(text)); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: error %v, which is to name %q", text, err, names)
		}
	}
}

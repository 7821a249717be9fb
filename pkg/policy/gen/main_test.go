package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shieldcli/shield/policies"
)

// TestUpToDate demands that what was generated is what the YAML says.
func TestUpToDate(t *testing.T) {
	t.Parallel()
	want, err := generate(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../presets_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("presets_gen.go is not what policies/*.yaml say; run go generate ./pkg/policy")
	}
}

func TestGenerateRefuses(t *testing.T) {
	t.Parallel()
	files := func(preset string) fstest.MapFS {
		m := fstest.MapFS{
			"core.yaml": {Data: []byte("deny: [{name: c, paths: [/x]}]")},
			"base.yaml": {Data: []byte("deny: [{name: b, paths: [/y]}]")},
		}
		for _, name := range presets {
			m[name+".yaml"] = &fstest.MapFile{Data: []byte(preset)}
		}
		return m
	}
	if _, err := generate(files("extends: base")); err != nil {
		t.Fatal(err)
	}
	for preset, want := range map[string]string{
		"extends: default":      "not base",
		"extends: base\ndenny:": "did you mean",
	} {
		if _, err := generate(files(preset)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", preset, err, want)
		}
	}
	if _, err := generate(fstest.MapFS{}); err == nil {
		t.Error("no error without files")
	}
}

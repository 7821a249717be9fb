package main

import (
	"testing"
	"testing/fstest"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, nil, []string{"presets_gen.go"})
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
	if _, err := generatePresetsSource(files("extends: base")); err != nil {
		t.Fatal(err)
	}
	for preset, want := range map[string]string{
		"extends: default":      "not base",
		"extends: base\ndenny:": "did you mean",
	} {
		_, err := generatePresetsSource(files(preset))
		gentest.CheckErrorMentions(t, preset, err, want)
	}
	for _, name := range []string{"core", "base", "strict"} {
		without := files("extends: base")
		delete(without, name+".yaml")
		_, err := generatePresetsSource(without)
		gentest.CheckErrorMentions(t, "no "+name, err, name+".yaml")
	}
}

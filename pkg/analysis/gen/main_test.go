package main

import (
	"testing"
	"testing/fstest"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, nil, []string{"dangers_gen.go"})
}

// TestSources holds that a table that does not say what it seems to say is refused.
func TestSources(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"doubtful: [{effects: [reed_file], who: model, reason: r}]":  "reed_file",
		"doubtful: [{effects: [read_file], who: modell, reason: r}]": "modell",
		"doubtful: [{effects: [read_file], reason: r}]":              `who is ""`,
		"unusual: [{reason: r}]":                                     `who is ""`,
		"ordinary: [{effects: [read_file], who: model}]":             "model",
		"harmless: [{effects: [read_file], reason: r}]":              "not read here",
		"ordinary: [{effects: [read_file], danger: d}]":              "not read here",
		"unusual: [{who: evaluator, least: 0.5}]":                    "not read here",
		"unusual: [{who: model, colour: red}]":                       "colour",
	} {
		_, err := generateDangers(fstest.MapFS{"dangers.yaml": {Data: []byte(text)}})
		gentest.CheckErrorMentions(t, text, err, name)
	}
	if _, err := generateDangers(fstest.MapFS{}); err == nil {
		t.Error("a file that is missing gave no error")
	}
}

package main

import (
	"os"
	"regexp"
	"strings"
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

// TestAuthorities holds that package verdict has the constant of every word for who may allow an effect.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../verdict/weigh.go")
	if err != nil {
		t.Fatal(err)
	}
	for who, name := range approvalAuthorityConstantNames {
		if !regexp.MustCompile(`(?m)^\t` + name + `\b`).Match(src) {
			t.Errorf("who %q: package verdict has no %s", who, name)
		}
	}
	out, err := generateDangers(fstest.MapFS{"dangers.yaml": {Data: []byte("doubtful: [{effects: [read_file], who: never, reason: r}]")}})
	if err != nil || !strings.Contains(string(out), "verdict.AuthorityNoneSuffices") {
		t.Errorf("never: %s, %v", out, err)
	}
}

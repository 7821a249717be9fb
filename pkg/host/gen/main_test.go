package main

import (
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"hosts"}, []string{"hosts_gen.go"})
}

const good = `
title: A
source: its documentation
read: .
before: [e]
deny: .
next: restart it
sample: .
unit: s
programs: [a]
places: [{scope: user, file: f, text: "x @LINE@"}]
`

// TestSources holds that a file that is wrong is refused by its name and what is
// wrong.
func TestSources(t *testing.T) {
	for text, name := range map[string]string{
		good:                             "",
		good + "colour: red\n":           "colour",
		good + "tools: {T: {type: a}}\n": "tool T has no payload",
		good + "tools: {T: {payload: .}}\ninternal: [T]\n": "also internal",
		"title: A\n":                       "is missing",
		good[:len(good)-1] + "\nunit: h\n": "unit",
	} {
		_, err := generateHostTable(gentest.WriteFolder(t, map[string]string{"a.yaml": text}))
		if name == "" {
			gentest.CheckErrorMentions(t, text, err, "")
			continue
		}
		gentest.CheckErrorMentions(t, text, err, name, "a.yaml")
	}
}

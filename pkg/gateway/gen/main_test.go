package main

import (
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"rules"}, []string{"tables_gen.go"})
}

// TestRefuses holds that rules that say nothing, or twice, are refused.
func TestRefuses(t *testing.T) {
	t.Parallel()
	const rule = "name: n, match: [a, b], pass: [c, d]"
	for text, name := range map[string]string{
		"poison: [{" + rule + ", pattern: x}]":                                                  "",
		"poison: [{" + rule + ", pattern: '('}]":                                                "missing closing",
		"poison: [{name: n, pattern: x, match: [a], pass: [b, c]}]":                             "two examples",
		"asked: [{pattern: x}]":                                                                 "two examples",
		"servers: {a: {packages: [p], tools: {b: read_file}}}":                                  "",
		"servers: {a: {tools: {b: read_file}}}":                                                 "without packages",
		"servers: {a: {packages: [p], tools: {b c: x, c: y}}}":                                  "c is there twice",
		"servers: {a: {packages: [p], colour: x}}":                                              "colour",
		"shapes: [{action: a}]":                                                                 "without action or has",
		"methods: {maybe: [a]}":                                                                 "none of pass",
		"clients: {a: {title: t, servers: [[b]], files: [{scope: user, file: c}]}}":             "",
		"clients: {a: {title: t, servers: [[b]]}}":                                              "without title",
		"classes: [{packages: [p], source: s, version: v, licence: l, reads: a b}]":             "",
		"classes: [{packages: [p], source: s, version: v, reads: a}]":                           "licence are needed",
		"classes: [{packages: [p], source: s, version: v, licence: l}]":                         "without tools",
		"classes: [{packages: [p], source: s, version: v, licence: l, reads: a, elsewhere: a}]": "a is there twice",
		"colours: 1": "colours",
	} {
		_, err := generateTablesFromYAML(text)
		gentest.CheckErrorMentions(t, text, err, name)
	}
}

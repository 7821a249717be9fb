package main

import (
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"cmdlets.yaml"}, []string{"cmdlets_gen.go"})
}

func TestCompileRejects(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no example":           "cmdlets:\n  get-x:\n    does: readonly\n",
		"is not a class":       "cmdlets:\n  get-x:\n    does: reads\n    examples:\n      get-x: \"\"\n",
		"has an unknown use":   "cmdlets:\n  get-x:\n    does: readonly\n    parameters: a:b\n    examples:\n      get-x: \"\"\n",
		"unknown word":         "cmdlets:\n  get-x:\n    does: readonly\n    special: b\n    examples:\n      get-x: \"\"\n",
		"listed twice":         "cmdlets:\n  get-x:\n    also: get-x\n    does: readonly\n    examples:\n      get-x: \"\"\n",
		"not in lower case":    "cmdlets:\n  Get-X:\n    does: readonly\n    examples:\n      get-x: \"\"\n",
		"unknown field \"to\"": "cmdlets:\n  get-x:\n    to: readonly\n",
	} {
		_, err := compileCmdletsYAML([]byte(text))
		gentest.CheckErrorMentions(t, text, err, name)
	}
}

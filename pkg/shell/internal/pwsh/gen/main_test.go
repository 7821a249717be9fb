package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestTablesAreCurrent compares the tables with what go generate would write.
func TestTablesAreCurrent(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../cmdlets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := compile(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../cmdlets_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("cmdlets_gen.go differs from cmdlets.yaml: run go generate ./pkg/shell/internal/pwsh")
	}
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
		if _, err := compile([]byte(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

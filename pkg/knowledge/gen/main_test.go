package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/knowledge"
)

func TestGenerated(t *testing.T) {
	for name, source := range outputs {
		want, err := source("..")
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is old: run go generate ./pkg/knowledge", name)
		}
	}
	if n := len(knowledge.SecretForms); n < 250 {
		t.Errorf("%d forms of secrets; at least 250 are expected", n)
	}
}

// What is imported must be found: each form has a literal to look for, in small
// letters, and an expression that the engine takes without its parts for source
// files.
func TestImported(t *testing.T) {
	forms, err := imported("../gitleaks/gitleaks.toml", nil)
	if err == nil {
		t.Fatalf("%d rules were taken over although some cannot be", len(forms))
	}
	for _, f := range knowledge.SecretForms {
		if _, err := regexp.Compile(f.Pattern); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
		if strings.Contains(f.Pattern, `[\x60'"\s;]|\\[nr]|$`) || strings.HasPrefix(f.Pattern, `(?i)[\w.-]{0,50}?`) {
			t.Errorf("%s: still looks at what stands around a secret: %s", f.ID, f.Pattern)
		}
	}
}

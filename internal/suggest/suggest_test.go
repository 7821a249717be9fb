package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"policy", "classify", "run", "to"}
	for word, want := range map[string]string{
		"plicy":                 "policy",
		"polciy":                "policy",
		"Policy":                "policy",
		"ruin":                  "run",
		"xy":                    "",
		"":                      "",
		"evaluate":              "",
		strings.Repeat("x", 41): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestQuestion holds that what is put behind a message names the nearest word,
// quoted, and that nothing is asked where none is near.
func TestQuestion(t *testing.T) {
	t.Parallel()
	if got := DidYouMeanSuffix("plicy", []string{"run", "policy"}); !strings.Contains(got, `"policy"`) || strings.Contains(got, "plicy") {
		t.Errorf("%q", got)
	}
	if got := DidYouMeanSuffix("something", []string{"run", "policy"}); got != "" {
		t.Errorf("%q for a word that is near none", got)
	}
	if got := DidYouMeanSuffix("run\x1b", []string{"run\x1b[0m"}); strings.Contains(got, "\x1b") {
		t.Errorf("%q holds an escape", got)
	}
}

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

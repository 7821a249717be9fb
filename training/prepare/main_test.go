package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(strings.NewReader("\"A  B\\n\"\n\"<&> \\ud83d\\ude00\"\n"), &out)
	if want := "\"a b\"\n\"<&> 😀\"\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v; want %q", out.String(), err, want)
	}
	if err := run(strings.NewReader("\"a\"\n{}\n"), &out); err == nil || !strings.Contains(err.Error(), "string 2") {
		t.Errorf("an object is not refused: %v", err)
	}
}

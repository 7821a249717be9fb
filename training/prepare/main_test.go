package main

import (
	"errors"
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

// A full disk takes so many bytes and no more.
type fullDisk int

func (d *fullDisk) Write(b []byte) (int, error) {
	if *d -= fullDisk(len(b)); *d < 0 {
		return 0, errors.New("no space left")
	}
	return len(b), nil
}

// TestRunFull holds that texts which cannot be written are an error, were they met at
// the end or on the way.
func TestRunFull(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"a"`, `"` + strings.Repeat("ab ", 10000) + `" "b"`} {
		disk := fullDisk(0)
		if err := run(strings.NewReader(text), &disk); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%d bytes on a full disk: %v", len(text), err)
		}
	}
}

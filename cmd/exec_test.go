//go:build unix

package cmd

import (
	"context"
	"strings"
	"testing"
)

// TestExecRefusesWhatItCannotJudge holds that text which JSON would change is
// not judged in another form.
func TestExecRefusesWhatItCannotJudge(t *testing.T) {
	w := newWorld(t)
	w.Environ = func() []string { return []string{"PATH=/usr/bin:/bin"} }
	for _, c := range []struct {
		name, want string
		dir        string
		args       []string
	}{
		{"invalid UTF-8 in text", "not valid UTF-8", w.WorkingDir, []string{"--shell", "--", "echo \xff"}},
		{"invalid UTF-8 in the folder", "not valid UTF-8", "/tmp/\xff", []string{"--", "true"}},
		{"NUL in a word", "null", w.WorkingDir, []string{"--", "echo", "a\x00b"}},
		{"an empty program", "is empty", w.WorkingDir, []string{"--", "", "x"}},
		{"a program of a line end", "in no folder of PATH", w.WorkingDir, []string{"--", "\n"}},
		{"no word", "CMD is missing", w.WorkingDir, []string{"--"}},
	} {
		w.WorkingDir = c.dir
		status, out, errs := run(t, w, "", append([]string{"exec", "--check"}, c.args...)...)
		if status != statusBlock || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %d and %q", c.name, status, out, errs, statusBlock, c.want)
		}
	}
}

// TestInterruptedExecRunsNothing interrupts shield before the command took its
// place: the signal was for both.
func TestInterruptedExecRunsNothing(t *testing.T) {
	w := newWorld(t)
	w.Environ = func() []string { return []string{"PATH=/usr/bin:/bin"} }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs strings.Builder
	w.Err = &errs
	// Had it run, the test's process would have become it.
	if status := Run(ctx, []string{"exec", "--", "true"}, w); status != statusBlock || errs.Len() == 0 {
		t.Errorf("status %d, stderr %q", status, errs.String())
	}
}

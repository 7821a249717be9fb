//go:build unix

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTextIsWhatRuns holds that the judged text names the file that will run
// where it is not one of the system's, and that its words are those given.
func TestTextIsWhatRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "frob")
	if err := os.WriteFile(own, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + dir + ":/bin:/usr/bin"}
	for _, c := range []struct {
		argv []string
		text string
	}{
		{[]string{"frob", "a b", "$X", "it's"}, own + ` 'a b' '$X' "it's"`},
		{[]string{own}, own},
		{[]string{"sh", "-c", "rm *"}, "sh -c 'rm *'"},
	} {
		cmd, err := New(c.argv, env)
		if err != nil {
			t.Fatalf("%q: %v", c.argv, err)
		}
		if got := cmd.ShellCommandLine(); got != c.text {
			t.Errorf("%q is judged as %s, want %s", c.argv, got, c.text)
		}
		if path := cmd.Path(); !filepath.IsAbs(path) || filepath.Base(path) != filepath.Base(c.argv[0]) {
			t.Errorf("%q runs %s", c.argv, path)
		}
		if err := cmd.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNewRefuses holds that what cannot run, or cannot be written as text, is
// an error before anything is judged.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{""}, {"no-such-program"}, {dir}, {filepath.Join(dir, "data")}, {"sh", "a\x00b"}} {
		if cmd, err := New(argv, []string{"PATH=/bin:/usr/bin"}); err == nil {
			cmd.Close()
			t.Errorf("%q is accepted", argv)
		}
	}
	if _, err := New([]string{"sh"}, nil); err == nil {
		t.Error("a program is found without a PATH")
	}
}

// TestShellText holds that a text for sh -c is judged as it stands, and cannot
// become an option of the shell.
func TestShellText(t *testing.T) {
	t.Parallel()
	cmd, err := NewShell("-c; ls | cat", nil)
	if err != nil {
		t.Skip(err)
	}
	defer cmd.Close()
	if cmd.ShellCommandLine() != "-c; ls | cat" || !strings.HasSuffix(strings.Join(cmd.argv, " "), "-c -- -c; ls | cat") {
		t.Errorf("text %q, words %q", cmd.ShellCommandLine(), cmd.argv)
	}
}

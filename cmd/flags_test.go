package cmd

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

func TestFlagsFirst(t *testing.T) {
	t.Parallel()
	app := newApp(&Environment{})
	for _, c := range []struct{ in, want []string }{
		{[]string{"hook", "install", "x", "--scope", "project"}, []string{"hook", "install", "--scope", "project", "--", "x"}},
		{[]string{"hook", "install", "x", "--scope=project", "--dry-run"}, []string{"hook", "install", "--scope=project", "--dry-run", "--", "x"}},
		{[]string{"hook", "install", "--dry-run", "x"}, []string{"hook", "install", "--dry-run", "--", "x"}},
		{[]string{"hook", "install", "x", "--", "--dry-run"}, []string{"hook", "install", "--", "x", "--dry-run"}},
		{[]string{"hook", "install", "x", "--bogus", "y"}, []string{"hook", "install", "--bogus", "--", "x", "y"}},
		{[]string{"hook", "install", "x", "--scope"}, []string{"hook", "install", "--scope", "--", "x"}},
		{[]string{"hook", "install", "x", "--scope", "--", "y"}, []string{"hook", "install", "--scope", "--", "--", "x", "y"}},
		{[]string{"score", "a", "-", "--jobs", "2", "b"}, []string{"score", "--jobs", "2", "--", "a", "-", "b"}},
		{[]string{"run", "--trace"}, []string{"run", "--trace"}},
		{[]string{"exec", "ls", "--trace"}, []string{"exec", "ls", "--trace"}},
		{[]string{"exec", "--", "ls", "-l"}, []string{"exec", "--", "ls", "-l"}},
		{[]string{"--version", "run"}, []string{"--version", "run"}},
		{[]string{"nothing", "x", "--y"}, []string{"nothing", "x", "--y"}},
		{nil, nil},
	} {
		if diff := cmp.Diff(c.want, moveFlagsFirst(app, slices.Clone(c.in))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

// TestFlagsMayFollowOperands holds, for every flag of every command, that it
// means the same behind an operand as before it.
func TestFlagsMayFollowOperands(t *testing.T) {
	t.Parallel()
	app := newApp(&Environment{})
	var walk func(prefix []string, list []*cli.Command)
	walk = func(prefix []string, list []*cli.Command) {
		for _, c := range list {
			path := append(slices.Clone(prefix), c.Name)
			walk(path, c.Subcommands)
			for _, f := range c.Flags {
				words := []string{"--" + f.Names()[0]}
				if f.(cli.DocGenerationFlag).TakesValue() {
					words = append(words, "value")
				}
				before := moveFlagsFirst(app, slices.Concat(path, words, []string{"operand"}))
				behind := moveFlagsFirst(app, slices.Concat(path, []string{"operand"}, words))
				if same := slices.Equal(before, behind); same == (c.Name == "exec" || len(c.Subcommands) > 0) {
					t.Errorf("%q %q: %q before and %q behind an operand", path, words, before, behind)
				}
			}
		}
	}
	walk(nil, app.Commands)
}

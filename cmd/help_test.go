package cmd

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
)

// TestHelp holds that every help text fits into 80 columns but for the examples, that each command of the first page is in a
// group, and that each has examples.
func TestHelp(t *testing.T) {
	t.Parallel()
	app := newApp(&Environment{})
	app.Setup()
	for _, c := range app.Commands {
		if !c.Hidden && (!slices.Contains(commandGroups, c.Category) || len(manPageExamplesByCommand[c.Name]) == 0) {
			t.Errorf("%s: group %q, %d examples", c.Name, c.Category, len(manPageExamplesByCommand[c.Name]))
		}
	}
	pages := [][]string{{"--help"}}
	walk := func(path []string, c *cli.Command) {
		pages = append(pages, append(slices.Clone(path), c.Name, "--help"))
	}
	for _, c := range app.Commands {
		walk(nil, c)
		for _, sub := range c.Subcommands {
			walk([]string{c.Name}, sub)
		}
	}
	for _, args := range pages {
		var out bytes.Buffer
		if status := Run(t.Context(), args, Environment{Out: &out, Err: &out}); status != 0 || !strings.Contains(out.String(), "USAGE:\n   shield") {
			t.Errorf("%v: status %d\n%s", args, status, &out)
		}
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "      ") && !strings.HasPrefix(line, "   --") && term.Width(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%v: %s", args, line)
			}
		}
	}
}

package cmd

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestExamples holds that every visible command has examples, and that their
// commands and flags exist.
func TestExamples(t *testing.T) {
	w := newWorld(t)
	commandLine := regexp.MustCompile(`\bshield( [^<>|&'")]*)`)
	app := newApp(&w)
	for _, c := range visibleCommands(app.Commands) {
		if len(manPageExamplesByCommand[c.Name]) == 0 {
			t.Errorf("%s has no example", c.Name)
		}
	}
	for name, list := range manPageExamplesByCommand {
		if name != "" && app.Command(name) == nil {
			t.Errorf("examples of %q, which is no command", name)
		}
		for _, e := range list {
			found := commandLine.FindAllStringSubmatch(e.line, -1)
			if len(found) == 0 {
				t.Errorf("%s: %q does not call shield", name, e.line)
			}
			for _, m := range found {
				if wrong := unknownWord(app.Commands, strings.Fields(m[1])); wrong != "" {
					t.Errorf("%q: shield does not know %q", e.line, wrong)
				}
			}
		}
	}
}

// unknownWord returns the first word of a command line that should be a command
// or a flag and is none, or "".
func unknownWord(commands []*cli.Command, args []string) string {
	at := &cli.Command{Subcommands: commands}
	value := false // the word is a flag's
	for _, arg := range args {
		if value {
			value = false
			continue
		}
		switch i := slices.IndexFunc(at.Subcommands, func(c *cli.Command) bool { return c.Name == arg }); {
		case arg == "--":
			return ""
		case strings.HasPrefix(arg, "-"):
			if !slices.Contains(commandAndFlagNames(at.Flags, nil), arg) {
				return arg
			}
			value = flagTakesNextWord(at, arg)
		case i >= 0:
			at = at.Subcommands[i]
		case len(at.Subcommands) > 0:
			return arg
		}
	}
	return ""
}

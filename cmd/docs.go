package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

func docsCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:      "docs",
		Usage:     "write man pages and completions below a folder",
		ArgsUsage: "FOLDER",
		Hidden:    true,
		Action: func(c *cli.Context) error {
			args, err := operands(c, "FOLDER")
			if err != nil {
				return err
			}
			if markdownToRoff("") == "" {
				return errors.New("docs: this shield was built without man pages; build it without the tag urfave_cli_no_docs")
			}
			for name, text := range generatedDocTextByPath(w) {
				name = filepath.Join(args[0], name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// documentedEnvironmentVariables lists the variables that shield reads, for the man page.
var documentedEnvironmentVariables = [][2]string{
	{"SHIELD_CONFIG", "Path of the configuration file that shield reads in place of ~/.config/shield/shield.yaml."},
	{"XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME, XDG_CACHE_HOME", "Folders that shield uses in place of ~/.config, ~/.local/state, ~/.local/share and ~/.cache."},
	{"NO_COLOR, TERM", "NO_COLOR, or TERM=dumb, turns colours off."},
}

// manPagePathDescriptionPairs lists the files that shield reads and writes, for the man page.
var manPagePathDescriptionPairs = [][2]string{
	{"~/.config/shield/shield.yaml", "The user's settings, such as policy, approval and evaluator."},
	{"/etc/shield/shield.yaml", "Settings for all users of this machine. Files, variables and options of a user cannot override its keys under \"locked\"."},
	{"~/.local/state/shield/", "Seal key, state and audit log; created with mode 0700."},
	{"~/.local/share/shield/models/", "Models that 'shield model pull' installed, one folder each."},
}

// generatedDocTextByPath returns the generated documents by path.
func generatedDocTextByPath(w *Environment) map[string]string {
	app := newApp(w)
	app.Setup()
	out := map[string]string{
		"man/shield.1": buildManPage(app.Name, app.Usage, app.UsageText, app.Flags, app.Commands, true),
	}
	for _, shell := range shellCompletionGenerators {
		out["completions/"+shell.file] = shell.text(shellCompletionCommands(app))
	}
	for _, c := range app.Commands {
		if !c.Hidden {
			out["man/shield-"+c.Name+".1"] = commandManPage(c)
		}
	}
	return out
}

func commandManPage(c *cli.Command) string {
	synopsis := "shield " + c.Name
	if len(c.VisibleFlags()) > 0 {
		synopsis += " [FLAG…]"
	}
	if len(c.Subcommands) > 0 {
		synopsis += " [COMMAND]"
	}
	if c.ArgsUsage != "" {
		synopsis += " " + c.ArgsUsage
	}
	text := c.Usage
	if c.Description != "" {
		text = c.Description
	}
	return buildManPage("shield-"+c.Name, c.Usage, synopsis, c.Flags, c.Subcommands, false, text)
}

// buildManPage returns one man page.
func buildManPage(name, usage, synopsis string, flags []cli.Flag, commands []*cli.Command, whole bool, description ...string) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "\n# %s\n\n", title) }
	fmt.Fprintf(&b, "%% %s 1\n", strings.ToUpper(name))
	section("NAME")
	fmt.Fprintf(&b, "%s - %s\n", name, usage)
	section("SYNOPSIS")
	fmt.Fprintf(&b, "**%s**\n", synopsis)
	if len(description) > 0 {
		section("DESCRIPTION")
		fmt.Fprintln(&b, strings.Join(description, "\n\n"))
	}
	if len(commands) > 0 {
		section("COMMANDS")
		for _, c := range commands {
			if !c.Hidden {
				fmt.Fprintf(&b, "**%s**\n: %s\n", strings.TrimSpace(c.Name+" "+c.ArgsUsage), c.Usage)
				if !whole {
					writeManPageFlags(&b, c.Flags)
				}
				fmt.Fprintln(&b)
			}
		}
	}
	if len(flags) > 0 {
		section("OPTIONS")
		writeManPageFlags(&b, flags)
	}
	if lines := manPageExamplesByCommand[strings.TrimPrefix(strings.TrimPrefix(name, "shield"), "-")]; len(lines) > 0 {
		section("EXAMPLES")
		for _, e := range lines {
			fmt.Fprintf(&b, "%s\n\n    %s\n\n", e.purpose, e.line)
		}
	}
	for _, s := range manPageSections[name] {
		section(s.title)
		fmt.Fprintln(&b, s.text)
	}
	section("EXIT STATUS")
	for _, s := range exitStatuses {
		fmt.Fprintf(&b, "**%d**\n: %s\n\n", s.Status, s.Meaning)
	}
	for _, table := range []struct {
		title string
		rows  [][2]string
	}{{"FILES", manPagePathDescriptionPairs}, {"ENVIRONMENT", documentedEnvironmentVariables}} {
		section(table.title)
		for _, row := range table.rows {
			fmt.Fprintf(&b, "**%s**\n: %s\n\n", row[0], row[1])
		}
	}
	if !whole {
		section("SEE ALSO")
		fmt.Fprintln(&b, "**shield**(1)")
	}
	return markdownToRoff(b.String())
}

func writeManPageFlags(b *strings.Builder, flags []cli.Flag) {
	for _, f := range visibleFlags(flags) {
		if d, ok := f.(cli.DocGenerationFlag); ok {
			fmt.Fprintf(b, "\n**%s**\n: %s\n", flagSyntax(f), usageWithoutBackquotes(d.GetUsage()))
		}
	}
}

// visibleFlags returns the flags that are meant for people.
func visibleFlags(flags []cli.Flag) []cli.Flag {
	return slices.DeleteFunc(slices.Clone(flags), func(f cli.Flag) bool {
		v, ok := f.(cli.VisibleFlag)
		return ok && !v.IsVisible()
	})
}

// flagSyntax returns "-h, --help" or "--config FILE": the placeholder is the part of the usage text in
// backquotes.
func flagSyntax(f cli.Flag) string {
	var forms []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			forms = append(forms, "-"+n)
		} else {
			forms = append(forms, "--"+n)
		}
	}
	d := f.(cli.DocGenerationFlag)
	text := strings.Join(forms, ", ")
	if d.TakesValue() {
		text = strings.TrimSpace(text + " " + extractUsagePlaceholder(d.GetUsage()))
	}
	return text
}

func usageWithoutBackquotes(usage string) string { return strings.ReplaceAll(usage, "`", "") }

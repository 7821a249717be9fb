package cmd

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/host"
)

// printIntroductionAndCommandList prints an introduction of one screen, when shield is called without arguments on a
// terminal.
func printIntroductionAndCommandList(c *cli.Context, w *Environment) error {
	var b strings.Builder
	fmt.Fprintln(&b, "shield judges every action an AI agent proposes, before it runs.")
	for _, line := range w.describeProtection(c) {
		fmt.Fprintln(&b, line)
	}
	for _, row := range [][2]string{
		{"shield setup", "protect the agents on this machine"},
		{"shield demo", "show what is allowed, asked and denied, and why"},
		{"shield explain 'COMMAND'", "show what a command would do, without running it"},
		{"shield doctor", "find what is wrong, and how to fix it"},
	} {
		fmt.Fprintf(&b, "\n  %-26s %s", row[0], row[1])
	}
	fmt.Fprint(&b, "\n\nAll commands:")
	for _, group := range commandGroups {
		var names []string
		for _, command := range c.App.VisibleCommands() {
			if command.Category == group {
				names = append(names, command.Name)
			}
		}
		fmt.Fprintf(&b, "\n  %-17s %s", group, strings.Join(names, ", "))
	}
	fmt.Fprint(&b, "\n\nshield COMMAND --help explains a command.")
	_, err := fmt.Fprintln(w.Out, b.String())
	return err
}

// describeProtection lists which agents on this machine call shield.
func (w *Environment) describeProtection(c *cli.Context) (lines []string) {
	var with, without []string
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil || !w.hostInstalled(h) {
			continue
		}
		s, err := newHostHookInstaller(c, w, name)
		switch {
		case err != nil:
			return []string{"Every action is blocked, since shield's settings are invalid: run shield doctor."}
		case len(s.findHooks(c.Context).hooks) > 0:
			with = append(with, h.Title())
		default:
			without = append(without, h.Title())
		}
	}
	if len(with) > 0 {
		lines = append(lines, term.WrapLines("Called by: "+strings.Join(with, ", ")+".", terminalWidth(w.Out))...)
	}
	if len(without) > 0 {
		lines = append(lines, term.WrapLines("Not protected: "+strings.Join(without, ", ")+".", terminalWidth(w.Out))...)
	}
	return lines
}

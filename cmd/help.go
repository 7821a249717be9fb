package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
)

func init() { cli.HelpPrinter = printHelp }

// Groups of commands, in the order of the help text.
const (
	commandGroupJudge         = "judge"
	commandGroupProtect       = "protect an agent"
	commandGroupUserDecisions = "decide"
	commandGroupPolicies      = "policies"
	commandGroupHistory       = "look back"
	commandGroupFleet         = "fleet"
)

var commandGroups = []string{commandGroupJudge, commandGroupProtect, commandGroupUserDecisions, commandGroupPolicies, commandGroupHistory, commandGroupFleet}

const (
	helpWidth                  = 100 // maximum columns
	flagDescriptionStartColumn = 30  // column of flag descriptions
)

// printHelp writes the help text of an app or a command, in the width of the terminal. It replaces the
// library's templates.
func printHelp(out io.Writer, _ string, data any) {
	p := helpPage{width: min(terminalWidth(out), helpWidth)}
	switch d := data.(type) {
	case *cli.App:
		p.writeTitle("NAME")
		p.writeParagraph(3, d.Name+" - "+d.Usage)
		p.writeTitle("USAGE")
		p.writeParagraph(3, d.UsageText)
		for _, group := range commandGroups {
			p.writeTitle(strings.ToUpper(group))
			p.writeCommands(d.Commands, group)
		}
		p.writeTitle("OPTIONS")
		p.writeFlags(d.VisibleFlags())
		p.writeExamples("")
		p.writeTitle("MORE")
		p.writeParagraph(3, "shield COMMAND --help explains a command.")
	case *cli.Command:
		name := d.HelpName
		p.writeTitle("NAME")
		p.writeParagraph(3, name+" - "+d.Usage)
		p.writeTitle("USAGE")
		usage := name
		if len(d.VisibleCommands()) > 0 {
			usage += " [COMMAND]"
		}
		if len(d.VisibleFlags()) > 0 {
			usage += " [FLAG…]"
		}
		p.writeParagraph(3, strings.TrimSpace(usage+" "+d.ArgsUsage))
		if d.Description != "" {
			p.writeTitle("DESCRIPTION")
			p.writeParagraph(3, d.Description)
		}
		if len(d.VisibleCommands()) > 0 {
			p.writeTitle("COMMANDS")
			p.writeCommands(d.VisibleCommands(), "")
		}
		if len(d.VisibleFlags()) > 0 {
			p.writeTitle("OPTIONS")
			p.writeFlags(d.VisibleFlags())
		}
		p.writeExamples(strings.TrimPrefix(strings.TrimPrefix(name, "shield"), " "))
	}
	_, _ = io.WriteString(out, strings.TrimPrefix(p.text.String(), "\n"))
}

type helpPage struct {
	text  strings.Builder
	width int
}

func (p *helpPage) writeTitle(title string) { fmt.Fprintf(&p.text, "\n%s:\n", title) }

func (p *helpPage) writeParagraph(indent int, text string) {
	for _, line := range term.WrapLines(text, p.width-indent) {
		fmt.Fprintf(&p.text, "%*s%s\n", indent, "", line)
	}
}

// writeRow writes a name and its description, below the name if that is long.
func (p *helpPage) writeRow(name, meaning string, column int) {
	if term.Width(name)+2 > column-3 {
		fmt.Fprintf(&p.text, "   %s\n", name)
		p.writeParagraph(column, meaning)
		return
	}
	for i, line := range term.WrapLines(meaning, p.width-column) {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(&p.text, "   %s%*s%s\n", name, column-3-term.Width(name), "", line)
	}
}

// writeCommands lists the commands of a group; all if group is "".
func (p *helpPage) writeCommands(commands []*cli.Command, group string) {
	for _, c := range commands {
		if !c.Hidden && (group == "" || c.Category == group) {
			p.writeRow(c.Name, c.Usage, 17)
		}
	}
}

func (p *helpPage) writeFlags(flags []cli.Flag) {
	for _, f := range flags {
		d, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		meaning := usageWithoutBackquotes(d.GetUsage())
		if value := d.GetDefaultText(); d.TakesValue() && value != "" {
			meaning += " (default: " + value + ")"
		}
		p.writeRow(flagSyntax(f), meaning, flagDescriptionStartColumn)
	}
}

func (p *helpPage) writeExamples(command string) {
	if len(manPageExamplesByCommand[command]) == 0 {
		return
	}
	p.writeTitle("EXAMPLES")
	for i, e := range manPageExamplesByCommand[command] {
		if i > 0 {
			p.text.WriteByte('\n')
		}
		p.writeParagraph(3, e.purpose)
		fmt.Fprintf(&p.text, "      %s\n", e.line)
	}
}

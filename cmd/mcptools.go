package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/gateway"
)

func mcpToolsCommand(w *Environment) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag { return append([]cli.Flag{configFlag(), stateFlag()}, more...) }
	return &cli.Command{
		Name:        "tools",
		Usage:       "list the pinned tools of MCP servers, show what has changed, and accept it",
		Description: "The tools of a server are pinned as accepted: name, descriptions, parameters and annotations. A tool that differs from its pin is withheld from the client, and its calls are denied, until a person accepts it. A server is one command line; where several have one name, the ID that the list shows tells them apart.",
		Subcommands: []*cli.Command{
			{
				Name:      "list",
				Usage:     "list servers and their tools: accepted, waiting or gone",
				ArgsUsage: "[SERVER]",
				Flags:     flags(),
				Action:    func(c *cli.Context) error { return listPinnedMCPTools(c, w) },
			},
			{
				Name:      "diff",
				Usage:     "show the definitions that wait for approval beside the accepted ones",
				ArgsUsage: "SERVER",
				Flags:     flags(),
				Action:    func(c *cli.Context) error { return diffAcceptedAndListedTools(c, w) },
			},
			{
				Name:        "accept",
				Usage:       "accept the new definitions of a server's tools",
				ArgsUsage:   "SERVER TOOL…",
				Description: "TOOL@HASH accepts exactly the definition that shield mcp tools diff has shown. The pin of a tool that the server no longer lists is removed. Clients see what was accepted when they list the tools again.",
				Flags: flags(
					&cli.BoolFlag{Name: "all", Usage: "accept every tool of the server that waits; takes no TOOL"},
					&cli.StringFlag{Name: "as", Usage: "judge calls of the tools as actions of `TYPE`, such as write_file"},
				),
				Action: func(c *cli.Context) error { return acceptTools(c, w) },
			},
		},
	}
}

// pinnedServers returns the servers with pinned tools, or the named one.
func pinnedServers(c *cli.Context, w *Environment, name string) (stateFolder string, pinFiles []gateway.PinFile, err error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return "", nil, err
	}
	stateFolder = stateDir(&set.Settings, w)
	pinFiles, damaged, err := gateway.AllPins(stateFolder)
	if err != nil {
		return "", nil, err
	}
	for _, d := range damaged {
		fmt.Fprintf(w.Err, "shield: %s\n", d)
	}
	if name == "" {
		return stateFolder, pinFiles, nil
	}
	var found []gateway.PinFile
	var names []string
	for _, f := range pinFiles {
		names = append(names, f.ServerName)
		if f.ServerName == name || len(name) >= 4 && strings.HasPrefix(f.PinFileID, name) {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return "", nil, fmt.Errorf("no MCP server %q is known%s; run 'shield mcp tools list'", shortenTo80Characters(name), suggest.DidYouMeanSuffix(name, names))
	}
	return stateFolder, found, nil
}

// findServerPinFile returns the only server with a name or ID; an error if there are several.
func findServerPinFile(c *cli.Context, w *Environment, name string) (state string, f gateway.PinFile, err error) {
	state, found, err := pinnedServers(c, w, name)
	if err != nil {
		return "", f, err
	}
	if len(found) > 1 {
		var ids []string
		for _, f := range found {
			ids = append(ids, fmt.Sprintf("%.8s (%s)", f.PinFileID, term.EscapeControlAndInvisible(strings.Join(f.Command, " "))))
		}
		return "", f, fmt.Errorf("%d servers are named %s; use an ID: %s", len(found), name, strings.Join(ids, ", "))
	}
	return state, found[0], nil
}

func listPinnedMCPTools(c *cli.Context, w *Environment) error {
	if c.NArg() > 1 {
		return fmt.Errorf("%s: unexpected operand %q", c.Command.HelpName, shortenTo80Characters(c.Args().Get(1)))
	}
	_, all, err := pinnedServers(c, w, c.Args().First())
	if err != nil {
		return err
	}
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("No MCP server was used through shield mcp yet. To put servers behind shield: shield mcp install CLIENT\n")
	}
	for i, f := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s  %.8s  %s\n", f.ServerName, f.PinFileID, term.EscapeControlAndInvisible(strings.Join(f.Command, " ")))
		names := map[string]string{}
		for name, pin := range f.Tools {
			names[name] = "accepted"
			if pin.Gone {
				names[name] = "gone"
			}
			if pin.ActionType != "" {
				names[name] += " as " + pin.ActionType
			}
		}
		for name, t := range f.ToolsAwaitingUserAcceptance {
			names[name] = "waiting: " + t.WithholdReason
		}
		for _, name := range sorted.Keys(names) {
			fmt.Fprintf(&b, "  %-32s %s\n", term.EscapeControlAndInvisible(name), term.EscapeControlAndInvisible(names[name]))
		}
	}
	_, err = io.WriteString(w.Out, b.String())
	return err
}

func diffAcceptedAndListedTools(c *cli.Context, w *Environment) error {
	args, err := operands(c, "SERVER")
	if err != nil {
		return err
	}
	_, f, err := findServerPinFile(c, w, args[0])
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range sorted.Keys(f.ToolsAwaitingUserAcceptance) {
		t := f.ToolsAwaitingUserAcceptance[name]
		fmt.Fprintf(&b, "%s: %s\n", name, term.EscapeControlAndInvisible(t.WithholdReason))
		b.WriteString(unifiedDiff("accepted", indentJSON(f.Tools[name].Definition), "listed", indentJSON(t.Definition)))
		fmt.Fprintf(&b, "accept it with: shield mcp tools accept %.8s '%s@%.12s'\n\n", f.PinFileID, name, t.DefinitionHash)
	}
	for _, name := range sorted.Keys(f.Tools) {
		if f.Tools[name].Gone {
			fmt.Fprintf(&b, "%s: the server no longer lists this tool\n", name)
		}
	}
	if b.Len() == 0 {
		b.WriteString("No tool has changed since it was accepted.\n")
	}
	_, err = io.WriteString(w.Out, b.String())
	return err
}

// indentJSON returns a definition as indented JSON.
func indentJSON(v jsontext.Value) []byte {
	if len(v) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, v, "", "  ") != nil {
		return v
	}
	return append(b.Bytes(), '\n')
}

func acceptTools(c *cli.Context, w *Environment) error {
	args := c.Args().Slice()
	all := c.Bool("all")
	switch {
	case len(args) == 0:
		return fmt.Errorf("%s: SERVER is missing; 'shield mcp tools' lists the servers", c.Command.HelpName)
	case len(args) == 1 && !all:
		return fmt.Errorf("%s: TOOL is missing; to accept all that wait, write --all", c.Command.HelpName)
	case len(args) > 1 && all:
		return errors.New("mcp tools accept: give either TOOL names or --all")
	}
	kind := c.String("as")
	if kind != "" {
		canonical := action.CanonicalType(kind)
		if canonical == "" {
			return fmt.Errorf("mcp tools accept: --as: %q is not an action type%s", shortenTo80Characters(kind), suggest.DidYouMeanSuffix(kind, action.CanonicalTypes()))
		}
		kind = canonical
	}
	state, f, err := findServerPinFile(c, w, args[0])
	if err != nil {
		return err
	}
	done, err := gateway.AcceptTools(c.Context, state, f, args[1:], kind)
	if err != nil {
		return err
	}
	for _, name := range done {
		fmt.Fprintf(w.Out, "%s: accepted\n", name)
	}
	return nil
}

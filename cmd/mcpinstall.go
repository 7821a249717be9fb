package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/host"
)

// mcpInstallCommands are the commands that put the servers of clients behind
// shield.
func mcpInstallCommands(w *Environment) []*cli.Command {
	var names []string
	for _, c := range gateway.Clients {
		names = append(names, c.Name)
	}
	command := func(name, usage string, install bool) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "CLIENT…",
			Description: "CLIENT is one of " + strings.Join(names, ", ") + ". Servers that the client reaches by URL are not changed, and are listed. The previous file is kept beside it.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "scope", Value: "user", Usage: "edit the list of the `user|project`"},
				&cli.BoolFlag{Name: "dry-run", Usage: "print the changes without making them"},
			},
			Action: func(c *cli.Context) error {
				args, err := operands(c, "CLIENT…")
				if err != nil {
					return err
				}
				if !install && !c.Bool("dry-run") {
					if err := requirePerson(w, "mcp "+name, personProofNoAgentAncestor); err != nil {
						return err
					}
				}
				var failed []error
				for _, arg := range args {
					if err := editMCPClientServerList(c, w, arg, names, install); err != nil {
						failed = append(failed, fmt.Errorf("mcp %s: %s: %w", name, shortenTo80Characters(arg), err))
					}
				}
				return errors.Join(failed...)
			},
		}
	}
	return []*cli.Command{
		command("install", "make a client start its MCP servers through shield", true),
		command("uninstall", "undo install", false),
	}
}

// editMCPClientServerList edits the server list of one MCP client, in the client's first settings file
// for the chosen scope and this operating system.
func editMCPClientServerList(c *cli.Context, w *Environment, name string, names []string, install bool) error {
	i := slices.IndexFunc(gateway.Clients[:], func(cl gateway.Client) bool { return cl.Name == name })
	if i < 0 {
		return fmt.Errorf("unknown MCP client%s; use one of %s", suggest.DidYouMeanSuffix(name, names), strings.Join(names, ", "))
	}
	client := gateway.Clients[i]
	scope := c.String("scope")
	base := map[string]string{"user": w.Home, "project": w.WorkingDir}[scope]
	if base == "" {
		return fmt.Errorf("--scope %q is neither user nor project, or its folder is unknown; set HOME", shortenTo80Characters(scope))
	}
	for _, f := range client.SettingsFiles {
		if f.UserOrProjectScope != scope || f.OnlyOnGOOS != "" && f.OnlyOnGOOS != w.OS {
			continue
		}
		path := filepath.Join(base, filepath.FromSlash(f.Path))
		file, err := newSettingsFile(path)
		if err != nil {
			return err
		}
		file.backupPath = file.path + ".before-shield-mcp"
		s := &hostHookInstaller{environment: w}
		edit := func() error {
			return wrapOrUnwrapMCPServers(s, file, client, strings.HasSuffix(f.Path, ".toml"), install, c.Bool("dry-run"))
		}
		if !c.Bool("dry-run") {
			write := edit
			edit = func() error { return s.withLock(c.Context, write) }
		}
		return edit()
	}
	return fmt.Errorf("%s has no list of MCP servers for --scope %s on this system; use the other --scope", client.Title, scope)
}

// A serversUnchangedByInstaller lists the names of the MCP servers that the installer leaves unchanged: remote
// servers, and servers that a person put behind shield.
type serversUnchangedByInstaller struct{ remote, wrappedByUser []string }

// rewriterRecordingUnchangedServers returns a function that puts a server behind the shield at a path, or reverts that.
func (l *serversUnchangedByInstaller) rewriterRecordingUnchangedServers(shieldPath string, install bool) func(host.ServerCommand) (host.ServerCommand, bool) {
	return func(c host.ServerCommand) (host.ServerCommand, bool) {
		if c.Command == "" {
			l.remote = append(l.remote, c.ServerName)
			return c, false
		}
		line := append([]string{c.Command}, c.Args...)
		argv, did := gateway.UnwrapServerCommand(line)
		switch {
		case install:
			argv, did = gateway.WrapServerCommand(shieldPath, c.ServerName, line)
		case did && !gateway.IsWrappedServerCommand(c.ServerName, line):
			l.wrappedByUser = append(l.wrappedByUser, c.ServerName)
			return c, false
		}
		return host.ServerCommand{ServerName: c.ServerName, Command: argv[0], Args: argv[1:]}, did
	}
}

// wrapOrUnwrapMCPServers edits one server list.
func wrapOrUnwrapMCPServers(s *hostHookInstaller, file hostSettingsFileOnDisk, client gateway.Client, isTOML, install, isDryRun bool) error {
	doc, exists, err := file.read()
	if err != nil {
		return err
	}
	if !exists {
		fmt.Fprintf(s.environment.Err, "shield: %s: the file does not exist, so there is nothing to change\n", file.path)
		return nil
	}
	var left serversUnchangedByInstaller
	put := func(doc []byte, install bool) ([]byte, []string, error) {
		left.remote, left.wrappedByUser = nil, nil
		out, changed, err := host.EditServers(doc, isTOML, client.ServerListKeyPaths, left.rewriterRecordingUnchangedServers(s.environment.ShieldExecutablePath, install))
		if err != nil {
			err = fmt.Errorf("%s: %w", file.path, err)
		}
		return out, changed, err
	}
	out, changed, err := put(doc, install)
	if err != nil {
		return err
	}
	if install && len(left.remote) > 0 {
		sorted.SortStrings(left.remote)
		fmt.Fprintf(s.environment.Err, "shield: %s: these servers have a URL and are not behind shield: %s; put them behind 'shield mcp serve'\n", file.path, term.EscapeControlAndInvisible(strings.Join(left.remote, ", ")))
	}
	if !install {
		if len(left.wrappedByUser) > 0 {
			sorted.SortStrings(left.wrappedByUser)
			fmt.Fprintf(s.environment.Err, "shield: %s: you put these servers behind shield yourself, so they were not changed: %s\n", file.path, term.EscapeControlAndInvisible(strings.Join(left.wrappedByUser, ", ")))
		}
		before, existed, err := file.readBackup()
		if err != nil {
			return err
		}
		if again, _, err := put(before, true); existed && err == nil && bytes.Equal(again, doc) {
			out = before // keep the original bytes
		}
	}
	if len(changed) == 0 {
		fmt.Fprintf(s.environment.Err, "shield: %s: the file lists no server to change\n", file.path)
		return nil
	}
	s.showChange(file, doc, out)
	fmt.Fprintf(s.environment.Err, "shield: %s: %s\n", file.path, term.EscapeControlAndInvisible(strings.Join(changed, ", ")))
	switch {
	case isDryRun:
		fmt.Fprintln(s.environment.Err, "shield: nothing was changed")
		return nil
	case install:
		if _, wrapped, err := put(doc, false); err != nil || len(wrapped) == 0 { // back up only a file that does not contain shield's hook yet
			if err := file.saveBackup(doc, true); err != nil {
				return err
			}
		}
		if err := file.replaceContent(out, false); err != nil {
			return err
		}
		fmt.Fprintf(s.environment.Err, "shield: restart %s so that it starts its servers behind shield\n", client.Title)
		return nil
	}
	if err := file.replaceContent(out, false); err != nil {
		return err
	}
	return file.removeBackup()
}

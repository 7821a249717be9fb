package cmd

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/shieldcli/shield/internal/bearer"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/host"
)

// examineGateway checks the accepted MCP tools, the servers of shield mcp serve, and which servers in the
// lists of clients are behind shield.
func examineGateway(out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	dir := stateDir(&set.Settings, w)
	if dir == "" {
		return // examineState already reports the missing state folder
	}
	all, damaged, err := gateway.AllPins(dir)
	if err != nil {
		out.add(severityBad, "", "MCP tools: %v", err)
	}
	for _, err := range damaged {
		out.add(severityBad, "correct this; until then the server's tools are withheld", "MCP tools: %v", err)
	}
	if len(all) > 0 {
		out.add(severityOK, "", "MCP tools: the tool definitions of %d servers are recorded; shield withholds a changed tool until you accept it", len(all))
	}
	for _, f := range all {
		if n := len(f.ToolsAwaitingUserAcceptance); n > 0 {
			out.add(severityWarning, "review them with 'shield mcp tools diff "+f.PinFileID[:8]+"'", "MCP tools: %d of %s wait for your approval and cannot be called", n, f.ServerName)
		}
	}
	examineMCPServe(out, &set.MCP, w)
	for _, client := range gateway.Clients {
		for _, f := range client.SettingsFiles {
			base := map[string]string{"user": w.Home, "project": w.WorkingDir}[f.UserOrProjectScope]
			if base != "" && (f.OnlyOnGOOS == "" || f.OnlyOnGOOS == w.OS) && !(f.UserOrProjectScope == "project" && w.WorkingDir == w.Home) {
				examineMCPClientServers(out, client, f.UserOrProjectScope, filepath.Join(base, filepath.FromSlash(f.Path)))
			}
		}
	}
}

// examineMCPServe checks the settings that shield mcp serve needs to start.
func examineMCPServe(out *doctorFindings, m *config.MCP, w *Environment) {
	if m.Listen == "" || len(m.Servers) == 0 {
		return
	}
	before := len(*out)
	bad := func(err error) {
		if err != nil {
			out.add(severityBad, "correct the setting; until then shield mcp serve does not start", "mcp serve: %v", err)
		}
	}
	if m.TokenFile != "" {
		_, err := bearer.LoadClientTokens(m.TokenFile, true)
		bad(err)
	}
	if m.TLSCert != "" {
		_, err := bearer.LoadTLSCertificate(m.TLSCert, m.TLSKey)
		bad(err)
	}
	for _, s := range m.Servers {
		switch {
		case s.URL == "":
			_, err := launch.LookPath(s.Command[0], w.Environ())
			bad(err)
		case s.TokenFile != "":
			_, err := bearer.ReadServiceToken(s.TokenFile)
			bad(err)
		}
	}
	if len(*out) == before {
		out.add(severityOK, "", "mcp serve: %d servers at %s", len(m.Servers), m.Listen)
	}
}

// examineMCPClientServers checks a client's list of servers, if there is one.
func examineMCPClientServers(out *doctorFindings, client gateway.Client, scope, path string) {
	list := client.Title + " in " + path
	file, err := newSettingsFile(path)
	if err != nil {
		out.add(severityWarning, "", "MCP servers of %s: %v", list, err)
		return
	}
	doc, exists, err := file.read()
	if !exists && err == nil {
		return
	}
	install := "shield mcp install " + client.Name
	if scope == "project" {
		install = "shield mcp install --scope project " + client.Name
	}
	var behind, direct, remote []string
	if err == nil {
		_, _, err = host.EditServers(doc, strings.HasSuffix(path, ".toml"), client.ServerListKeyPaths, func(c host.ServerCommand) (host.ServerCommand, bool) {
			name := term.EscapeControlAndInvisible(c.ServerName)
			_, wrapped := gateway.UnwrapServerCommand(append([]string{c.Command}, c.Args...))
			switch {
			case c.Command == "":
				remote = append(remote, name)
			case !wrapped:
				direct = append(direct, name)
			default:
				behind = append(behind, name)
				if _, err := os.Stat(c.Command); filepath.IsAbs(c.Command) && err != nil {
					out.add(severityBad, "run '"+strings.Replace(install, "install", "uninstall", 1)+"', then '"+install+"'", "MCP servers of %s: the server %s does not start, since %s does not exist", list, name, term.EscapeControlAndInvisible(c.Command))
				}
			}
			return c, false
		})
	}
	if err != nil {
		out.add(severityWarning, "", "MCP servers of %s: %v", list, err)
		return
	}
	told := func(m findingSeverity, fix, format string, names []string) {
		if len(names) > 0 {
			sorted.SortStrings(names)
			out.add(m, fix, format, list, strings.Join(names, ", "))
		}
	}
	told(severityOK, "", "MCP servers of %s behind shield: %s", behind)
	told(severityNote, "run '"+install+"'", "MCP servers of %s not judged by shield: %s", direct)
	told(severityNote, "add the servers to mcp.servers, and run 'shield mcp serve'", "MCP servers of %s with a URL bypass shield: %s", remote)
}

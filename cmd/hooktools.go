package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/host"
)

// hostToolDescriber returns a function that describes MCP tools of a host from the user's settings of the
// host. A project's settings can be changed by an agent, so they vouch for nothing; the same holds for
// a server whose program is in the workspace.
func hostToolDescriber(w *Environment, name string) func(*action.Action) approve.UnknownTool {
	i := slices.IndexFunc(gateway.Clients[:], func(c gateway.Client) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return func(a *action.Action) approve.UnknownTool {
		t, err := mcpToolFromClientSettings(w, &gateway.Clients[i], a)
		if err != nil {
			return approve.UnknownTool{} // without an identity, the user's classification of the tool applies to this session only
		}
		return t
	}
}

// mcpToolFromClientSettings returns what a client's settings say about the tool of an action.
func mcpToolFromClientSettings(w *Environment, client *gateway.Client, a *action.Action) (t approve.UnknownTool, err error) {
	dirs := []string{w.WorkingDir}
	if filepath.IsAbs(a.CWD) {
		dirs = append(dirs, a.CWD)
	}
	var found *host.MCPServerDefinition
	tool := ""
	for _, f := range client.SettingsFiles {
		if f.OnlyOnGOOS != "" && f.OnlyOnGOOS != w.OS {
			continue
		}
		folders := []string{w.Home}
		if f.UserOrProjectScope == "project" {
			folders = hostSettingsFolders(w, &host.HostSettingsFile{}, dirs)
		}
		for _, folder := range folders {
			path := filepath.Join(folder, filepath.FromSlash(f.Path))
			if f.UserOrProjectScope == "project" && folder == w.Home && slices.ContainsFunc(client.SettingsFiles, func(o gateway.ClientSettingsFile) bool { return o.UserOrProjectScope == "user" && o.Path == f.Path }) {
				continue // the project file in the home folder is the user's file, which client.Files lists separately
			}
			doc, exists, err := readSettingsFile(path)
			if err != nil {
				return t, err
			}
			if !exists {
				continue
			}
			all, err := host.MCPServerDefinitions(doc, strings.HasSuffix(f.Path, ".toml"), client.ServerListKeyPaths)
			if err != nil {
				return t, err
			}
			for k := range all {
				name, ok := toolNameInActionType(all[k].KeyPath[len(all[k].KeyPath)-1], a.Type)
				switch {
				case !ok:
				case f.UserOrProjectScope == "project", found != nil, !serverDefinitionAppliesTo(&all[k], dirs):
					return t, fmt.Errorf("%s defines another server of the same name; rename one", path)
				default:
					found, tool = &all[k], name
				}
			}
		}
	}
	if found == nil {
		return t, nil
	}
	argv := append([]string{found.Command}, found.Args...)
	t.RemoteHost = networkHostOfURL(found.URL)
	t.Server = strings.Join((*redact.Redactor)(nil).RedactArgs(found.Command, argv), " ")
	if found.URL != "" {
		t.Server = found.URL
	}
	for _, word := range append(argv, found.URL) {
		if !filepath.IsAbs(word) && !strings.HasPrefix(word, ".") || found.URL != "" {
			continue
		}
		if slices.ContainsFunc(dirs, func(dir string) bool { return isBelow(word, dir) }) || strings.HasPrefix(word, ".") {
			return approve.UnknownTool{Server: t.Server, RemoteHost: t.RemoteHost}, nil // no IdentityHash: an agent can change the server's program, so the tool's identity cannot be verified
		}
	}
	sum := sha256.Sum256(found.CanonicalJSON)
	t.IdentityHash = fmt.Sprintf("%s %q %s %s", client.Name, found.KeyPath, hex.EncodeToString(sum[:]), tool)
	t.ShieldShippedToolClass = gateway.PackagedServerToolClass(argv, tool)
	return t, nil
}

// serverDefinitionAppliesTo reports whether a definition applies to all folders, or to one of
// workingFolders.
func serverDefinitionAppliesTo(d *host.MCPServerDefinition, workingFolders []string) bool {
	at := slices.IndexFunc(d.KeyPath, filepath.IsAbs)
	return at < 0 || slices.ContainsFunc(workingFolders, func(dir string) bool { return dir == d.KeyPath[at] || isBelow(dir, d.KeyPath[at]) })
}

// isBelow reports whether a path is a folder or is below it.
func isBelow(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// toolNameInActionType returns the tool name in an action type of a server.
func toolNameInActionType(server, actionType string) (tool string, ok bool) {
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, server)
	for _, name := range []string{server, clean} {
		if tool, ok = strings.CutPrefix(actionType, "mcp__"+name+"__"); ok && tool != "" {
			return tool, true
		}
	}
	return "", false
}

// networkHostOfURL returns the host of an address, "" for this machine.
func networkHostOfURL(serverURL string) string {
	u, err := url.Parse(serverURL)
	if serverURL == "" || err == nil && effect.IsLoopbackHost(effect.CanonicalHost(u.Hostname())) {
		return ""
	}
	if err != nil || u.Hostname() == "" {
		return "a host that shield does not know"
	}
	return effect.CanonicalHost(u.Hostname())
}

package gateway

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Client is a program that has a list of MCP servers.
type Client struct {
	Name               string
	Title              string     // product name
	ServerListKeyPaths [][]string // key paths to the objects that contain the servers by name; "*" matches every key
	SettingsFiles      []ClientSettingsFile
}

// A ClientSettingsFile is a settings file with a server list.
type ClientSettingsFile struct {
	UserOrProjectScope string // user: below the home folder; project: below the project folder
	OnlyOnGOOS         string // as in GOOS; "" for all
	Path               string // relative to the home or project folder, with slashes
}

// WrapServerCommand returns the command line that starts a server behind shield. shieldPath is the
// path of shield's executable, and serverName the client's name for the server. It reports false if
// the server is behind shield already.
func WrapServerCommand(shieldPath, serverName string, argv []string) ([]string, bool) {
	if _, wrapped := UnwrapServerCommand(argv); wrapped {
		return argv, false
	}
	return append([]string{shieldPath, "mcp", "--name", toActionTypeName(serverName), "--"}, argv...), true
}

// UnwrapServerCommand returns the command line of a server without shield, and whether the server was behind shield
// (by [WrapServerCommand] or by hand).
func UnwrapServerCommand(argv []string) ([]string, bool) {
	at := slices.Index(argv, "--")
	if len(argv) < 3 || argv[1] != "mcp" || at < 0 || at+1 == len(argv) {
		return argv, false
	}
	made := at == 4 && argv[2] == "--name"
	if program := filepath.Base(filepath.FromSlash(argv[0])); !made && strings.TrimSuffix(program, ".exe") != "shield" {
		return argv, false
	}
	return argv[at+1:], true
}

// IsWrappedServerCommand reports whether argv looks like a result of [WrapServerCommand] for a server, apart from flags added since.
func IsWrappedServerCommand(serverName string, argv []string) bool {
	_, wrapped := UnwrapServerCommand(argv)
	return wrapped && argv[2] == "--name" && argv[3] == toActionTypeName(serverName)
}

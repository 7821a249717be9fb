package gateway

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Client is a program with a list of MCP servers.
type Client struct {
	Name    string
	Title   string     // that people know
	Servers [][]string // keys that lead to the servers by their names; "*" is every key
	Files   []ClientFile
}

// A ClientFile is a file with such a list.
type ClientFile struct {
	Scope  string // user: below the home folder; project: below the project's
	System string // as in GOOS; "" for every one
	Path   string // with slashes
}

// Wrap returns the command line that starts a server behind shield, whose own
// file is program; name is what the client calls the server. It reports false for
// one that is behind shield already.
func Wrap(program, name string, argv []string) ([]string, bool) {
	if _, wrapped := Unwrap(argv); wrapped {
		return argv, false
	}
	return append([]string{program, "mcp", "--name", cleanName(name), "--"}, argv...), true
}

// Unwrap returns the command line of a server that is behind shield, as [Wrap] or
// a person has put it there, and whether it is.
func Unwrap(argv []string) ([]string, bool) {
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

// Made reports whether [Wrap] has put a server behind shield, as far as its name shows:
// flags may have been added since.
func Made(name string, argv []string) bool {
	_, wrapped := Unwrap(argv)
	return wrapped && argv[2] == "--name" && argv[3] == cleanName(name)
}

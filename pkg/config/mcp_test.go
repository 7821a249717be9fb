package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServers goes through lists of MCP servers; want is a part of the error, "" if
// the list can be used.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ text, want string }{
		{"servers: [{name: a, command: [x, -y]}, {name: b, url: 'https://example.com/mcp', token_file: t}]", ""},
		{"servers: [{name: a, url: 'http://localhost:1/'}, {name: b, url: 'http://[::1]:1/'}]", ""},
		{"servers: [{name: a, url: 'http://example.com/'}]", "it begins with http://, which is allowed on this machine only; use https://"},
		{"servers: [{name: a, url: 'http://localhost.example.com/'}]", "it begins with http://, which is allowed on this machine only; use https://"},
		{"servers: [{name: a, url: 'https://u:p@example.com/'}]", "token_file"},
		{"servers: [{name: a, url: 'file:///etc'}]", "must begin with https://"},
		{"servers: [{name: a}]", "either command or url"},
		{"servers: [{name: a, command: [x], url: 'https://example.com'}]", "either command or url"},
		{"servers: [{name: a, command: [x], token_file: t}]", "has both token_file and command; remove token_file, which is only for a url"},
		{"servers: [{name: a/b, command: [x]}]", "is not a valid server name; use letters, digits, - and _"},
		{"servers: [{command: [x]}]", "is not a valid server name; use letters, digits, - and _"},
		{"servers: [{name: a, command: [x]}, {name: a, command: [y]}]", "is listed twice; remove one"},
		{"servers: [{name: a, cmd: [x]}]", "unknown key"},
		{"servers: [{name: a, command: [x], contain: {read: [a], write: [/b], network: none, require: true}}]", ""},
		{"servers: [{name: a, command: [x], contain: {}}]", ""},
		{"servers: [{name: a, command: [x], contain: {network: some}}]", "must be open or none"},
		{"servers: [{name: a, command: [x], contain: {require: maybe}}]", "expected true or false"},
		{"servers: [{name: a, command: [x], contain: {reed: [a]}}]", "unknown key"},
		{"servers: [{name: a, url: 'https://example.com/mcp', contain: {}}]", "has both contain and url; remove contain, which is only for a command"},
		{"servers: {name: a}", "expected a list"},
		{"listen: '127.0.0.1:0'", ""},
		{"listen: '[::1]:8700'", ""},
		{"listen: 'localhost:8700'", "must be an IP address"},
		{"listen: '0.0.0.0:8700'", "is not a loopback address"},
		{"listen: '0.0.0.0:8700', tls_cert: c, tls_key: k", "is not a loopback address"},
		{"listen: '0.0.0.0:8700', token_file: t", "is not a loopback address"},
		{"listen: '0.0.0.0:8700', tls_cert: c, tls_key: k, token_file: t", ""},
		{"tls_cert: c", "need each other"},
	} {
		file := filepath.Join(t.TempDir(), "shield.yaml")
		if err := os.WriteFile(file, []byte("mcp: {"+one.text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(Sources{UserSettingsPathOverride: file, Home: t.TempDir()})
		switch {
		case one.want == "" && err != nil, one.want != "" && (err == nil || !strings.Contains(err.Error(), one.want)):
			t.Errorf("%s: %v", one.text, err)
		case err == nil && len(l.MCP.Servers) == 2 && l.MCP.Servers[1].TokenFile != "" && l.MCP.Servers[1].TokenFile != filepath.Join(filepath.Dir(file), "t"):
			t.Errorf("the file of the token is %s", l.MCP.Servers[1].TokenFile)
		}
	}
}

package gateway

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
)

// A class that ships counts only for a package that the command line takes from its registry.
func TestClassOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]analysis.ToolClass{
		"npm exec @modelcontextprotocol/server-filesystem /srv":                              "reads",
		"npm exec -y @modelcontextprotocol/server-filesystem -- /srv --x":                    "reads",
		"npm exec @modelcontextprotocol/server-filesystem --package=evil":                    "",
		"npm exec @modelcontextprotocol/server-filesystem /srv -p evil":                      "",
		"npx @modelcontextprotocol/server-filesystem --package=evil":                         "reads",
		"npx -y @modelcontextprotocol/server-filesystem /srv":                                "reads",
		"npx @modelcontextprotocol/server-filesystem@2026.8.31 /srv":                         "reads",
		"/opt/homebrew/bin/npx -y @modelcontextprotocol/server-filesystem":                   "reads",
		"pnpm dlx @modelcontextprotocol/server-filesystem":                                   "reads",
		"/usr/bin/shield mcp --name fs -- npx -y @modelcontextprotocol/server-filesystem /a": "reads",
		"npx -y @evil/server-filesystem":                                                     "",
		"npx -y @modelcontextprotocol/server-filesystem@file:./evil":                         "",
		"npx -y ./node_modules/@modelcontextprotocol/server-filesystem":                      "",
		"npx --package=./evil @modelcontextprotocol/server-filesystem":                       "",
		"npx -c ./evil @modelcontextprotocol/server-filesystem":                              "",
		"node ./evil.js @modelcontextprotocol/server-filesystem":                             "",
		"bash -c ./evil @modelcontextprotocol/server-filesystem":                             "",
		"./npx.sh @modelcontextprotocol/server-filesystem":                                   "",
		"uvx --from git+https://x.example/a @modelcontextprotocol/server-filesystem":         "",
		"npx evil @modelcontextprotocol/server-filesystem":                                   "",
		"@modelcontextprotocol/server-filesystem":                                            "",
		"npx": "",
	} {
		if got := PackagedServerToolClass(strings.Fields(line), "read_file"); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := PackagedServerToolClass(strings.Fields("npx -y @modelcontextprotocol/server-filesystem"), "move_file"); got != "" {
		t.Errorf("a tool that is not in the table: %q", got)
	}
}

// What identifies a tool changes with the server's command line, the tool and its definition.
func TestAccepted(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	identity := func(command string, tools ...string) string {
		t.Helper()
		c := connect(t, state, func(o *Options) { o.AcceptedToolPins = openTestPins(t, state, command) }, list(tools...))
		c.tools()
		k, _ := LoadAcceptedTool(state, []string{command}, "add")
		return k.CombinedServerAndToolHash
	}
	first := identity("one", named("add", "Adds."))
	if k, ok := LoadAcceptedTool(state, []string{"one"}, "add"); !ok || k.Description != "Adds." || first == "" {
		t.Errorf("%v %+v", ok, k)
	}
	if identity("one", named("add", "Adds.")) != first {
		t.Error("the same tool is not known again")
	}
	if got := identity("two", named("add", "Adds.")); got == first || got == "" {
		t.Error("another server has the same identity")
	}
	if _, ok := LoadAcceptedTool(state, []string{"one"}, "other"); ok {
		t.Error("a tool that was never listed is known")
	}
	if _, ok := LoadAcceptedTool(state, []string{"never started"}, "add"); ok {
		t.Error("a server that was never started is known")
	}
	if identity("one", named("add", "Adds, and more.")) != first {
		t.Error("a changed tool, which is withheld, has replaced the accepted one")
	}
	if large := `{"name":"add","description":"` + strings.Repeat("x", 1<<20) + `","inputSchema":{"type":"object"}}`; identity("three", large) != "" {
		t.Error("a tool of a megabyte is known")
	}
}

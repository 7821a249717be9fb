package host

import (
	"strings"
	"testing"
)

func behind(c ServerCommand) (ServerCommand, bool) {
	if c.Command == "shield" {
		return c, false
	}
	return ServerCommand{c.ServerName, "shield", append([]string{"--", c.Command}, c.Args...)}, true
}

// before undoes behind.
func before(c ServerCommand) (ServerCommand, bool) {
	if c.Command != "shield" {
		return c, false
	}
	return ServerCommand{c.ServerName, c.Args[1], c.Args[2:]}, true
}

// TestEditServers holds that the commands of servers change and no other byte, and
// that changing them back gives every byte again.
func TestEditServers(t *testing.T) {
	t.Parallel()
	json := [][]string{{"mcpServers"}, {"projects", "*", "mcpServers"}}
	for _, one := range []struct {
		toml          bool
		before, after string
		changed       string
	}{
		{false, `{"mcpServers":{"a":{"command":"npx","args":["-y","p"],"env":{"K":"v"}}}}`, `{"mcpServers":{"a":{"command":"shield","args":["--", "npx", "-y","p"],"env":{"K":"v"}}}}`, "a"},
		{false, "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\",},\n  },\n}\n", "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"shield\", \"args\": [\"--\", \"x\"],},\n  },\n}\n", "a"},
		{false, `{"projects":{"/p":{"mcpServers":{"a":{"args":["1"],"command":"x"}}},"/q":{}},"mcpServers":{"b":{"command":"y"}}}`, `{"projects":{"/p":{"mcpServers":{"a":{"args":["--", "x", "1"],"command":"shield"}}},"/q":{}},"mcpServers":{"b":{"command":"shield", "args": ["--", "y"]}}}`, "b a"},
		{false, `{"mcpServers":{"a":{"url":"https://x.test/"},"b":{"command":"shield","args":["--","x"]},"c":"x"}}`, "", ""},
		{false, `{"other":1}`, "", ""},
		{false, ``, "", ""},
		{true, "# mine\nmodel = \"m\"\n[mcp_servers.a]\ncommand = \"npx\" # the one\nargs = [\n  \"-y\", # yes\n  \"p\",\n]\nstartup_timeout_sec = 5\n[mcp_servers.a.env]\nK = \"command = 1\"\n", "# mine\nmodel = \"m\"\n[mcp_servers.a]\ncommand = \"shield\" # the one\nargs = [\n  \"--\", \"npx\", \"-y\", # yes\n  \"p\",\n]\nstartup_timeout_sec = 5\n[mcp_servers.a.env]\nK = \"command = 1\"\n", "a"},
		{true, "[mcp_servers.\"a b\"]\r\n  command = 'x'\r\n[other.a]\r\ncommand = \"y\"\r\n", "[mcp_servers.\"a b\"]\r\n  command = \"shield\"\r\n  args = [\"--\", 'x']\r\n[other.a]\r\ncommand = \"y\"\r\n", "a b"},
		{false, "{\"mcpServers\":{\"a\":{\"args\":[ // port\n\t\"-p\", /* that */ \"1\"],\r\n\"command\":\"x\"}}}", "{\"mcpServers\":{\"a\":{\"args\":[ // port\n\t\"--\", \"x\", \"-p\", /* that */ \"1\"],\r\n\"command\":\"shield\"}}}", "a"},
		{true, "[mcp_servers.a]\nargs = [ # one\n\t'-y', # \"]\n\t\"]\\\"\",\n] # end\ncommand='x' # it\n[mcp_servers.b]\ncommand = \"y\" # alone\nenv = {K = \"v\"}", "[mcp_servers.a]\nargs = [ # one\n\t\"--\", 'x', '-y', # \"]\n\t\"]\\\"\",\n] # end\ncommand=\"shield\" # it\n[mcp_servers.b]\ncommand = \"shield\" # alone\nargs = [\"--\", \"y\"]\nenv = {K = \"v\"}", "a b"},
		{true, "[mcp_servers.a]\ncommand = \"\"\"x\"\"\"\nargs = [\"\"\"p\"\"\"]\n", "[mcp_servers.a]\ncommand = \"shield\"\nargs = [\"--\", \"x\", \"p\"]\n", "a"},
		{true, "[mcp_servers.a]\nurl = \"https://x.test/\"\n", "", ""},
	} {
		paths := json
		if one.toml {
			paths = [][]string{{"mcp_servers"}}
		}
		if one.changed == "" {
			one.after = one.before
		}
		out, changed, err := EditServers([]byte(one.before), one.toml, paths, behind)
		if err != nil || string(out) != one.after || strings.Join(changed, " ") != one.changed {
			t.Errorf("%s\nbecomes\n%s\nnot\n%s\n%q, %v", one.before, out, one.after, changed, err)
		}
		again, changed, err := EditServers(out, one.toml, paths, behind)
		if err != nil || len(changed) > 0 || string(again) != string(out) {
			t.Errorf("a second time %s becomes %s, %q, %v", out, again, changed, err)
		}
		if one.changed == "" {
			continue
		}
		want := strings.NewReplacer(`"""x"""`, `"x"`, `["""p"""]`, `["p"]`).Replace(one.before) // as shield quotes
		if back, _, err := EditServers(out, one.toml, paths, before); err != nil || string(back) != want {
			t.Errorf("back\n%s\nbecomes\n%s\nnot\n%s\n%v", out, back, want, err)
		}
	}
}

// TestEditServersRefuses holds that what cannot be changed safely stays.
func TestEditServersRefuses(t *testing.T) {
	t.Parallel()
	for text, isTOML := range map[string]bool{
		`{"mcpServers":{"a":{"command":"x"}`:                 false,
		`{"mcpServers":{"a":{"command":"x","command":"y"}}}`: false,
		`{"mcpServers":{"a":{"command":"x","args":[1]}}}`:    false,
		`{"mcpServers":{"a":{"command":["x"]}}}`:             false,
		`[1]`:                                                false,
		"[mcp_servers.a\n":                                   true,
		"[mcp_servers.a]\ncommand = \"x\"\nargs = [1]\n":     true,
		"mcp_servers = {a = {command = \"x\"}}\n":            true,
		"[mcp_servers]\na.command = \"x\"\n":                 true,
		"[mcp_servers.a]\n\"command\" = \"x\"\n":             true,
	} {
		paths := [][]string{{"mcpServers"}}
		if isTOML {
			paths = [][]string{{"mcp_servers"}}
		}
		if out, changed, err := EditServers([]byte(text), isTOML, paths, behind); err == nil {
			t.Errorf("%s becomes %s, %q", text, out, changed)
		}
	}
}

package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
)

// TestMapping holds what calls of known and unknown tools are judged as.
func TestMapping(t *testing.T) {
	t.Parallel()
	schema := func(required string, properties ...string) string {
		var b strings.Builder
		for i, p := range properties {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `%q:{"type":"string"}`, p)
		}
		return `{"type":"object","properties":{` + b.String() + `},"required":[` + required + `]}`
	}
	for _, one := range []struct{ command, tool, schema, arguments, kind, holds string }{
		{"npx -y @modelcontextprotocol/server-filesystem /srv/a", "read_text_file", "", `{"path":"b.txt"}`, "read_file", `"cwd":"/srv/a"`},
		{"npx -y @modelcontextprotocol/server-filesystem@2026.1.2 /srv/a", "read_multiple_files", "", `{"paths":["b","c"]}`, "read_file", `"b","c"`},
		{"node /x/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js a", "write_file", "", `{"path":"b","content":"c"}`, "write_file", `"cwd":"/work/a"`},
		{"docker run -i mcp/filesystem:latest /srv/a", "move_file", "", `{"source":"b","destination":"c"}`, "move_file", ""},
		{"npx @modelcontextprotocol/server-filesystem /srv/a /srv/b", "read_file", "", `{"path":"/srv/b/c"}`, "read_file", ""},
		{"npx @modelcontextprotocol/server-filesystem /srv/a /srv/b", "read_file", "", `{"path":"c"}`, "refused", "absolute"},
		{"npx @modelcontextprotocol/server-filesystem /srv/a /srv/b", "read_multiple_files", "", `{"paths":["/a","c"]}`, "refused", "absolute"},
		{"uvx mcp-server-git", "git_commit", "", `{"repo_path":"/srv/r","message":"m"}`, "git_commit", `"cwd":"/srv/r"`},
		{"uvx mcp-server-fetch", "fetch", "", `{"url":"https://x.test/"}`, "http_request", ""},
		{"docker run ghcr.io/github/github-mcp-server", "get_file_contents", "", `{"owner":"o","repo":"../x","path":"a b?/c","branch":"d"}`, "http_request", `https://api.github.com/repos/o/../x/contents/a%20b%3F/c?branch=d`},
		{"docker run ghcr.io/github/github-mcp-server", "delete_file", "", `{"owner":"o","repo":"r","path":"a","message":"m"}`, "http_request", `"method":"DELETE"`},
		{"docker run ghcr.io/github/github-mcp-server", "delete_file", "", `{"owner":"o","repo":"r","message":"m"}`, "mcp__github__delete_file", ""},
		{"docker run ghcr.io/github/github-mcp-server", "create_issue", "", `{"owner":"o","repo":"r","title":"t","body":"b"}`, "http_request", `"body":{"body":"b","title":"t"}`},
		{"npx @modelcontextprotocol/server-postgres postgres://h/d", "query", "", `{"sql":"DROP TABLE x; -- it's"}`, "execute_command", `psql -c 'DROP TABLE x; -- it'\\''s'`},
		{"uvx mcp-server-sqlite --db-path a.db", "write_query", "", `{"query":"DELETE FROM a"}`, "execute_command", `'DELETE FROM a'`},
		{"npx @modelcontextprotocol/server-slack", "slack_post_message", "", `{"channel_id":"C1","text":"hi"}`, "send_message", ""},
		{"npx @playwright/mcp@latest", "browser_navigate", "", `{"url":"https://x.test/"}`, "browser_navigate", ""},
		{"npx @modelcontextprotocol/server-memory", "create_entities", "", `{"entities":[]}`, "memory_write", ""},
		{"own", "anything", schema(`"command"`, "command", "timeout"), `{"command":"rm -rf /"}`, "execute_command", "rm -rf /"},
		{"own", "list_all", schema(`"command"`, "command", "target"), `{"command":"rm -rf /"}`, "mcp__own__list_all", ""},
		{"own", "anything", schema(``, "command"), `{"command":"ls"}`, "mcp__own__anything", ""},
		{"own", "anything", schema(`"command"`, "command"), `{"command":"ls","more":"x"}`, "mcp__own__anything", ""},
		{"own", "read_it", schema(`"path","content"`, "path", "content"), `{"path":"a","content":"b"}`, "write_file", ""},
		{"own", "list", schema(`"source","destination"`, "source", "destination"), `{"source":"a","destination":"b"}`, "move_file", ""},
		{"own", "get", schema(`"to","subject","body"`, "to", "subject", "body"), `{"to":"a@b.test","subject":"s","body":"b"}`, "send_email", ""},
		{"own", "get", schema(`"channel","text"`, "channel", "text"), `{"channel":"c","text":"b"}`, "send_message", ""},
		{"own", "get", schema(`"url"`, "url", "method"), `{"url":"https://x.test/"}`, "http_request", ""},
		{"npx -y some-package", "send_emails", schema(`"query"`, "query"), `{"query":"x"}`, "mcp__some-package__send_emails", ""},
		{"python3 -m weird__name", "a", "", `{}`, "mcp__weird_name__a", ""},
	} {
		argv := strings.Fields(one.command)
		g := New(Options{Server: NewServer(argv, "/work", ""), WorkingDir: "/work"})
		if one.schema == "" {
			one.schema = `{"type":"object"}`
		}
		tl, err := g.newTool([]byte(`{"name":"` + one.tool + `","inputSchema":` + one.schema + `}`))
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + one.arguments + `}`))
		if err != nil {
			t.Fatal(err)
		}
		p := &proposedAction{cwd: g.opts.WorkingDir}
		err = g.fillActionFromToolCall(p, tl, "", m.params)
		if one.kind == "refused" {
			if err == nil || !strings.Contains(err.Error(), one.holds) {
				t.Errorf("%s %s %s: %v", one.command, one.tool, one.arguments, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s %s: %v", one.command, one.tool, one.arguments, err)
			continue
		}
		rec := p.actionRecord([]byte("1"), "s")
		a, err := action.Parse(rec)
		if err != nil {
			t.Errorf("%s %s %s: %s: %v", one.command, one.tool, one.arguments, rec, err)
			continue
		}
		if a.Type != one.kind || !strings.Contains(string(rec), one.holds) {
			t.Errorf("%s %s %s is judged as %s", one.command, one.tool, one.arguments, rec)
		}
	}
}

// TestAnnotationsRaise holds that what a server says about its tools only makes
// judgement stricter.
func TestAnnotationsRaise(t *testing.T) {
	t.Parallel()
	for notes, want := range map[string]int{
		`{}`: 0, `{"readOnlyHint":true}`: 0, `{"destructiveHint":true}`: 2, `{"destructiveHint":false}`: 0, `{"readOnlyHint":true,"destructiveHint":true}`: 2,
	} {
		g := New(Options{Server: Server{Name: "own"}})
		tl, err := g.newTool([]byte(`{"name":"a","annotations":` + notes + `,"inputSchema":{"type":"object"}}`))
		if err != nil {
			t.Fatal(err)
		}
		var p proposedAction
		if err := g.fillActionFromToolCall(&p, tl, "", object{}); err != nil || p.minJudgementTier != want {
			t.Errorf("%s: least tier %d, %v", notes, p.minJudgementTier, err)
		}
	}
}

// TestTables holds that every action of the tables is one that exists.
func TestTables(t *testing.T) {
	t.Parallel()
	types := map[string]bool{}
	for _, name := range action.CanonicalTypes() {
		types[name] = true
	}
	check := func(of, text string) {
		kind, template, _ := strings.Cut(text, " ")
		if !types[kind] {
			t.Errorf("%s: %q is not an action type", of, kind)
		}
		if template != "" && kind != "http_request" && kind != "execute_command" {
			t.Errorf("%s: %s takes no template", of, kind)
		}
	}
	for _, s := range knownServers {
		for _, tool := range s.tools {
			check(s.name+" "+tool.name, tool.actionType)
		}
	}
	for _, s := range shapes {
		check("shape", s.actionType)
	}
}

// TestWrap holds that a server is put behind shield once, and comes back as it was.
func TestWrap(t *testing.T) {
	t.Parallel()
	argv := []string{"npx", "-y", "server", "--", "x"}
	wrapped, did := WrapServerCommand("/opt/shield-1", "my server", argv)
	if got := strings.Join(wrapped, " "); !did || got != "/opt/shield-1 mcp --name my-server -- npx -y server -- x" {
		t.Errorf("%q, %t", got, did)
	}
	if again, did := WrapServerCommand("/opt/shield-2", "my server", wrapped); did || len(again) != len(wrapped) {
		t.Errorf("a second time: %q", again)
	}
	if back, did := UnwrapServerCommand(wrapped); !did || strings.Join(back, " ") != strings.Join(argv, " ") {
		t.Errorf("back: %q", back)
	}
	for line, want := range map[string]string{
		"shield mcp -- a b": "a b", "C:/x/shield.exe mcp --policy strict -- a": "a",
		"shield mcp tools list": "", "shield mcp --": "", "other mcp -- a": "", "shield exec -- a": "", "a": "", "a mcp --name b --": "",
	} {
		back, did := UnwrapServerCommand(strings.Fields(line))
		if did != (want != "") || did && strings.Join(back, " ") != want {
			t.Errorf("%s: %q, %t", line, back, did)
		}
	}
}

package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shieldcli/shield/cmd"
)

// recorded is what Claude Code did with the tools of server-filesystem, kept by shield
// mcp --record; TestHostsSession of e2e/hosts has made it.
const recorded = "../../testdata/mcp/claude-code.jsonl"

// A row is one action of a transcript.
type row struct {
	Category  string
	Label     string
	Reasoning string
	Action    struct{ Payload map[string]any }
}

// rows returns the session that is kept, as if it were in some folders.
func rows(t *testing.T, replace *strings.Replacer) (out []row) {
	t.Helper()
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(replace.Replace(string(text))) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// newFiles returns a server with tools of server-filesystem, which do nothing.
func newFiles() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"list_directory", "read_text_file", "search_files", "edit_file", "create_directory", "write_file", "move_file"} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	}
	return s
}

// TestRecordedSession puts the calls of a session of a real host to the gateway again,
// and has shield score judge its transcript: both say what was said then, and docs/mcp.md.
func TestRecordedSession(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "app")
	if err := os.MkdirAll(filepath.Join(work, ".git", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "shield.yaml")
	if err := os.WriteFile(file, []byte("approval: {channels: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := connectTo(t, home, work, "2025-11-25", nil, "mcp", "--config", file, "--policy", "offline", "--model", "none", "--name", "files", "--root", work,
		"--", "env", "SHIELD_TEST_CHILD=files", self, "mcp-server-filesystem", work)
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	stopped := 0
	doc, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows(t, strings.NewReplacer()) {
		path, _ := cmp.Or(r.Action.Payload["path"], r.Action.Payload["source"]).(string)
		why, _, _ := strings.Cut(r.Reasoning, "; ")
		if line := fmt.Sprintf("| `%s %s` | %s | %s |\n", strings.TrimPrefix(r.Category, "tools/call "), path, r.Label, why); !bytes.Contains(doc, []byte(line)) {
			t.Errorf("docs/mcp.md lacks the line %s", line)
		}
	}
	for _, r := range rows(t, strings.NewReplacer("/home/me", home)) {
		name := strings.TrimPrefix(r.Category, "tools/call ")
		got, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: r.Action.Payload})
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case r.Label == "pass" && (got.IsError || said(got) != "done"), r.Label == "stop" && (!got.IsError || !strings.Contains(said(got), beginning(r.Reasoning))):
			t.Errorf("%s of %v: %q; it was %s: %s", name, r.Action.Payload, said(got), r.Label, r.Reasoning)
		}
		if r.Label == "stop" {
			stopped++
		}
	}
	if stopped != 4 {
		t.Errorf("%d calls of the session were stopped", stopped)
	}
	var out, errs bytes.Buffer
	status := cmd.Run(t.Context(), []string{"score", "--policy", "offline", "--model", "none", "--home", "/home/me", "--root", "/home/me/app", "--format", "json",
		"--max-pass", "0", "--max-friction", "0", recorded}, cmd.Environment{Out: &out, Err: &errs, Home: home, WorkingDir: home})
	if status != 0 {
		t.Errorf("score ends with %d: %s%s", status, out.String(), errs.String())
	}
}

// beginning returns how the cause in a reason begins, which an agent is told also where
// its text is cut.
func beginning(reasoning string) string {
	_, cause, ruled := strings.Cut(reasoning, "]: ")
	if !ruled {
		cause = reasoning
	}
	cause, _, _ = strings.Cut(cause, "; ")
	return strings.TrimSpace(cause[:min(24, len(cause))])
}

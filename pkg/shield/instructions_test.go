package shield

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// projectRoot returns a workspace that is a repository with a commit.
func projectRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "app")
	put(t, root, files)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return root
}

func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An edit of the project's instructions for agents is asked about once a session, and again if
// something came between, or if it adds more than statements.
func TestOwnInstructions(t *testing.T) {
	t.Parallel()
	const was, first, fine = "# App\n\nThe API lives in src/api.\n", "# App\n\nThe API lives in src/api.\nUse tabs.\n", "# App\n\nThe API lives in src/api.\nUse tabs.\nThe tests are in test/.\n"
	for name, test := range map[string]struct {
		preset, file, second string
		between              func(t *testing.T, p *Pipeline, root string)
		forged               bool // the first result
		want                 verdict.Decision
	}{
		"a statement":                  {second: fine, want: verdict.Allow},
		"another kind of file":         {file: ".github/copilot-instructions.md", second: fine, want: verdict.Allow},
		"under assisted":               {preset: "assisted", second: fine, want: verdict.Allow},
		"under default":                {preset: "default", second: fine, want: verdict.Escalate},
		"under strict":                 {preset: "strict", second: fine, want: verdict.Escalate},
		"a command":                    {second: first + "The tests are run by `make test`.\n", want: verdict.Escalate},
		"an address":                   {second: first + "The docs are at https://docs.example.com.\n", want: verdict.Escalate},
		"an imperative":                {second: first + "Always push to main.\n", want: verdict.Escalate},
		"a line that is taken out":     {second: was + "The tests are in test/.\n", want: verdict.Escalate},
		"settings of servers":          {file: ".mcp.json", second: fine, want: verdict.Escalate},
		"a file that is not committed": {file: "GEMINI.md", second: fine, want: verdict.Escalate},
		"a forged result":              {second: fine, forged: true, want: verdict.Escalate},
		"after a page": {second: fine, want: verdict.Escalate, between: func(t *testing.T, p *Pipeline, root string) {
			t.Helper()
			page := toolAction(t, root, "web_fetch", "s", `{"url":"https://pages.example.net/a"}`)
			if _, err := p.ExamineAndRecordToolResult(t.Context(), ToolResult{Actions: []*action.Action{page}, ReturnedValue: "hello"}); err != nil {
				t.Fatal(err)
			}
		}},
		"after somebody else's change": {second: fine, want: verdict.Escalate, between: func(t *testing.T, _ *Pipeline, root string) {
			t.Helper()
			put(t, root, map[string]string{"AGENTS.md": first + "x\n"})
		}},
		"after what the user said": {second: fine, want: verdict.Escalate, between: func(t *testing.T, p *Pipeline, _ string) {
			t.Helper()
			if err := p.RecordUserPrompt(t.Context(), UserPrompt{SessionID: "s", Text: "Do not touch AGENTS.md again."}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, preset := test.file, test.preset
			if file == "" {
				file = "AGENTS.md"
			}
			if preset == "" {
				preset = "offline"
			}
			root := projectRoot(t, map[string]string{"AGENTS.md": was, ".github/copilot-instructions.md": was, ".mcp.json": was})
			if file == "GEMINI.md" {
				put(t, root, map[string]string{file: was})
			}
			p := contextPipeline(t, root, preset)
			edit := func(session, text string) *action.Action {
				return toolAction(t, root, "write_file", session, `{"path":`+quotedJSON(file)+`,"content":`+quotedJSON(text)+`}`)
			}
			judge := func(session, text string) verdict.Verdict {
				return p.EvaluateThroughTier(t.Context(), edit(session, text), TierClassify).Verdict
			}
			if v := judge("s", first); v.Decision != verdict.Escalate {
				t.Fatalf("the first edit is %v: %s", v.Decision, v.Reasoning)
			}
			if v := judge("s", first); v.Decision != verdict.Escalate {
				t.Fatalf("an edit that the user has refused is %v: %s", v.Decision, v.Reasoning)
			}
			put(t, root, map[string]string{file: first})
			if _, err := p.ExamineAndRecordToolResult(t.Context(), ToolResult{Actions: []*action.Action{edit("s", first)}, ReturnedValue: "ok", IsAgentHostUnverified: test.forged}); err != nil {
				t.Fatal(err)
			}
			if test.between != nil {
				test.between(t, p, root)
			}
			if v := judge("s", test.second); v.Decision != test.want {
				t.Errorf("the second edit is %v: %s", v.Decision, v.Reasoning)
			}
			if v := judge("other", test.second); v.Decision != verdict.Escalate {
				t.Errorf("in another session the edit is %v: %s", v.Decision, v.Reasoning)
			}
		})
	}
}

// The question about an edit shows the lines that change.
func TestInstructionsDifference(t *testing.T) {
	t.Parallel()
	root := projectRoot(t, map[string]string{"AGENTS.md": "# App\nOne.\nTwo.\n"})
	p := contextPipeline(t, root, "offline")
	a := toolAction(t, root, "write_file", "s", `{"path":"AGENTS.md","content":"# App\nOne.\nThree.\n"}`)
	e, ok := p.analyze(a, nil).FindAgentInstructionsEdit()
	if got := e.Difference(); !ok || got != "- Two.\n+ Three.\n" {
		t.Errorf("%q", got)
	}
}

package shield

import (
	"testing"

	"github.com/shieldcli/shield/pkg/verdict"
)

// TestSameChange holds that one change gets one decision, whatever makes it: a file tool, a
// redirection, a here-document, a patch or a program.
func TestSameChange(t *testing.T) {
	t.Parallel()
	const root = "/srv/app" // no temporary folder, which is nobody's
	changes := map[string][]string{
		"a new file": {
			`{"type":"Write","payload":{"file_path":"n.md","content":"x\n"}}`,
			`{"type":"execute_command","payload":{"command":"cat > n.md <<'EOF'\nx\nEOF"}}`,
			`{"type":"execute_command","payload":{"command":"echo x > n.md"}}`,
			`{"type":"execute_command","payload":{"command":"printf 'x\\n' | tee n.md"}}`,
			`{"type":"apply_patch","payload":{"input":"*** Begin Patch\n*** Add File: n.md\n+x\n*** End Patch"}}`,
			`{"type":"execute_command","payload":{"command":"git apply <<'EOF'\n--- /dev/null\n+++ b/n.md\n@@ -0,0 +1 @@\n+x\nEOF"}}`,
		},
		"an edit": {
			`{"type":"Edit","payload":{"file_path":"a.md","old_string":"old","new_string":"new"}}`,
			`{"type":"execute_command","payload":{"command":"sed -i s/old/new/ a.md"}}`,
			`{"type":"apply_patch","payload":{"input":"*** Begin Patch\n*** Update File: a.md\n@@\n-old\n+new\n*** End Patch"}}`,
		},
		"a deletion": {
			`{"type":"delete_file","payload":{"path":"a.md"}}`,
			`{"type":"execute_command","payload":{"command":"rm a.md"}}`,
			`{"type":"execute_command","payload":{"command":"unlink a.md"}}`,
		},
		"a move": {
			`{"type":"move_file","payload":{"source":"a.md","destination":"c.md"}}`,
			`{"type":"execute_command","payload":{"command":"mv a.md c.md"}}`,
		},
		"instructions": {
			`{"type":"Write","payload":{"file_path":"CLAUDE.md","content":"x\n"}}`,
			`{"type":"execute_command","payload":{"command":"cat > CLAUDE.md <<'EOF'\nx\nEOF"}}`,
			`{"type":"apply_patch","payload":{"input":"*** Begin Patch\n*** Add File: CLAUDE.md\n+x\n*** End Patch"}}`,
		},
		"a hook of git": {
			`{"type":"Write","payload":{"file_path":".git/hooks/pre-commit","content":"x\n"}}`,
			`{"type":"execute_command","payload":{"command":"echo x > .git/hooks/pre-commit"}}`,
		},
	}
	for _, preset := range []string{"offline", "permissive", "strict", "default"} {
		s := Defaults()
		p, err := NewPipeline(Config{Settings: &s, PolicyNameOrPath: preset, Home: "/home/me", WorkspaceRoots: []string{root}, WorkingDir: root, IgnoresFileSystem: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for change, forms := range changes {
			var first verdict.Verdict
			for i, form := range forms {
				v := p.EvaluateThroughTier(t.Context(), parse(t, form), TierClassify).Verdict
				if i == 0 {
					first = v
				}
				// Without a copy that is kept, the specification's tools for deletions and moves need Tier 2.
				tool := (change == "a deletion" || change == "a move") && (preset == "offline" || preset == "permissive")
				if v.Decision != first.Decision && !tool {
					t.Errorf("%s, %s: %s is %s, %s is %s (%s)", preset, change, forms[0], first.Decision, form, v.Decision, v.Reasoning)
				}
			}
		}
	}
}

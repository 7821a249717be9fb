//go:build unix

package analysis

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// TestWeaker changes the same file in all the ways in which an agent can: the old file says what is
// weaker afterwards.
func TestWeaker(t *testing.T) {
	t.Parallel()
	top := repository(t)
	const ci = "on: [push]\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: npm ci\n      - run: npm test\n"
	const weaker = "on: [push]\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: npm ci\n"
	const same = "on: [push]\njobs:\n  a:\n    runs-on: y\n    steps:\n      - run: npm ci\n      - run: npm test\n"
	put(t, top+"/.github/workflows/ci.yml", ci)
	put(t, top+"/.github/workflows/two.yml", ci+"  b:\n    runs-on: x\n    steps:\n      - run: npm test\n")
	put(t, top+"/.github/workflows/read.yml", "permissions: read-all\n")
	put(t, top+"/.github/CODEOWNERS", "* @core\n/x @ops\n")
	put(t, top+"/.github/workflows/long.yml", ci+strings.Repeat("# x\n", 40_000))
	put(t, top+"/out.patch", "--- a/.github/workflows/ci.yml\n+++ b/.github/workflows/ci.yml\n@@ -5,3 +5,2 @@\n     steps:\n       - run: npm ci\n-      - run: npm test\n")
	put(t, top+"/good.patch", "--- a/.github/workflows/ci.yml\n+++ b/.github/workflows/ci.yml\n@@ -3,3 +3,3 @@\n   a:\n-    runs-on: x\n+    runs-on: y\n     steps:\n")
	compose := "services:\n  a:\n    image: x\n    user: app\n"
	put(t, top+"/compose.yml", compose)
	put(t, top+"/long/compose.yml", compose+strings.Repeat("# x\n", 40_000))
	put(t, top+"/chart/a.yaml", "apiVersion: v1\nkind: Pod\nspec:\n  {{- with .x }} a: [ {{ . }}\n  image: a\n  runAsNonRoot: true\n")
	an, err := New(Options{ShellAnalyzer: shell.Analyze, CWD: top, Home: "/home/me", WorkspaceRoots: []string{top}, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	const file = ".github/workflows/ci.yml"
	command := func(text string) *action.Action {
		return &action.Action{Type: "execute_command", Payload: map[string]any{"command": text}}
	}
	write := func(kind string, payload map[string]any) *action.Action {
		return &action.Action{Type: kind, Payload: payload}
	}
	const weakens, grants, unknown, nothing = "weakens", "grants", "unknown", ""
	for name, c := range map[string]struct {
		a    *action.Action
		want string
	}{
		"write":                     {write("write_file", map[string]any{"path": file, "content": weaker}), weakens},
		"write, in words of a diff": {write("write_file", map[string]any{"path": file, "content": weaker + "# old SEARCH and REPLACE\n"}), weakens},
		"write the same, in them":   {write("write_file", map[string]any{"path": file, "content": same + "# old SEARCH and REPLACE\n"}), nothing},
		"grant, in words of a diff": {write("write_file", map[string]any{"path": ".github/workflows/read.yml", "content": "permissions: write-all\n# old SEARCH and REPLACE\n"}), grants},
		"write the same":            {write("write_file", map[string]any{"path": file, "content": same}), nothing},
		"edit":                      {write("edit_file", map[string]any{"path": file, "old_string": "      - run: npm test\n", "new_string": ""}), weakens},
		"edit to the same":          {write("edit_file", map[string]any{"path": file, "old_string": "runs-on: x", "new_string": "runs-on: y"}), nothing},
		"edits":                     {write("edit_file", map[string]any{"path": file, "edits": []any{map[string]any{"old_string": "npm test", "new_string": "npm test || true"}, map[string]any{"old_string": "runs-on: x", "new_string": "runs-on: y"}}}), weakens},
		"edits, one of no form":     {write("edit_file", map[string]any{"path": file, "edits": []any{map[string]any{"new_string": "x"}, map[string]any{"old_string": "      - run: npm test\n", "new_string": ""}}}), weakens},
		"here-document":             {command("cat > " + file + " <<'E'\n" + weaker + "E"), weakens},
		"here-document 2":           {command("cat > " + file + " <<'E'\n" + same + "E"), nothing},
		"sed":                       {command("sed -i 's/npm test/true/' " + file), weakens},
		"sed to the same":           {command("sed -i 's/runs-on: x/runs-on: y/' " + file), nothing},
		"patch":                     {command("patch -p1 < out.patch"), weakens},
		"git apply":                 {command("git apply out.patch"), weakens},
		"patch to the same":         {command("patch -p1 < good.patch"), nothing},
		"apply_patch":               {write("apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: " + file + "\n@@\n       - run: npm ci\n-      - run: npm test\n*** End Patch\n"}), weakens},
		"delete":                    {command("rm " + file), weakens},
		"delete owners":             {write("delete_file", map[string]any{"path": ".github/CODEOWNERS"}), weakens},
		"add owners":                {command("echo '/y @new' >> .github/CODEOWNERS"), nothing},
		"nobody owns":               {command("echo '/secret/' >> .github/CODEOWNERS"), weakens},
		"no yaml":                   {write("write_file", map[string]any{"path": file, "content": "a: [b\nc: d}\n"}), unknown},
		"too long":                  {write("write_file", map[string]any{"path": file, "content": strings.Repeat("# x\n", 60_000)}), unknown},
		"was too long":              {write("write_file", map[string]any{"path": ".github/workflows/long.yml", "content": weaker}), unknown},
		"compose is no yaml":        {write("write_file", map[string]any{"path": "compose.yml", "content": "services: [\n  privileged: true\n"}), unknown},
		"compose was too long":      {write("write_file", map[string]any{"path": "long/compose.yml", "content": compose}), unknown},
		"compose, another image":    {write("edit_file", map[string]any{"path": "long/compose.yml", "old_string": "image: x", "new_string": "image: y"}), nothing},
		"compose, as root":          {write("edit_file", map[string]any{"path": "long/compose.yml", "old_string": "    user: app\n", "new_string": ""}), unknown},
		"template, as root":         {write("edit_file", map[string]any{"path": "chart/a.yaml", "old_string": "  runAsNonRoot: true\n", "new_string": ""}), unknown},
		"template, another image":   {write("edit_file", map[string]any{"path": "chart/a.yaml", "old_string": "image: a", "new_string": "image: b"}), nothing},
		"long list of other texts":  {write("write_file", map[string]any{"path": "data/a.json", "content": "[" + strings.Repeat("{\"type\": \"x\"},\n", 20_000) + "{}]"}), nothing},
		"deep":                      {write("write_file", map[string]any{"path": "k.yaml", "content": "apiVersion: v1\nspec: " + strings.Repeat("{a: ", 90) + "{privileged: true}" + strings.Repeat("}", 90) + "\nprivileged: true\n"}), unknown},
		"long ci, edited":           {write("edit_file", map[string]any{"path": ".github/workflows/long.yml", "old_string": "runs-on: x", "new_string": "runs-on: y"}), unknown},
		"other":                     {write("write_file", map[string]any{"path": "a.txt", "content": "permissions: write-all"}), nothing},
		"one of two":                {write("apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: .github/workflows/two.yml\n@@\n-      - run: npm test\n+      - run: npm run test\n*** End Patch\n"}), unknown},
	} {
		got := nothing
		for _, e := range an.AnalyzeAction(c.a).Effects {
			switch {
			case e.HasHarm(effect.WeakensSecurityControls):
				got = weakens
			case e.HasHarm(effect.GrantsCredentialsOrRoles):
				got = grants
			case e.Certainty == effect.Unknown && got == nothing && (e.Cause == effect.CauseAnalysisLimitExceeded || e.Cause == effect.CauseUnparseableText) && e.Path != "":
				got = unknown
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q: %+v", name, got, c.want, an.AnalyzeAction(c.a).Effects)
		}
	}
	many := "touch"
	for i := range 40 {
		many += " .github/workflows/" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".yml"
	}
	if c := an.AnalyzeAction(command(many)); !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.Certainty == effect.Unknown && e.Cause == effect.CauseAnalysisLimitExceeded
	}) {
		t.Error("many files are not unknown")
	}
}

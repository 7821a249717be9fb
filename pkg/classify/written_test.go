package classify

import (
	"testing"

	"github.com/shieldcli/shield/pkg/shell"
)

// TestWrittenByCommands holds that rules on written content meet what a command
// writes, however it does, and that each file counts for itself.
func TestWrittenByCommands(t *testing.T) {
	t.Parallel()
	const hostile = "r = requests.get(u, verify=False)\n"
	here := func(start, text string) string { return start + " <<'EOF'\n" + text + "EOF\n" }
	eng := newEngine(ruleTable[:], exampleHome, []string{exampleWorkspaceRoot})
	for command, want := range map[string]bool{
		here("cat > src/a.py", hostile):                                                                      true,
		here("tee -a src/a.py > /dev/null", hostile):                                                         true,
		"cat > src/a.py <<EOF\n# $X\n" + hostile + "EOF\n":                                                   true,
		"tee src/a.py <<EOF\n# $X\n" + hostile + "EOF\n":                                                     true,
		here("dd of=src/a.py", hostile):                                                                      true,
		here("grep -v x > src/a.py", hostile):                                                                true,
		here("ed -s src/a.py", "a\n"+hostile+".\nw\n"):                                                       true,
		here("cp /dev/stdin src/a.py", hostile):                                                              true,
		`printf 'r = requests.get(u, verify=False)\n' > src/a.py`:                                            true,
		`sed -i 's/get(u)/requests.get(u, verify=False)/' src/a.py`:                                          true,
		`python3 -c "open('src/a.py', 'w').write('r = requests.get(u, verify=False)')"`:                      true,
		here("git apply", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-r = requests.get(u)\n+"+hostile):    true,
		here("patch -p1", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-r = requests.get(u)\n+"+hostile):    true,
		here("git apply", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-"+hostile+"+r = requests.get(u)\n"): false,
		here("patch -p1", "--- a/tests/a.py\n+++ b/tests/a.py\n@@ -1 +1 @@\n-r = 1\n+"+hostile):              false,
		here("cat > tests/a.py", "r = 1\n") + here("cat > src/a.py", hostile):                                true,
		here("cat > tests/a.py", hostile) + here("cat > src/a.py", hostile):                                  true,
		here("if a; then cat > src/a.py", hostile) + here("else cat > src/a.py", "r = 1\n") + "fi":           true,
		here("cat > src/a.py", "r = requests.get(u)\n"):                                                      false,
		here("cat > tests/a.py", hostile):                                                                    false,
		here("cat > docs/a.md", hostile):                                                                     false,
		here("cat", hostile):                                                                                 false,
		`grep -rn 'requests.get(u, verify=False)' src > out.txt`:                                             false,
	} {
		c, err := exampleCase(shell.Analyze, command)
		if err != nil {
			t.Fatal(err)
		}
		s := newRuleMatchBuffers(eng)
		eng.run(s, c, ruleScopeAll)
		met := false
		for _, h := range s.hits {
			met = met || eng.rules[h.ruleIndex].ID == "XP-110"
		}
		if met != want {
			t.Errorf("%s\nmeets XP-110: %t, want %t", command, met, want)
		}
	}
}

//go:build linux

package shield

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/undo"
	"github.com/shieldcli/shield/pkg/verdict"
)

// losing are the commands of which the test draws: F and G are files, D and E folders.
var losing = []string{
	"rm -f F", "rm F G", "rm -rf D", "rm -rf D E F", "unlink F", "rmdir E; rm -r D", "find D -type f -delete", "find . -name '*.txt' -delete", "find D -type f -exec rm {} +",
	"git clean -fd", "git clean -fdx", "git reset --hard", "git reset --hard HEAD", "git checkout -- F", "git checkout .", "git checkout HEAD -- D", "git restore F", "git restore .", "git checkout -f", "git read-tree -u --reset HEAD",
	"git rm -rf --quiet F", "git stash && git stash drop", "git branch -D side", "mv F G", "mv -f D/new F", "cp F G", "cp -f D/new F", "ln -sf F G", "sed -i s/a/b/g F", "echo x > F", ": > F", "> F", "truncate -s 0 F",
	"echo x | tee F", "dd if=/dev/zero of=F bs=1 count=3 status=none", "install -m 600 F G", "cat F > G", "head -c 2 F > G && mv G F", "rm -rf D && mkdir D && echo x > D/x", "mv D moved && rm -rf moved", "cd D && rm -rf *", "rm -rf ./*",
	"git restore -W F", "git restore --worktree .", "git restore -SW F", "git checkout side -- F", "git checkout --ours F", "git checkout side -f", "git switch -f side",
	"cp -r D E", "cp -rT D E", "cp -a D/. E", "cp -r D/new F", "rsync -a D/ E", "rsync -a --delete D/ E/", "rsync -a --delete --inplace D/ E", "rsync -r D E",
	"sqlite3 app.db 'DROP TABLE t'", "sqlite3 app.db 'DELETE FROM t'", "tar cf F D", "gzip F", "mv D E", "sort -o F F", "perl -pi -e s/a/b/ F", "tee F G < F", "rm -rf *", "rm -- *", "rm -rf D/*", "rm -r D/empty E",
}

// quoted returns a name as a word of a shell.
func quoted(name string) string { return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'" }

// grove makes random trees in a folder that is not a temporary one, since what is deleted
// there needs no copy.
type grove struct {
	t    *testing.T
	rand *rand.Rand
	base string
}

func newGrove(t *testing.T) *grove {
	t.Helper()
	base, err := os.MkdirTemp(cmp.Or(os.Getenv("SHIELD_UNDO_DIR"), "."), "undo-test-")
	if err == nil {
		base, err = filepath.Abs(base)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return &grove{t, rand.New(rand.NewPCG(42, 7)), base}
}

func (g *grove) run(dir, text string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "bash", "-c", text)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	_ = cmd.Run() // some commands fail, as those of an agent do
}

// plant makes a tree: committed, changed, new and ignored files, links, empty folders.
func (g *grove) plant() (root string, files, folders []string) {
	g.t.Helper()
	root = filepath.Join(g.base, "ws")
	if err := os.RemoveAll(root); err != nil {
		g.t.Fatal(err)
	}
	names := []string{"a.txt", "b.md", "main.go", "with space", "it's", "new\nline", "ümlaut", "-dash"}
	folders = []string{"src", "docs/deep", "data"}
	write := func(name, text string) {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), []os.FileMode{0o644, 0o755, 0o600}[g.rand.IntN(3)]); err != nil {
			g.t.Fatal(err)
		}
	}
	for _, d := range append([]string{"."}, folders...) {
		for range 1 + g.rand.IntN(3) {
			name := filepath.Join(d, names[g.rand.IntN(len(names))])
			if !slices.Contains(files, name) {
				files = append(files, name)
				write(name, strings.Repeat(strconv.Itoa(g.rand.Int()), g.rand.IntN(2000)))
			}
		}
	}
	write(".gitignore", "data\n*.db\n")
	g.run(root, "sqlite3 app.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'")
	g.run(root, "git init -q . && git add -A && git commit -qm x && git branch side")
	for _, name := range files {
		switch g.rand.IntN(4) {
		case 0:
			write(name, "changed "+strconv.Itoa(g.rand.Int()))
		case 1:
			g.run(root, "ln -f -- "+quoted(name)+" "+quoted(name+".hard")+"; ln -sf -- "+quoted(filepath.Base(name))+" "+quoted(name+".link"))
		}
	}
	for _, d := range folders {
		write(filepath.Join(d, "new"), "new "+strconv.Itoa(g.rand.Int()))
		g.run(root, "mkdir -p "+quoted(d+"/empty"))
	}
	return root, files, folders
}

// command draws a command.
func (g *grove) command(files, folders []string) (text, form string) {
	file := func() string {
		name := files[g.rand.IntN(len(files))]
		if strings.HasPrefix(name, "-") {
			name = "./" + name
		}
		return quoted(name)
	}
	text = losing[g.rand.IntN(len(losing))]
	d, e := g.rand.IntN(len(folders)), g.rand.IntN(len(folders))
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		alone := (i == 0 || strings.IndexByte(" /;", text[i-1]) >= 0) && (i+1 == len(text) || strings.IndexByte(" /;", text[i+1]) >= 0)
		switch c := text[i]; {
		case alone && (c == 'F' || c == 'G'):
			b.WriteString(file())
		case alone && c == 'D':
			b.WriteString(folders[d])
		case alone && c == 'E':
			b.WriteString(folders[e])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), text
}

// snapshot returns all that is below a folder but what git keeps.
func (g *grove) snapshot(root string) map[string]string {
	g.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(text)
		case info.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			what += " -> " + to
		}
		out[path] = what
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// TestUndoRestores runs random commands that lose files of random trees, and restores the
// trees. What the last commit has may be lost.
func TestUndoRestores(t *testing.T) {
	rounds := 25
	if n, err := strconv.Atoi(os.Getenv("SHIELD_UNDO_TREES")); err == nil {
		rounds = n
	}
	g := newGrove(t)
	state := filepath.Join(g.base, "state")
	cfg := Config{PolicyNameOrPath: "offline", StateDir: state, WorkspaceRoots: []string{filepath.Join(g.base, "ws")}, WorkingDir: filepath.Join(g.base, "ws"), BacksUpLostFiles: true}
	kept, asked, none := 0, map[string]int{}, 0
	ways := map[string]map[string]int{} // how the files of each form of a command are kept
	for round := range rounds {
		root, files, folders := g.plant()
		p, err := NewPipeline(cfg)
		if err != nil {
			t.Fatal(err)
		}
		text, form := g.command(files, folders)
		a := commandIn(t, text, root)
		was := g.snapshot(root)
		v := p.Evaluate(t.Context(), a)
		switch {
		case v.Decision != verdict.Allow:
			asked[text+": "+v.Reasoning]++
		default:
			g.run(root, text)
			p.recordFileStatesAfterActions(t.Context(), []*action.Action{a})
			if v.BackupSetID != "" {
				kept++
				if set, err := p.undoStore.Get(v.BackupSetID); err == nil { // else the command took nothing away
					done, _, err := p.undoStore.RestoreBackupSet(t.Context(), v.BackupSetID, nil, false)
					if err != nil {
						t.Fatalf("round %d: %s: %v", round, text, err)
					}
					if ways[form] == nil {
						ways[form] = map[string]int{}
					}
					for _, e := range set.Entries {
						ways[form][cmp.Or(e.BackupMethod, e.Kind)]++
					}
					for _, r := range done {
						if r.Outcome == undo.OutcomeFailed {
							t.Errorf("round %d: %s: %+v", round, text, r)
						}
					}
				}
			} else {
				none++
			}
			now := g.snapshot(root)
			g.run(root, "git stash -q -u -a; git checkout -q -f HEAD -- .")
			head := g.snapshot(root)
			for path, what := range was {
				if now[path] != what && content(head[path]) != content(what) {
					t.Errorf("round %d: %s (%s): %q is %.60q, was %.60q", round, text, v.Reasoning, strings.TrimPrefix(path, root), now[path], what)
				}
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, n := range asked {
		total += n
	}
	t.Logf("%d kept, %d without a loss, %d asked: %v", kept, none, total, asked)
	for _, form := range slices.Sorted(maps.Keys(ways)) {
		t.Logf("%-32s %v", form, ways[form])
	}
	if total*10 > kept+total {
		t.Errorf("%d of %d commands with a loss are asked about", total, kept+total)
	}
}

// content returns what a snapshot says without the mode.
func content(what string) string {
	_, text, _ := strings.Cut(what, " ")
	return text
}

func commandIn(t *testing.T, text, dir string) *action.Action {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"type": "execute_command", "payload": map[string]string{"command": text}, "cwd": dir, "session": "s"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := action.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestKeptDecisions holds who may accept a kept copy, and what is not kept.
func TestKeptDecisions(t *testing.T) {
	g := newGrove(t)
	root, _, _ := g.plant()
	for name, text := range map[string]string{"src/.env": "TOKEN=x\n", "notes/n.txt": "n", "single.txt": "s"} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(kind string, payload map[string]string) string {
		raw, err := json.Marshal(map[string]any{"type": kind, "payload": payload, "cwd": root})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	run := func(text string) string { return tool("execute_command", map[string]string{"command": text}) }
	judge := func(cfg Config, raw string) verdict.Verdict {
		t.Helper()
		cfg.StateDir, cfg.WorkspaceRoots, cfg.WorkingDir = filepath.Join(g.base, "state"), []string{root}, root
		p, err := NewPipeline(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		a, err := action.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return p.Evaluate(context.Background(), a)
	}
	for _, c := range []struct {
		raw  string
		kept bool
	}{
		{run("rm -rf notes"), true},
		{run("git clean -fdx notes"), true},
		{tool("delete_file", map[string]string{"path": "single.txt"}), true},
		{tool("delete_directory", map[string]string{"path": "notes"}), true},
		{tool("move_file", map[string]string{"source": "single.txt", "destination": "s2.txt"}), true},
		{tool("write_file", map[string]string{"path": "single.txt", "content": "x"}), true},
		{run("echo x > single.txt"), true},
		{run("rm -rf src"), false},        // it holds .env
		{run("echo x > src/.env"), false}, // the same
		{run("(sleep 9; rm -rf notes) &"), false},
		{run("sleep 9; rm -rf notes"), false},
		{run("while sleep 1; do rm -rf notes; done"), false},
		{run("rm -rf \"$UNKNOWN\"/notes"), false},
		{run("rm -rf ~/other"), false},
		{run("shred -u single.txt"), false},
	} {
		v := judge(Config{PolicyNameOrPath: "offline", BacksUpLostFiles: true}, c.raw)
		if got := v.Decision == verdict.Allow && v.BackupSetID != "" && slices.Equal(v.AllowConditions, []string{verdict.AllowConditionFilesBackedUp}); got != c.kept || !got && v.Decision == verdict.Allow {
			t.Errorf("%s: %s %s %v, want kept %t: %s", c.raw, v.Decision, v.BackupSetID, v.AllowConditions, c.kept, v.Reasoning)
		}
		if w := judge(Config{PolicyNameOrPath: "strict", BacksUpLostFiles: true}, c.raw); w.Decision == verdict.Allow && strings.Contains(c.raw, "rm ") {
			t.Errorf("strict: %s: %s", c.raw, w.Reasoning)
		}
		if w := judge(Config{PolicyNameOrPath: "offline"}, c.raw); w.BackupSetID != "" || w.AllowConditions != nil {
			t.Errorf("a pipeline that only prints kept %s: %v", c.raw, w.AllowConditions)
		}
	}
	raw := run("rm -rf notes")
	if v := judge(Config{PolicyNameOrPath: "offline", AllowsIfFilesBackedUp: true}, raw); v.Decision != verdict.Allow || v.BackupSetID != "" || !slices.Equal(v.AllowConditions, []string{verdict.AllowConditionFilesBackedUp}) {
		t.Errorf("on condition: %s %v %s", v.Decision, v.AllowConditions, v.Reasoning)
	}
	if v := judge(Config{PolicyNameOrPath: "offline", AllowsIfFilesBackedUp: true}, run("git restore single.txt &")); v.Decision == verdict.Allow || !strings.Contains(v.Reasoning, "shield cannot back up (the command runs in the background") {
		t.Errorf("later: %s %v %s", v.Decision, v.AllowConditions, v.Reasoning)
	}
	settings := Defaults()
	settings.Evaluator.Provider, settings.Evaluator.Model = "ollama", "none"
	if v := judge(Config{PolicyNameOrPath: "offline", BacksUpLostFiles: true, Settings: &settings}, raw); v.Decision == verdict.Allow {
		t.Errorf("with an evaluator: %s %s", v.Decision, v.Reasoning)
	}
	if v := judge(Config{PolicyNameOrPath: "permissive", BacksUpLostFiles: true}, tool("delete_file", map[string]string{"path": "single.txt"})); v.BackupSetID == "" {
		t.Errorf("permissive: %s %s", v.Decision, v.Reasoning)
	}
	settings = Defaults()
	settings.Undo.Enabled = false
	if v := judge(Config{PolicyNameOrPath: "offline", BacksUpLostFiles: true, Settings: &settings}, raw); v.Decision == verdict.Allow {
		t.Errorf("switched off: %s", fmt.Sprint(v.AllowConditions))
	}
}

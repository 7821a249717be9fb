package shell

import (
	"context"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/shieldcli/shield/pkg/effect"
)

// TestObserved runs commands of our own under strace and demands that what
// they do to files, the programs that they start and whatever they connect to
// was predicted. The system is read-only for them and there is no network.
func TestObserved(t *testing.T) {
	canObserve(t)
	data, err := os.ReadFile("testdata/observed.list")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(string(data)), "\n")
	var c count
	for _, text := range commands {
		c.observe(t, strings.ReplaceAll(text, "␤", "\n"))
	}
	if c.forms-c.unknown < 150 {
		t.Errorf("%d commands were compared, want at least 150", c.forms-c.unknown)
	}
}

// TestPrograms does the same for the entries of command/programs: each list in
// testdata/traced has at least five forms of each program that it names. They
// run if SHIELD_TRACE is set.
func TestPrograms(t *testing.T) {
	forms := readForms(t)
	if os.Getenv("SHIELD_TRACE") == "" {
		t.Skip("takes minutes; SHIELD_TRACE is not set")
	}
	canObserve(t)
	var all count
	var absent []string
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		if _, err := exec.LookPath(name); err != nil {
			absent = append(absent, name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			var c count
			for _, text := range forms[name] {
				c.observe(t, text)
			}
			all.add(c)
		})
	}
	t.Logf("%d programs, %d forms, %d marked unknown, %d effects missed, %d unmarked forms that failed; absent: %s",
		all.programs, all.forms, all.unknown, all.missed, all.failed, strings.Join(absent, " "))
}

// readForms returns the forms of each program: lines behind "# NAME". One
// @(a|b|c) in a line stands for each of its parts in turn.
func readForms(t *testing.T) map[string][]string {
	lists, err := filepath.Glob("testdata/traced/*.list")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no lists of forms: %v", err)
	}
	forms := map[string][]string{}
	for _, file := range lists {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSuffix(line, "\n")
			if header, ok := strings.CutPrefix(line, "# "); ok {
				name = header
				continue
			}
			forms[name] = append(forms[name], alternatives(line)...)
		}
	}
	for name, list := range forms {
		if len(list) < 5 {
			t.Errorf("%s has %d forms, want at least 5", name, len(list))
		}
	}
	return forms
}

func alternatives(line string) []string {
	head, rest, ok := strings.Cut(line, "@(")
	if !ok {
		return []string{line}
	}
	group, tail, _ := strings.Cut(rest, ")@")
	var out []string
	for part := range strings.SplitSeq(group, "|") {
		out = append(out, alternatives(head+part+tail)...)
	}
	return out
}

// helpers are the parts of programs, openers the programs that open files without
// reading them, and scratch the files that programs keep for a moment, as
// testdata/traced/parts.yaml says.
var helpers, openers, scratch = parts()

func parts() (map[string][]string, []string, []string) {
	var p struct {
		Helpers map[string]string
		Openers string
		Scratch []string
	}
	data, err := os.ReadFile("testdata/traced/parts.yaml")
	if err == nil {
		err = yaml.Unmarshal(data, &p)
	}
	if err != nil {
		panic(err)
	}
	out := map[string][]string{}
	for name, parts := range p.Helpers {
		out[name] = strings.Fields(parts)
	}
	return out, strings.Fields(p.Openers), p.Scratch
}

func canObserve(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs programs")
	}
	for _, tool := range [...]string{"strace", "unshare", "mount", "bash", "timeout"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "work"), 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := sandboxed(t, root, ": > ok").CombinedOutput(); err != nil {
		t.Skipf("strace or unshare may not run here: %v: %s", err, out)
	}
}

// enter makes all but one folder read-only and runs a command in it, traced.
const enter = `mount --bind "$1" "$1" && mount -o remount,bind,ro / && cd "$1/work" && exec timeout -k 1 5 strace -ff -y -s 4096 -e trace=` + calls +
	` -o "$1/log/p" bash -c "$2"`

func sandboxed(t *testing.T, root, text string) *exec.Cmd {
	t.Helper()
	for _, dir := range [...]string{"log", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "unshare", "-rmnpi", "--fork", "--kill-child", "--mount-proc", "bash", "-c", enter, "bash", root, text)
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + filepath.Join(goRoot(), "bin"), "HOME=" + filepath.Join(root, "home"),
		"TMPDIR=" + filepath.Join(root, "tmp"), "LC_ALL=C", "TERM=dumb", "PYTHONDONTWRITEBYTECODE=1",
	}
	return cmd
}

// count adds up what was observed.
type count struct{ programs, forms, unknown, missed, failed int }

func (c *count) add(d count) {
	if d.forms > 0 {
		c.programs++
	}
	c.forms, c.unknown, c.missed, c.failed = c.forms+d.forms, c.unknown+d.unknown, c.missed+d.missed, c.failed+d.failed
}

// observe runs one command and compares what it did with what was predicted. A
// command of which not all is predicted, as the result says itself, is counted only.
func (c *count) observe(t *testing.T, text string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "work")
	fill(t, dir)
	r := Analyze(text, &effect.PathContext{CWD: dir, Home: filepath.Join(root, "home"), WorkspaceRoots: []string{dir}, ReadScript: func(path string) ([]byte, error) {
		if !strings.HasPrefix(path, dir+"/") {
			return nil, fs.ErrNotExist
		}
		return os.ReadFile(path)
	}})
	c.forms++
	if saysUnknown(r) {
		c.unknown++
		t.Logf("%q is marked unknown", text)
		return
	}
	before, kept := tree(t, root), blobs(t, dir)
	if err := sandboxed(t, root, text).Run(); err != nil {
		c.failed++
	}
	w := witness{root: root, dir: dir, blobs: kept, before: before, after: tree(t, root), predicted: r}
	told := map[string]bool{}
	for _, x := range traced(t, filepath.Join(root, "log/p"), dir) {
		if why := w.missed(x); why != "" && !told[why] {
			told[why] = true
			c.missed++
			t.Errorf("%q %s, which was not predicted:\n\t%s\n%s", text, strings.ReplaceAll(why, root, "…"), x.line, list(r))
		}
	}
}

func saysUnknown(r effect.CommandAnalysis) bool {
	return slices.ContainsFunc(r.Effects, func(e effect.Effect) bool {
		return e.Certainty == effect.Unknown || e.KindForPolicies() == effect.Execute && e.Class == effect.UnknownClass
	})
}

// fill makes the files that commands work on: these, and copies of those in testdata/traced/files.
func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("testdata/traced/files")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.txt": "a\n", "b.txt": "b\n", "d/c.txt": "c\n", "src/one.txt": "1\n", "src/sub/two.txt": "2\n", "emptydir/": "",
		"a.c": "int main(void) { return 0; }\n", "a.json": "{\"a\": [1, 2]}\n", "a.csv": "x,y\n1,2\n", "a.py": "x = 1\n", "a.sh": "echo a\n",
		"a.xml": "<a><b>1</b></a>\n", "a.yaml": "a: 1\n", "a.md": "# a\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.Mkdir(p, 0o777); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns all paths below a folder.
func tree(t *testing.T, root string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	if err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		out[p] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// A witness compares what one command did with what was predicted.
type witness struct {
	root, dir     string
	blobs         map[string]string // of the files before
	before, after map[string]bool   // paths below root
	predicted     effect.CommandAnalysis
}

// ownPlace are folders where programs keep caches, settings and histories of their own.
var ownPlace = regexp.MustCompile(`^/(tmp|home/\.(cache|config|local|npm|gnupg|parallel|subversion|viminfo|wget-hsts|gem|ccache)|log|work(/.*)?/\.(git|hg|svn))(/|$)`)

// missed says what was not predicted, or nothing.
func (w *witness) missed(x touch) string {
	inside, below := strings.CutPrefix(x.path, w.root)
	switch {
	case x.kind == "connect":
		if w.any(func(e effect.Effect) bool {
			return e.KindForPolicies() == effect.Connect || e.KindForPolicies() == effect.HTTPRequest || e.KindForPolicies() == effect.Execute && e.Class == effect.Network
		}) {
			return ""
		}
		return "connects to " + x.path
	case x.kind == "run":
		return w.run(x)
	case ownFolder.MatchString(x.path), below && ownPlace.MatchString(inside), !below && isScratch(x.path):
		return ""
	case x.kind == "read":
		if w.before[x.path] && strings.HasPrefix(x.path, w.dir+"/") && strings.Contains(filepath.Base(x.path), ".") && !opensOnly(w.predicted) && !w.covered(x.path, readKinds) {
			return "reads " + x.path
		}
		return ""
	case below && !w.before[x.path] && !w.after[x.path]:
		return "" // made and removed again
	case w.before[x.path] && !w.after[x.path]:
		if !w.covered(x.path, deleteKinds) && !(w.replaced(x.path) && w.covered(x.path, changeKinds)) && !w.ofRepository(x.path) {
			return "deletes " + x.path
		}
	case x.kind == "mode":
		if !w.covered(x.path, append(changeKinds, effect.ChangePermissions)) && !w.beside(x.path) {
			return "changes the mode of " + x.path
		}
	case !w.covered(x.path, changeKinds) && !w.beside(x.path) && !w.emptied(x.path):
		return "changes " + x.path
	}
	return ""
}

var (
	readKinds   = []effect.Kind{effect.ReadFile, effect.RunCode, effect.SendData, effect.MoveFile, effect.DeleteFile}
	deleteKinds = []effect.Kind{effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile}
	changeKinds = []effect.Kind{effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile}
)

func (w *witness) any(f func(effect.Effect) bool) bool {
	return slices.ContainsFunc(w.predicted.Effects, f)
}

// covered reports whether an effect of these kinds reaches a path: its own, a
// folder that the path is in, or one that is made together with it.
func (w *witness) covered(p string, kinds []effect.Kind) bool {
	return w.any(func(e effect.Effect) bool {
		if !slices.Contains(kinds, e.KindForPolicies()) {
			return false
		}
		if e.PathIsPattern && e.Path == "" || effect.PatternsOverlap(quoteUnlessPattern(e.Path, e.PathIsPattern), effect.QuoteGlobMeta(p), false) {
			return true
		}
		if !e.PathIsPattern && strings.HasPrefix(p, e.Path+"/") && (e.Recursive || e.KindForPolicies() == effect.WriteFile) {
			return true
		}
		return !e.PathIsPattern && strings.HasPrefix(e.Path, p+"/") && (e.KindForPolicies() == effect.CreateDirectory || e.KindForPolicies() == effect.WriteFile)
	})
}

// isScratch reports whether a path is of a file that programs keep for a moment.
func isScratch(p string) bool {
	return slices.ContainsFunc(scratch, func(glob string) bool { ok, _ := path.Match(glob, p); return ok })
}

// ofRepository reports whether a file that is gone is of a repository of which the
// prediction says that something in it is destroyed, or is kept in it: git stash -u.
func (w *witness) ofRepository(p string) bool {
	if !strings.HasPrefix(p, w.dir+"/") {
		return false
	}
	if w.any(func(e effect.Effect) bool {
		return e.KindForPolicies() == effect.Execute && e.Program == "git" && e.Class == effect.Destructive
	}) {
		return true
	}
	for name, blob := range w.blobs {
		if _, err := os.Stat(filepath.Join(w.dir, ".git/objects", blob[:2], blob[2:])); err != nil && (name == p || strings.HasPrefix(name, p+"/")) {
			return false
		}
	}
	return w.any(func(e effect.Effect) bool {
		return e.KindForPolicies() == effect.Execute && e.Program == "git" && e.Class == effect.LocalWrite
	})
}

// blobs returns the names under which git keeps the files below a folder.
func blobs(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		out[p] = fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// emptied reports whether a file is one of which the prediction says that it is read, and
// that was made, with nothing in it, since it was not there.
func (w *witness) emptied(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Size() == 0 && !w.before[p] && w.any(func(e effect.Effect) bool {
		return e.KindForPolicies() == effect.ReadFile && !e.PathIsPattern && e.Path == p
	})
}

// replaced reports whether a compressed or unpacked file took the place of one.
func (w *witness) replaced(p string) bool {
	for q := range w.after {
		if q != filepath.Dir(p) && !w.before[q] && (strings.HasPrefix(q, p) || strings.HasPrefix(p, q)) {
			return true
		}
	}
	return false
}

// beside reports whether a new file is a backup or a part of one that is written.
func (w *witness) beside(p string) bool {
	return !w.before[p] && w.any(func(e effect.Effect) bool {
		return e.KindForPolicies() == effect.WriteFile && !e.PathIsPattern && strings.HasPrefix(p, e.Path) && filepath.Dir(p) == filepath.Dir(e.Path)
	})
}

// goRoot is the folder of the Go tools, whose own programs are no concern here.
var goRoot = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil || len(out) < 3 {
		return "\x00"
	}
	return strings.TrimSpace(string(out))
})

// run compares a program that was started. What programs keep for themselves
// below lib and libexec is no program of its own, and of a shell only what it does counts.
func (w *witness) run(x touch) string {
	name := filepath.Base(x.path)
	ours := strings.HasPrefix(x.path, w.dir+"/")
	if x.by == "" || !ours && (strings.Contains(x.path, "/lib") || strings.HasPrefix(x.path, goRoot()) || slices.Contains(plainShells, name) || helps(x.by, name)) {
		return ""
	}
	if w.any(func(e effect.Effect) bool {
		return e.KindForPolicies() == effect.Execute && filepath.Base(e.Program) == name || e.KindForPolicies() == effect.RunCode && e.Path == x.path
	}) {
		return ""
	}
	return fmt.Sprintf("runs %s (from%s)", x.path, x.by)
}

var plainShells = []string{"sh", "bash", "dash"}

// helps reports whether a program is a part of one that led to it.
func helps(by, name string) bool {
	return slices.ContainsFunc(strings.Fields(by), func(program string) bool {
		parts := helpers[program]
		return slices.Contains(parts, name) || slices.Contains(parts, "*")
	})
}

// opensOnly reports whether a command only opens its files, to ask the system
// for something about them.
func opensOnly(r effect.CommandAnalysis) bool {
	return slices.ContainsFunc(r.Effects, func(e effect.Effect) bool { return slices.Contains(openers, e.Program) })
}

func list(r effect.CommandAnalysis) string {
	var b strings.Builder
	for _, e := range r.Effects {
		b.WriteString("\t" + describe(e) + "\n")
	}
	return b.String()
}

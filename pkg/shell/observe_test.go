package shell

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// TestObserved runs commands of our own in a scratch folder without network,
// under strace, and demands that whatever file they open for writing, unlink,
// rename or create, and whatever they connect to, was predicted.
func TestObserved(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs")
	}
	for _, tool := range [...]string{"strace", "unshare", "bash", "python3", "perl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	if out, err := exec.Command("strace", "-f", "-y", "-o", os.DevNull, "unshare", "-rn", "true").CombinedOutput(); err != nil {
		t.Skipf("strace or unshare may not run here: %v: %s", err, out)
	}
	data, err := os.ReadFile("testdata/observed.list")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(commands) < 150 {
		t.Errorf("%d commands, want at least 150", len(commands))
	}
	n := 0
	for _, c := range commands {
		if observe(t, strings.ReplaceAll(c, "␤", "\n")) {
			n++
		}
	}
	if n < 150 {
		t.Errorf("%d commands of listed programs, want at least 150", n)
	}
}

// observe runs one command. It returns false, without running it, if a program
// is not listed: then nothing is predicted, and nothing is taken as harmless.
func observe(t *testing.T, text string) bool {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "work")
	for name, text := range map[string]string{
		"a.txt": "a\n", "b.txt": "b\n", "src/one.txt": "1\n", "src/sub/two.txt": "2\n", "emptydir/.keep": "", "../tmp/.keep": "",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "emptydir/.keep")); err != nil {
		t.Fatal(err)
	}
	r := Analyze(text, &effect.Place{CWD: dir, Home: root, Roots: []string{dir}})
	for _, e := range r.Effects {
		if use := command.Interpret([]command.Word{{Text: e.Program}}); e.Kind == effect.Execute && strings.HasSuffix(use.Reason, "is not listed") && e.Program != "." && !strings.HasSuffix(e.Program, ".sh") {
			if _, ok := builtin(e.Program); !ok {
				return false
			}
		}
	}

	log := filepath.Join(root, "strace.log")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "strace", "-f", "-y", "-s", "4096", "-e", "trace=open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,truncate,connect",
		"-o", log, "unshare", "-rn", "bash", "-c", text)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + root, "TMPDIR=" + filepath.Join(root, "tmp"), "LC_ALL=C", "PYTHONDONTWRITEBYTECODE=1"}
	cmd.Stdout, cmd.Stderr = nil, nil
	_ = cmd.Run() // its own status does not matter
	trace, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(trace) {
		for _, p := range changed(string(line), dir) {
			if strings.HasPrefix(p, filepath.Join(root, "tmp")+"/") || ownTemporary.MatchString(p) || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/") {
				continue
			}
			if !predicted(r, p) {
				t.Errorf("%q changes %s, which was not predicted:\n%s%s", text, p, line, list(r))
			}
		}
		if m := connected.FindStringSubmatch(string(line)); m != nil && !predictedHost(r, m[1]) {
			t.Errorf("%q connects to %s, which was not predicted:\n%s", text, m[1], list(r))
		}
	}
	return true
}

var (
	call      = regexp.MustCompile(`^\d+ +(\w+)\((.*)`)
	connected = regexp.MustCompile(`connect\(.*sin_addr=inet_addr\("([^"]+)"\)`)
	// sed -i and perl -i write beside the file and rename.
	ownTemporary = regexp.MustCompile(`/(sed|XX)\w{6}$`)
	argument     = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"`)
)

// changed returns the paths that a line of strace shows to be changed.
func changed(line, dir string) []string {
	m := call.FindStringSubmatch(line)
	if m == nil || strings.Contains(line, "ENOENT") || strings.Contains(line, "EEXIST") {
		return nil
	}
	switch m[1] {
	case "open", "openat":
		if !strings.Contains(m[2], "O_WRONLY") && !strings.Contains(m[2], "O_RDWR") && !strings.Contains(m[2], "O_CREAT") {
			return nil
		}
	case "connect":
		return nil
	}
	args := argument.FindAllStringSubmatch(m[2], 2)
	if strings.HasPrefix(m[1], "symlink") && len(args) > 1 {
		args = args[1:]
	}
	if strings.HasPrefix(m[1], "link") && len(args) > 1 {
		args = args[1:]
	}
	var out []string
	for _, a := range args {
		base := a[1]
		if base == "" {
			base = dir
		}
		p := a[2]
		if !filepath.IsAbs(p) {
			p = filepath.Join(base, p)
		}
		out = append(out, filepath.Clean(p))
	}
	return out
}

func predicted(r effect.Result, p string) bool {
	for _, e := range r.Effects {
		switch e.Kind {
		case effect.WriteFile, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.CreateDirectory, effect.ChangePermissions:
		default:
			continue
		}
		if e.Pattern && e.Path == "" || effect.Overlap(asPattern(e.Path, e.Pattern), abstract.EscapePattern(p), false) {
			return true
		}
		// A folder that is written into, deleted with all below, or created
		// with its parents.
		if !e.Pattern && (strings.HasPrefix(p, e.Path+"/") && (e.Recursive || e.Kind == effect.WriteFile) || e.Kind == effect.CreateDirectory && strings.Contains(e.Path+"/", "/"+filepath.Base(p)+"/")) {
			return true
		}
	}
	return false
}

func predictedHost(r effect.Result, host string) bool {
	for _, e := range r.Effects {
		if (e.Kind == effect.Connect || e.Kind == effect.HTTPRequest) && (e.Host == host || e.Pattern) {
			return true
		}
	}
	return false
}

func list(r effect.Result) string {
	var b strings.Builder
	for _, e := range r.Effects {
		b.WriteString("\t" + describe(e) + "\n")
	}
	return b.String()
}

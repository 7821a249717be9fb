//go:build unix

package analysis

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// folder returns an empty folder by its real name.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	write(t, dir+"/secret/key", "x")
	write(t, dir+"/app/src/main.go", "x")
	link(t, "../secret", dir+"/app/out")
	link(t, dir+"/secret/key", dir+"/app/abs")
	link(t, "src", dir+"/app/in")
	link(t, "loop", dir+"/app/loop")
	link(t, "in/../../secret", dir+"/app/chain")
	link(t, "/proc/self/root", dir+"/app/proc")
	f, known := newLocalFileInspector(), symlinkLookupCache{}
	for _, tt := range []struct{ in, want string }{
		{"/app/src/main.go", "/app/src/main.go"},
		{"/app/out", "/secret"},
		{"/app/out/key", "/secret/key"},
		{"/app/out/missing/x", "/secret/missing/x"},
		{"/app/abs", "/secret/key"},
		{"/app/in/main.go", "/app/src/main.go"},
		{"/app/chain/key", "/secret/key"},
		{"/app/missing", "/app/missing"},
		{"/app/loop", "/app/loop"},
	} {
		if got := f.resolveLinks(dir + tt.in); got != dir+tt.want {
			t.Errorf("links(%q) = %q, want %q", tt.in, strings.TrimPrefix(got, dir), tt.want)
		}
		if got, _ := f.resolvePathCached(dir+tt.in, known); got != dir+tt.want {
			t.Errorf("with known folders, links(%q) = %q, want %q", tt.in, strings.TrimPrefix(got, dir), tt.want)
		}
	}
	for _, path := range []string{"/", "/proc/self/exe", "/net/x", "unc:/server/share", "**/x", "", "/" + strings.Repeat("a/", 3000)} {
		if got := f.resolveLinks(path); got != path && path != "" {
			t.Errorf("links(%.20q) = %.40q", path, got)
		}
	}
	if got, _ := f.resolvePath(dir + "/app/proc/etc/passwd"); got != "/proc/self/root/etc/passwd" {
		t.Errorf("a link into /proc leads to %q", got)
	}
}

// What was looked up for some paths is looked up again for the next ones.
func TestLinker(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	write(t, dir+"/a/x", "x")
	write(t, dir+"/b/x", "x")
	a, err := New(Options{Home: dir, InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"a", "b"} {
		link(t, to, dir+"/to")
		links := a.DefaultExecutionContext.NewCachedLinkResolver()
		for range 2 {
			if got, want := links(dir+"/to/x"), dir+"/"+to+"/x"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if err := os.Remove(dir + "/to"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLinksInCases(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	write(t, dir+"/secret/key", "x")
	write(t, dir+"/app/main.go", "x")
	link(t, "../secret", dir+"/app/out")
	link(t, "/proc/self/root", dir+"/app/proc")
	link(t, dir+"/app", dir+"/alias")
	an, err := New(Options{CWD: dir + "/alias", InspectLocalFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(an.DefaultExecutionContext.WorkspaceRoots) != 2 {
		t.Errorf("Roots = %q", an.DefaultExecutionContext.WorkspaceRoots)
	}
	for _, tt := range []struct {
		path     string
		last     string
		harmless bool
	}{
		{"main.go", dir + "/app/main.go", true},
		{"out/key", dir + "/secret/key", false},
		{"out/../app/main.go", dir + "/app/main.go", true},
		{"out/../secret/key", dir + "/secret/key", false},
		{"proc/etc/passwd", "/etc/passwd", false},
	} {
		c := an.AnalyzeAction(act("read_file", obj{"path": tt.path}))
		if got := c.Effects[len(c.Effects)-1].Path; got != tt.last || c.HasOnlyHarmlessEffects() != tt.harmless {
			t.Errorf("%s is read as %q, harmless %t:\n%s", tt.path, got, c.HasOnlyHarmlessEffects(), show(c.Effects))
		}
	}
	if path, _ := resolveSymlinks(dir+"/app/out/*.pem", true, an.DefaultExecutionContext.ResolveLinks); path != dir+"/secret/*.pem" {
		t.Errorf("a pattern behind a link is %q", path)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	write(t, dir+"/ok.sh", "echo hello")
	write(t, dir+"/big.sh", strings.Repeat("x", maxScriptBytes+1))
	write(t, dir+"/full.sh", strings.Repeat("x", maxScriptBytes))
	link(t, "ok.sh", dir+"/link.sh")
	if err := syscall.Mkfifo(dir+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	f := newLocalFileInspector()
	for name, want := range map[string]bool{"/ok.sh": true, "/link.sh": true, "/full.sh": true, "/big.sh": false, "/fifo": false, "/missing": false, "": false} {
		if _, err := f.readScript(dir + name); (err == nil) != want {
			t.Errorf("script(%q): %v", name, err)
		}
	}
	if _, err := f.readScript(dir + "/big.sh"); !errors.Is(err, effect.ErrScriptTooLarge) {
		t.Errorf("a large script: %v", err)
	}
	if _, err := f.readScript("/dev/zero"); err == nil {
		t.Error("a device is read")
	}
	if text, err := f.readScript(dir + "/ok.sh"); err != nil || string(text) != "echo hello" {
		t.Errorf("script = %q", text)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o     Options
		roots int
		ok    bool
	}{
		{Options{}, 0, true},
		{Options{CWD: "/home/me/app", Home: "/home/me"}, 1, true},
		{Options{CWD: "/home/me", Home: "/home/me"}, 0, true},
		{Options{CWD: "/", Home: "/home/me"}, 0, true},
		{Options{CWD: "/etc", WorkspaceRoots: []string{"/srv/a", "/srv/b"}}, 2, true},
		{Options{WorkspaceRoots: []string{"/"}}, 0, false},
		{Options{WorkspaceRoots: []string{"/home/me"}, Home: "/home/me"}, 0, false},
		{Options{WorkspaceRoots: []string{"relative"}}, 0, false},
		{Options{CWD: "relative"}, 0, false},
		{Options{Home: "~"}, 0, false},
	} {
		an, err := New(tt.o)
		if (err == nil) != tt.ok || err == nil && len(an.DefaultExecutionContext.WorkspaceRoots) != tt.roots {
			t.Errorf("New(%+v) = %+v, %v", tt.o, an, err)
		}
	}
}

func BenchmarkReadWithLinks(b *testing.B) {
	dir := b.TempDir()
	an, err := New(Options{CWD: dir, InspectLocalFiles: true})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(dir+"/x", nil, 0o644); err != nil {
		b.Fatal(err)
	}
	a := act("read_file", obj{"path": "x"})
	b.ReportAllocs()
	for b.Loop() {
		an.AnalyzeAction(a)
	}
}

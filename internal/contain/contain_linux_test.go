//go:build amd64 || arm64

package contain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sh runs a script in a profile, and returns what it printed and its status.
func sh(t *testing.T, with Mechanism, p *Profile, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	started, err := Start(func() *exec.Cmd {
		return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: p.WritablePaths[0], Env: []string{"PATH=/usr/bin:/bin", "A=b"}, Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &out}
	}, p, with, func(Refusal) {})
	if err != nil {
		t.Fatal(err)
	}
	_ = started.Wait()
	started.WaitForReportsAndCleanUp()
	return out.String(), started.ProcessState.ExitCode()
}

// TestStart: the program gets its streams, folder and variables, and its status is returned.
func TestStart(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		for script, want := range map[string]string{
			"cat; echo $A; pwd; exit 3":           "in\nb\nWORK\n3",
			"kill -TERM $$":                       "143",
			"echo x > $TMPDIR/a && cat $TMPDIR/a": "x\n0",
			"echo x > a && mkdir b && mv a b/ && cat b/a && rm -r b && ls": "x\nlink-to-keys\nsub\n0",
			"ls ../.keys": "key\n0", // names are not hidden
		} {
			_, p := newGround(t)
			p.HiddenPaths = p.HiddenPaths[:1]
			got, status := sh(t, with, p, script)
			got = strings.ReplaceAll(got, p.WritablePaths[0], "WORK")
			if got += strconv.Itoa(status); got != want {
				t.Errorf("%s\ngot  %q\nwant %q", script, got, want)
			}
		}
	})
}

// TestStartFails: what cannot be put into force as it is said is not started.
func TestStartFails(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		g, ok := newGround(t)
		var unavailable *ContainmentUnavailableError
		start := func(path string, p Profile) error {
			started, err := Start(func() *exec.Cmd { return &exec.Cmd{Path: path, Args: []string{path}, Dir: g.Work} }, &p, with, func(Refusal) {})
			if err == nil {
				_ = started.Wait()
				started.WaitForReportsAndCleanUp()
			}
			return err
		}
		if err := start("/bin/true", *ok); err != nil {
			t.Error(err)
		}
		if err := start("/bin/no-such-program", *ok); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a program that is not there: %v", err)
		}
		if err := os.Link(g.Secret, g.Home+"/.keys/other"); err != nil {
			t.Fatal(err)
		}
		if err := start("/bin/true", *ok); err != nil {
			t.Errorf("a secret with two names that are hidden: %v", err)
		}
		if err := os.Rename(g.Home+"/.keys/other", g.Away+"/other"); err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []string{g.Secret, g.Home + "/.keys", g.Home + "/.keys/.."} {
			if err := start("/bin/true", Profile{HiddenPaths: []string{filepath.Clean(hidden)}, WritablePaths: ok.WritablePaths}); err == nil || errors.As(err, &unavailable) { // it could be made by what is contained, to run without
				t.Errorf("a secret with another name, in %s: %v", hidden, err)
			}
		}
		if err := start("/bin/true", Profile{WritablePaths: []string{"relative"}}); err == nil {
			t.Error("a relative path was taken")
		}
		if with&Namespaces != 0 {
			if err := start("/bin/true", Profile{WritablePaths: ok.WritablePaths, ReadOnlyPaths: []string{g.Work + "/none"}}); err == nil || errors.As(err, &unavailable) { // and not by Landlock alone
				t.Errorf("a fixed path that is not there: %v", err)
			}
		}
		link := g.Away + "/link"
		if err := os.Symlink(g.Home, link); err != nil {
			t.Fatal(err)
		}
		if err := start("/bin/true", Profile{WritablePaths: []string{filepath.Join(link, "work")}}); err == nil {
			t.Error("a folder that has become a link was taken")
		}
	})
}

// TestHiddenInside: beside something hidden in a folder that can be changed, new files can
// be written, and not be read.
func TestHiddenInside(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		_, p := newGround(t)
		if got, _ := sh(t, with, p, "echo x > a && ls a && cat a 2>/dev/null; echo y > sub/b && cat sub/b"); got != "a\ny\n" {
			t.Error(got)
		}
	})
}

// TestRefusals: what is refused is told, and what is not is not.
func TestRefusals(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		g, p := newGround(t)
		p.HiddenPaths = p.HiddenPaths[:1]
		for script, want := range map[string]string{
			"cat ../.keys/key; cat ../.keys/key; cat ../.keys/none": "reading HOME/.keys/key",
			"cat link-to-keys/key":                            "reading HOME/.keys/key",
			"echo x >> ../.startup; rm ../.startup":           "changing HOME/.startup",
			"cd ..; mkdir new; mv .startup work/s; ln -s a b": "changing HOME/.startup, changing HOME/b, changing HOME/new",
			"echo x > a; cat a ../.startup; rm a; ls -R .. > /dev/null; cat /no/such/file; ls -A ../.keys; cat /etc/hostname": "",
		} {
			var mu sync.Mutex
			var got []string
			started, err := Start(func() *exec.Cmd {
				return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: g.Work, Env: []string{"PATH=/usr/bin:/bin"}}
			}, p, with, func(r Refusal) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, strings.ReplaceAll(r.String(), g.Home, "HOME"))
			})
			if err != nil {
				t.Fatal(err)
			}
			_ = started.Wait()
			started.WaitForReportsAndCleanUp()
			slices.Sort(got)
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("%s\ngot  %s\nwant %s", script, s, want)
			}
		}
	})
}

// TestDaemon: a server that ignores that it is to end, and has left its group, ends with it.
func TestDaemon(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		g, p := newGround(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		started, err := Start(func() *exec.Cmd {
			return &exec.Cmd{
				Path: "/bin/sh", Dir: g.Work, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: w, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
				Args: []string{"sh", "-c", `trap "" TERM; setsid sh -c 'trap "" TERM HUP; echo ready; while :; do sleep 1; done' & while :; do sleep 1; done`},
			}
		}, p, with, func(Refusal) {})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		if err := started.Terminate(); err != nil {
			t.Fatal(err)
		}
		_ = started.Wait()
		started.WaitForReportsAndCleanUp()
		_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, r); err != nil { // until nobody has its output
			t.Error(err)
		}
	})
}

// TestFixed: where there are namespaces, what is fixed inside a folder stays as it is.
func TestFixed(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		if with&Namespaces == 0 {
			return
		}
		g, p := newGround(t)
		p.HiddenPaths, p.ReadOnlyPaths = p.HiddenPaths[:1], []string{g.Work + "/sub"}
		got, _ := sh(t, with, p, "echo x > sub/a; mv sub other; rm -r sub; ls -d sub && echo x > b && cat b")
		if !strings.HasSuffix(got, "sub\nx\n") {
			t.Error(got)
		}
		if _, err := os.Stat(g.Work + "/sub/a"); err == nil {
			t.Error("it was written to")
		}
	})
}

// TestLoopback: without a network, a server and its client reach each other in namespaces.
func TestLoopback(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	forEach(t, func(t *testing.T, with Mechanism) {
		_, p := newGround(t)
		got, _ := sh(t, with, p, `python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
print("met")'`)
		if met := got == "met\n"; met != (with&Namespaces != 0) {
			t.Error(got)
		}
	})
}

// TestMountedTwice: what is hidden stays so where its file system, or a part of it, is mounted a second
// time. The mounts are those of a process in namespaces of its own.
func TestMountedTwice(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		g, p := newGround(t)
		for _, dir := range []string{g.Away + "/home", g.Away + "/key s"} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		g.Mounts, g.Profile, g.With = [][2]string{{g.Home, g.Away + "/home"}, {g.Home + "/.keys", g.Away + "/key s"}}, p, with
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), attemptVariable+"="+string(text))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skipf("the kernel cannot contain by namespaces: %v", err)
		}
		if got := string(out); err != nil || got != "secretheld\nheld\nheld\n" {
			t.Errorf("%v: %q", err, got)
		}
	})
}

// mounted mounts what it is told, and tries to read the secret by each way: first what is not hidden.
func mounted(g *ground) {
	for _, m := range g.Mounts {
		if err := syscall.Mount(m[0], m[1], "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := os.Link(g.Secret, g.Work+"/second"); err != nil {
		fmt.Println(err)
		return
	}
	command := func() *exec.Cmd { return &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: g.Work} }
	if started, err := Start(command, g.Profile, g.With, func(Refusal) {}); err == nil { // seen by two mounts the first name is still one
		_ = started.Wait()
		started.WaitForReportsAndCleanUp()
		fmt.Println("a second link was not found")
	}
	if err := os.Remove(g.Work + "/second"); err != nil {
		fmt.Println(err)
		return
	}
	script := fmt.Sprintf("cat %q; for f in %q %q %q; do cat \"$f\" 2> /dev/null || echo held; done", g.Away+"/home/.startup", g.Secret, g.Away+"/home/.keys/key", g.Away+"/key s/key")
	started, err := Start(func() *exec.Cmd {
		return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: g.Work, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: os.Stdout, Stderr: os.Stderr}
	}, g.Profile, g.With, func(Refusal) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = started.Wait()
	started.WaitForReportsAndCleanUp()
}

// TestMounts: the list of mounts is read as the kernel writes it.
func TestMounts(t *testing.T) {
	t.Parallel()
	if got, want := decodeOctal(`/a\040b\134c\`), `/a b\c\`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	all, err := readMounts()
	if err != nil || !slices.ContainsFunc(all, func(m mount) bool { return m.point == "/" && m.root != "" }) {
		t.Errorf("%v: %v", err, all)
	}
}

// BenchmarkStart is what containment adds to the start of a program: ms is the
// difference of the least times.
func BenchmarkStart(b *testing.B) {
	home := b.TempDir()
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(home, strconv.Itoa(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, with := range map[string]Mechanism{"Landlock": Landlock, "all": Landlock | Namespaces, "home of 500 entries": Landlock} {
		b.Run(name, func(b *testing.B) {
			p := &Profile{HiddenPaths: []string{"/etc/shadow", "/etc/ssl/private"}, WritablePaths: []string{b.TempDir()}}
			if name == "home of 500 entries" {
				p.HiddenPaths = append(p.HiddenPaths, home+"/7")
			}
			command := func() *exec.Cmd { return &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: "/"} }
			free, held := time.Hour, time.Hour
			for b.Loop() {
				begin := time.Now()
				if err := command().Run(); err != nil {
					b.Fatal(err)
				}
				free = min(free, time.Since(begin))
				begin = time.Now()
				started, err := Start(command, p, with, func(Refusal) {})
				if err != nil {
					b.Fatal(err)
				}
				if err := started.Wait(); err != nil {
					b.Fatal(err)
				}
				started.WaitForReportsAndCleanUp()
				held = min(held, time.Since(begin))
			}
			b.ReportMetric(float64((held-free).Microseconds())/1000, "ms")
		})
	}
}

// TestLinked: a second hard link is found whatever hides it, and where too much is hidden to look for one, that is said.
func TestLinked(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	few, many := base+"/few", base+"/many"
	for _, dir := range []string{few, many} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{few + "/key", many + "/key"}
	for i := range maxHardLinkSearchEntries {
		files = append(files, many+"/"+strconv.Itoa(i))
	}
	for _, file := range files {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, hidden []string, all bool, unseen int, second bool) {
		t.Helper()
		if got, err := checkNoUnhiddenHardLinks(hidden, all); len(got) != unseen || (err != nil) != second {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	check("no link", []string{few, many}, false, 1, false)
	check("no link, all looked through", []string{few, many}, true, 0, false)
	for _, secret := range files[:2] {
		if err := os.Link(secret, secret+".other"); err != nil {
			t.Fatal(err)
		}
	}
	check("both names are hidden", []string{few}, false, 0, false)
	check("one of two, hidden twice", []string{few + "/key", few + "/key"}, false, 0, true)
	if err := os.Rename(few+"/key.other", base+"/other"); err != nil {
		t.Fatal(err)
	}
	check("in a folder and by itself", []string{few, few + "/key"}, false, 0, true)
	check("both names in a folder of many", []string{many}, true, 0, false)
	if err := os.Rename(many+"/key.other", base+"/more"); err != nil {
		t.Fatal(err)
	}
	check("in a folder of many", []string{many}, true, 0, true)
	if found, whole := findHardLinkedFiles(many, maxHardLinkSearchEntries+3); !whole || len(found) != 1 {
		t.Errorf("%v: %v", whole, found)
	}
	if _, whole := findHardLinkedFiles(many, maxHardLinkSearchEntries); whole {
		t.Error("more than the limit was looked through")
	}
}

// TestAroundHidden: beside what is hidden itself nothing is to be read.
func TestAroundHidden(t *testing.T) {
	t.Parallel()
	(&ruleset{fd: -1}).allowReadExceptHidden("/usr", []string{"/usr"})
	(&ruleset{fd: -1}).allowReadExceptHidden("/usr/bin", []string{"/usr"})
}

//go:build unix

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func writeProgram(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyFilesAreOpened gives exec what is no program. Opening a FIFO would
// wait for a writer who never comes.
func TestOnlyFilesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, plain, locked := filepath.Join(dir, "fifo"), filepath.Join(dir, "plain"), filepath.Join(dir, "locked")
	if err := syscall.Mkfifo(fifo, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, locked, "#!/bin/sh\n")
	if err := os.Chmod(locked, 0o100); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fifo, filepath.Join(dir, "to-fifo")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"fifo": "not a regular file", "to-fifo": "not a regular file", "plain": "not executable", ".": "a folder",
		"locked": "permission denied", "dangling": "no such file", "plain/x": "not a directory", "missing": "no such file",
	} {
		if name == "locked" && os.Getuid() == 0 {
			continue // root reads everything
		}
		done := make(chan error, 1)
		go func() {
			p, err := openProgram(filepath.Join(dir, name))
			if err == nil {
				p.file.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", name, err, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: opening it hangs", name)
		}
	}
	if _, err := openProgram("/dev/zero"); err == nil {
		t.Error("a device was opened as a program")
	}
}

// TestChangesAreSeen changes a program after it was opened.
func TestChangesAreSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		change      func(path string) error
		file, place bool // whether the open file, or its path, is no longer the same
	}{
		{"nothing", func(string) error { return nil }, false, false},
		{"only read", func(path string) error { _, err := os.ReadFile(path); return err }, false, false},
		{"rewritten in place, same size and times", func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.WriteString("#!/bin/sh\nevil\n"); err != nil {
				return err
			}
			return os.Chtimes(path, st.ModTime(), st.ModTime())
		}, true, true},
		{"longer", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("evil\n")
			return err
		}, true, true},
		{"another mode", func(path string) error { return os.Chmod(path, 0o4755) }, true, true},
		{"replaced", func(path string) error {
			if err := os.WriteFile(path+".new", []byte("#!/bin/sh\nevil\n"), 0o755); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, true, true}, // its link count changed, so its change time did
		{"removed", os.Remove, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "prog")
			writeProgram(t, path, "#!/bin/sh\ngood\n")
			p, err := openProgram(path)
			if err != nil {
				t.Fatal(err)
			}
			defer p.file.Close()
			if !p.isScript {
				t.Error("not taken for a script")
			}
			for deadline := time.Now().Add(time.Second); ; { // file systems count time in ticks
				if err := c.change(path); err != nil {
					t.Fatal(err)
				}
				file, place := p.checkUnchanged(), p.checkFileAtPathUnchanged()
				if (file != nil) == c.file && (place != nil) == c.place {
					return
				}
				if !c.file || !time.Now().Before(deadline) || c.name == "removed" || c.name == "replaced" {
					t.Fatalf("file: %v, want changed %t; path: %v, want changed %t", file, c.file, place, c.place)
				}
			}
		})
	}
}

// TestMovedLinkIsSeen swaps the symbolic link by which a script was named.
func TestMovedLinkIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	for _, name := range []string{"good", "evil"} {
		writeProgram(t, filepath.Join(dir, name), "#!/bin/sh\n")
	}
	if err := os.Symlink("good", link); err != nil {
		t.Fatal(err)
	}
	p, err := openProgram(link)
	if err != nil {
		t.Fatal(err)
	}
	defer p.file.Close()
	if err := p.checkFileAtPathUnchanged(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink("evil", link)); err != nil {
		t.Fatal(err)
	}
	if err := p.checkFileAtPathUnchanged(); !errors.Is(err, errProgramFileChanged) {
		t.Errorf("path: %v, want %v", err, errProgramFileChanged)
	}
	if err := p.checkUnchanged(); err != nil {
		t.Errorf("the open file: %v, want it unchanged", err)
	}
}

func TestLookPathPassesOverRelativeFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeProgram(t, filepath.Join(dir, "prog"), "#!/bin/sh\n")
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(wd, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, name, want string }{
		{dir, "prog", filepath.Join(dir, "prog")},
		{":" + dir + ":", "prog", filepath.Join(dir, "prog")},
		{relative, "prog", ""},
		{":" + relative + ":", "prog", ""},
		{"", "prog", ""},
		{dir, "folder", ""},
		{dir, "", ""},
	} {
		got, err := LookPath(c.name, []string{"PATH=" + c.path})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("PATH=%s %q: %q, %v; want %q", c.path, c.name, got, err, c.want)
		}
	}
}

// wordsOf returns the words that a shell makes of a command line.
func wordsOf(text string) ([]string, error) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	if len(f.Stmts) != 1 {
		return nil, errors.New("not one command")
	}
	call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(f.Stmts[0].Redirs) > 0 {
		return nil, errors.New("not words alone")
	}
	return expand.Fields(&expand.Config{Env: expand.ListEnviron("HOME=/evil", "x=evil")}, call.Args...)
}

// FuzzQuote holds that what is judged is what runs: the judged text is one
// command of exactly the words that are run.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"echo\x00a  b", "ls\x00\x00-l", "A=b\x00rm", "if\x00then", "!\x00x", "a\x00~\x00{a,b}\x00$x\x00`x`\x00*", "a\x00\n\x00\r\x00'\x00\"\x00\\", "a\x00\xff\xfe\x00é\u202e", "time\x00rm", "#\x00x", "function\x00x", "a\x00;\x00|\x00&&\x00>x", "[[\x00x\x00]]", "a\x00!!\x00^x^y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		words := strings.Split(in, "\x00")
		text, err := quoteWords(words)
		if err != nil {
			t.Skip() // refused, nothing runs
		}
		got, err := wordsOf(text)
		if err != nil || len(got) != len(words) {
			t.Fatalf("%q became %s, which is %q, %v", words, text, got, err)
		}
		for i := range words {
			if got[i] != words[i] {
				t.Errorf("word %d: %q became %q in %s", i, words[i], got[i], text)
			}
		}
	})
}

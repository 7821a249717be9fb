//go:build unix

package undo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/reexec"
)

// A job is what a child process does, and at which step it is killed.
type job struct {
	Store, ID string
	Losses    []FileLoss
	Kill      int
	Disk      uint64 // bytes that a file can hold; 0 for any number
}

func TestMain(m *testing.M) {
	reexec.Main(m, func(arg string) error {
		var j job
		if err := json.Unmarshal([]byte(arg), &j); err != nil {
			return err
		}
		testCrashPoint = func() {
			if j.Kill--; j.Kill < 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		if j.Disk != 0 || j.Kill == 1000 {
			signal.Ignore(syscall.SIGXFSZ)
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: j.Disk, Max: j.Disk}); err != nil {
				return err
			}
		}
		s := New(Options{Dir: j.Store, Clock: time.Now})
		if j.ID != "" {
			_, _, err := s.RestoreBackupSet(context.Background(), j.ID, nil, false)
			return err
		}
		_, err := s.BackUpFiles(context.Background(), UndoableAction{Session: "s", Hash: "h"}, j.Losses)
		return err
	})
}

func testStore(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "undo")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return New(o)
}

// snapshot returns what is below a folder.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
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
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " -> " + to
		}
		out[strings.TrimPrefix(path, root)] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// missing returns what of a snapshot is no longer there as it was.
func missing(was, now map[string]string) (out []string) {
	for path, what := range was {
		if now[path] != what {
			out = append(out, fmt.Sprintf("%q: %.60q, was %.60q", path, now[path], what))
		}
	}
	slices.Sort(out)
	return out
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree makes a small tree with every kind of name.
func tree(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "ws")
	write(t, root+"/a.txt", "a\n")
	write(t, root+"/empty", "")
	write(t, root+"/d/b\nnewline", "b")
	write(t, root+"/d/e/\xff\xfe", "not UTF-8")
	write(t, root+"/d/e/c", strings.Repeat("c", 200_000))
	write(t, root+"/ro/x", "x")
	for _, err := range []error{
		os.Symlink("../a.txt", root+"/d/link"), os.Symlink("nowhere", root+"/dangling"), os.Link(root+"/a.txt", root+"/d/hard"),
		os.Chmod(root+"/d/e/c", 0o751), os.Mkdir(root+"/d/none", 0o700), os.Chmod(root+"/d/e", 0o2755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// rewrite changes a file in place.
func rewrite(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func keep(t testing.TB, s *Store, losses ...FileLoss) *BackupSet {
	t.Helper()
	set, err := s.BackUpFiles(t.Context(), UndoableAction{Session: "s", Hash: "h", Description: "test"}, losses)
	if err != nil || set == nil {
		t.Fatalf("kept %v: %v", set, err)
	}
	return set
}

func apply(t testing.TB, s *Store, id string, force bool, paths ...string) []RestoreResult {
	t.Helper()
	out, _, err := s.RestoreBackupSet(t.Context(), id, paths, force)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDeletedTree(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	was := snapshot(t, root)
	set := keep(t, s, FileLoss{Path: root, Tree: true})
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is left to do
		for _, r := range apply(t, s, set.ID, false) {
			if r.Outcome == OutcomeFailed || r.Outcome == OutcomeRestoredUnderOtherName {
				t.Errorf("%+v", r)
			}
		}
		if m := missing(was, snapshot(t, root)); m != nil {
			t.Errorf("not as it was: %s", strings.Join(m, "\n"))
		}
	}
	if info, err := os.Stat(s.options.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the store: %v %v", info.Mode(), err)
	}
}

// TestOverwritten holds that content which changed in place comes back where it is still
// what the action left, and beside what is newer.
func TestOverwritten(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	was := snapshot(t, root)
	losses := []FileLoss{{Path: root + "/a.txt", Write: true}, {Path: root + "/d/e/c", Write: true}}
	set := keep(t, s, losses...)
	rewrite(t, root+"/a.txt", "new")
	rewrite(t, root+"/d/e/c", "")
	if _, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); err != nil {
		t.Fatal(err)
	}
	write(t, root+"/d/e/c", "newer")
	got := apply(t, s, set.ID, false)
	if got[0].Outcome != OutcomeRestored || got[1].Outcome != OutcomeRestoredUnderOtherName || got[1].RestoredUnderOtherPath != root+"/d/e/c."+set.ID {
		t.Fatalf("%+v", got)
	}
	now := snapshot(t, root)
	if now["/a.txt"] != was["/a.txt"] || now["/d/hard"] != was["/d/hard"] || !strings.HasSuffix(now["/d/e/c"], "newer") || now["/d/e/c."+set.ID] != was["/d/e/c"] {
		t.Errorf("%.200q", now)
	}
	out, saved, err := s.RestoreBackupSet(t.Context(), set.ID, nil, true)
	if err != nil || saved == nil || saved.RestoredSetID != set.ID {
		t.Fatal(out, saved, err)
	}
	if m := missing(was, snapshot(t, root)); m != nil {
		t.Errorf("forced: %s", m)
	}
	// What it replaced is kept.
	if r := apply(t, s, saved.ID, true); r[0].Outcome != OutcomeRestored {
		t.Errorf("%+v", r)
	}
	if text, _ := os.ReadFile(root + "/d/e/c"); string(text) != "newer" {
		t.Errorf("restoring is not undone: %q", text)
	}
}

// TestWithoutAfter holds that nothing is overwritten when it was not seen what the
// action left.
func TestWithoutAfter(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	set := keep(t, s, FileLoss{Path: root + "/a.txt", Write: true})
	rewrite(t, root+"/a.txt", "new")
	if got := apply(t, s, set.ID, false); got[0].Outcome != OutcomeRestoredUnderOtherName {
		t.Errorf("%+v", got)
	}
	if text, _ := os.ReadFile(root + "/a.txt"); string(text) != "new" {
		t.Errorf("%q", text)
	}
}

// TestStillThere holds that what an action did not take away is dropped, so that a link
// in the store does not follow later changes.
func TestStillThere(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	set := keep(t, s, FileLoss{Path: root, Tree: true})
	if err := os.Remove(root + "/d/b\nnewline"); err != nil {
		t.Fatal(err)
	}
	ended, err := s.RecordFilesAfterAction(t.Context(), "s", "h")
	if err != nil || ended == nil || ended.BackedUpContentBytes != 1 {
		t.Fatalf("%+v %v", ended, err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(root+"/empty", &st); err != nil || st.Nlink != 1 {
		t.Errorf("%d links: %v", st.Nlink, err)
	}
	rewrite(t, root+"/a.txt", "later")
	if got := apply(t, s, set.ID, true, root+"/d"); slices.ContainsFunc(got, func(r RestoreResult) bool { return r.Outcome == OutcomeFailed }) {
		t.Errorf("%+v", got)
	}
	if text, err := os.ReadFile(root + "/d/b\nnewline"); string(text) != "b" {
		t.Errorf("%q: %v", text, err)
	}
	if text, _ := os.ReadFile(root + "/a.txt"); string(text) != "later" {
		t.Errorf("%q", text)
	}
	keep(t, s, FileLoss{Path: root + "/empty"})
	if ended, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); ended != nil || err != nil {
		t.Errorf("a set of which nothing was taken away: %v %v", ended, err)
	}
	if list, err := s.List(); len(list) != 1 || err != nil {
		t.Errorf("%v %v", list, err)
	}
}

func TestUnkept(t *testing.T) {
	t.Parallel()
	root := tree(t)
	secret := func(path string, start []byte) bool {
		return filepath.Base(path) == "c" || bytes.Contains(start, []byte("UTF"))
	}
	late := time.Now()
	for want, c := range map[string]struct {
		o Options
		l FileLoss
	}{
		"credential files are not copied":                                {Options{IsSecret: secret}, FileLoss{Path: root + "/d/e/c"}},
		"the file contains a credential, and credentials are not copied": {Options{IsSecret: secret}, FileLoss{Path: root + "/d/e/\xff\xfe", Write: true}},
		"more than 3 files and folders":                                  {Options{Limits: Limits{MaxEntriesPerSet: 3, MaxBackupTimePerSet: time.Hour, MaxTotalBytes: 1 << 30}}, FileLoss{Path: root, Tree: true}},
		"would be copied":                                                {Options{Limits: Limits{MaxEntriesPerSet: 99, MaxBackupTimePerSet: time.Hour, MaxTotalBytes: 1 << 30, MaxCopiedBytesPerSet: 100}}, FileLoss{Path: root + "/d/e/c", Write: true}},
		"store is full":                                                  {Options{Limits: Limits{MaxEntriesPerSet: 99, MaxBackupTimePerSet: time.Hour, MaxTotalBytes: 100_000, MaxCopiedBytesPerSet: 100}}, FileLoss{Path: root + "/d/e/c"}},
		"takes longer":                                                   {Options{Clock: func() time.Time { late = late.Add(2 * time.Second); return late }}, FileLoss{Path: root, Tree: true}},
		"the path is not absolute; use an absolute path":                 {Options{}, FileLoss{Path: "a.txt"}},
		"nested more than 256 deep":                                      {Options{}, FileLoss{Path: deep(t), Tree: true}},
		"symbolic links":                                                 {Options{}, FileLoss{Path: linked(t, root) + "/a.txt"}},
		"another file system":                                            {Options{}, FileLoss{Path: "/dev", Tree: true}},
		"read-only or no folder":                                         {Options{Dir: "/proc/undo"}, FileLoss{Path: root + "/a.txt"}},
	} {
		s := testStore(t, c.o)
		set, err := s.BackUpFiles(t.Context(), UndoableAction{}, []FileLoss{c.l})
		var unkept *BackupError
		if set != nil || err == nil || errors.As(err, &unkept) != (c.o.Dir == "") || c.o.Dir == "" && !strings.Contains(err.Error(), want) && want != "symbolic links" {
			t.Errorf("%s: %v %v", want, set, err)
		}
		if left, _ := filepath.Glob(s.options.Dir + "/u*"); left != nil {
			t.Errorf("%s: left %v", want, left)
		}
	}
}

func deep(t *testing.T) string {
	root := t.TempDir()
	if err := os.MkdirAll(root+strings.Repeat("/d", maxFolderDepth+2), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func linked(t *testing.T, to string) string {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestSwappedFolder holds that a folder which became a symbolic link is not written
// through.
func TestSwappedFolder(t *testing.T) {
	t.Parallel()
	s, root, other := testStore(t, Options{}), tree(t), t.TempDir()
	set := keep(t, s, FileLoss{Path: root + "/d", Tree: true})
	for _, err := range []error{os.RemoveAll(root + "/d"), os.Symlink(other, root+"/d")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := apply(t, s, set.ID, true)
	if left, _ := os.ReadDir(other); len(left) > 0 {
		t.Errorf("written through a link: %v", left)
	}
	if got[0].Outcome != OutcomeRestoredUnderOtherName || got[1].Outcome != OutcomeFailed {
		t.Errorf("%+v", got)
	}
}

// TestTampered holds that what was changed in the store is not restored.
func TestTampered(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	set := keep(t, s, FileLoss{Path: root + "/empty"}, FileLoss{Path: root + "/d/e/c", Write: true})
	rewrite(t, root+"/empty", "through the link")
	kept, err := s.Get(set.ID)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.options.Dir, set.ID, kept.Entries[1].StoredName), strings.Repeat("x", 200_000))
	for _, err := range []error{os.Remove(root + "/empty"), os.Remove(root + "/d/e/c")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range apply(t, s, set.ID, true) {
		if r.Outcome != OutcomeFailed || !strings.Contains(r.Why, "was changed after") {
			t.Errorf("%+v", r)
		}
	}
	write(t, filepath.Join(s.options.Dir, set.ID, backupSetHeadFileName), "{")
	if _, err := s.Get(set.ID); err == nil {
		t.Error("a damaged set is read")
	}
	if _, err := s.Get("../x"); err == nil {
		t.Error("a path is an ID")
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	root := tree(t)
	write(t, root+"/d/node_modules/x", "x")
	s := testStore(t, Options{IsBuildOutput: func(path string) bool { return filepath.Base(path) == "node_modules" }})
	set := keep(t, s, FileLoss{Path: root, Under: true, Deep: true, IsLostPath: func(path string) bool { return filepath.Base(path) == "c" || strings.HasSuffix(path, "/x") }})
	var got []string
	for _, e := range set.Entries {
		got = append(got, strings.TrimPrefix(e.Path, root))
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"/d/e/c", "/ro/x"}) {
		t.Errorf("%q", got)
	}
	set = keep(t, s, FileLoss{Path: root + "/d", Tree: true})
	if !slices.Equal(set.NotBackedUpPaths, []string{root + "/d/node_modules"}) {
		t.Errorf("left out: %q", set.NotBackedUpPaths)
	}
}

// TestSparse holds that a file of holes costs what it holds.
func TestSparse(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), t.TempDir()
	const size = 8 << 30
	f, err := os.Create(root + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("end"), size-3)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Skip("no sparse files here:", err)
	}
	s.options.Limits.MaxTotalBytes = 1 << 40
	set, err := s.BackUpFiles(t.Context(), UndoableAction{}, []FileLoss{{Path: root + "/sparse", Write: true}})
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, root+"/sparse", "")
	if got := apply(t, s, set.ID, true); got[0].Outcome != OutcomeRestored {
		t.Fatalf("%+v", got)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(root+"/sparse", &st); err != nil || st.Size != size || st.Blocks > 1000 {
		t.Errorf("%d bytes, %d blocks: %v", st.Size, st.Blocks, err)
	}
}

// TestSameTime holds that content comes back which a program replaced by other content of the
// same size, with the same modification time.
func TestSameTime(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	name := root + "/a.txt"
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	change := func(text string) {
		rewrite(t, name, text)
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	for _, ended := range []bool{true, false} {
		set := keep(t, s, FileLoss{Path: name, Write: true})
		time.Sleep(20 * time.Millisecond) // more than a tick of the change time
		change("b\n")
		if ended {
			if got, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); err != nil || got == nil {
				t.Fatal("the set is dropped", err)
			}
		}
		if got := apply(t, s, set.ID, !ended); got[0].Outcome != OutcomeRestored {
			t.Errorf("%+v", got)
		}
		if text, _ := os.ReadFile(name); string(text) != "a\n" {
			t.Errorf("%q", text)
		}
	}
	set := keep(t, s, FileLoss{Path: name, Write: true})
	rewrite(t, name, "c\n")
	if _, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); err != nil {
		t.Fatal(err)
	}
	left, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	rewrite(t, name, "d\n")
	if err := os.Chtimes(name, left.ModTime(), left.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := apply(t, s, set.ID, false); got[0].Outcome != OutcomeRestoredUnderOtherName {
		t.Errorf("newer content of the same size and time: %+v", got)
	}
}

// TestFullDisk holds that nothing is kept, and nothing left in the store, if the disk of
// the store can hold no more.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	store, root := filepath.Join(t.TempDir(), "undo"), tree(t)
	was := snapshot(t, root)
	for most := range 12 {
		arg, err := json.Marshal(job{Store: store, Losses: []FileLoss{{Path: root + "/d", Tree: true}, {Path: root + "/d/e/c", Write: true}}, Kill: 1000, Disk: uint64(most) * 1000})
		if err != nil {
			t.Fatal(err)
		}
		if err := reexec.Command(t, string(arg)).Run(); err == nil {
			t.Errorf("kept with files of at most %d bytes", most*1000)
		}
		if left, _ := filepath.Glob(store + "/u*"); left != nil {
			t.Errorf("left %q", left)
		}
	}
	if m := missing(was, snapshot(t, root)); m != nil {
		t.Errorf("the tree changed: %q", m)
	}
	keep(t, testStore(t, Options{Dir: store}), FileLoss{Path: root, Tree: true})
}

// TestFlood holds that many small sets fill a store, too.
func TestFlood(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), t.TempDir()
	s.options.Limits.MaxTotalBytes = 1 << 20
	for i := range 200 {
		name := filepath.Join(root, fmt.Sprint(i))
		write(t, name, "x")
		set, err := s.BackUpFiles(t.Context(), UndoableAction{Session: "s", Hash: name}, []FileLoss{{Path: name}})
		if err != nil {
			if i < 50 || !strings.Contains(err.Error(), "full") {
				t.Errorf("set %d: %v", i, err)
			}
			return
		}
		if i%2 == 0 { // the file stays
			if ended, err := s.RecordFilesAfterAction(t.Context(), "s", name); ended != nil || err != nil {
				t.Fatal(ended, err)
			}
		} else if err := os.Remove(name); err != nil || set == nil {
			t.Fatal(set, err)
		}
	}
	t.Error("the store takes any number of sets")
}

// TestUntold holds that a session is notified of each of its sets once.
func TestUntold(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	untold := func(session string) string {
		sets, err := s.ClaimSetsUnreportedToUser(session)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range sets {
			ids = append(ids, sets[i].ID)
		}
		return strings.Join(ids, " ")
	}
	if got := untold("s"); got != "" {
		t.Errorf("no store: %q", got)
	}
	keep(t, s, FileLoss{Path: root + "/a.txt", Write: true})
	keep(t, s, FileLoss{Path: root + "/empty"})
	for _, c := range []struct{ session, want string }{{"other", ""}, {"s", "u2 u1"}, {"s", ""}} {
		if got := untold(c.session); got != c.want {
			t.Errorf("%s: %q, want %q", c.session, got, c.want)
		}
	}
	keep(t, s, FileLoss{Path: root + "/empty"})
	if got := untold("s"); got != "u3" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestRights holds that the rights of a file whose content did not change come back.
func TestRights(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), tree(t)
	set := keep(t, s, FileLoss{Path: root + "/a.txt", Write: true}, FileLoss{Path: root + "/d/e/c", Write: true})
	if err := os.Chmod(root+"/d/e/c", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); err != nil {
		t.Fatal(err)
	}
	if got := apply(t, s, set.ID, false); len(got) != 1 || got[0].Outcome != OutcomeRestored {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(root + "/d/e/c"); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	s, root := testStore(t, Options{}), t.TempDir()
	write(t, root+"/app.db", "data")
	write(t, root+"/app.db-wal", "log")
	holder := exec.Command("sleep", "60")
	f, err := os.Open(root + "/app.db")
	if err != nil {
		t.Fatal(err)
	}
	holder.ExtraFiles = []*os.File{f}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	loss := FileLoss{Path: root + "/app.db", Store: true}
	if set, err := s.BackUpFiles(t.Context(), UndoableAction{}, []FileLoss{loss}); err == nil || !strings.Contains(err.Error(), "open") {
		t.Errorf("kept while it is in use: %v %v", set, err)
	}
	_, _, _ = f.Close(), holder.Process.Kill(), holder.Wait()
	if set := keep(t, s, loss); set.EntryCount != 2 {
		t.Errorf("%+v", set)
	}
}

// TestPrune holds which sets are dropped.
func TestPrune(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := testStore(t, Options{Clock: func() time.Time { return now }})
	root := t.TempDir()
	add := func(session, name string, ago time.Duration) string {
		write(t, root+"/"+name, strings.Repeat("x", 1000))
		was := now
		now = now.Add(-ago)
		set, err := s.BackUpFiles(t.Context(), UndoableAction{Session: session}, []FileLoss{{Path: root + "/" + name}})
		if now = was; err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(root + "/" + name); err != nil {
			t.Fatal(err)
		}
		return set.ID
	}
	const day = 24 * time.Hour
	young, live, old, middle := add("b", "1", time.Hour), add("b", "2", 9*day), add("a", "3", 9*day), add("c", "4", 3*day)
	ids := func() (out []string) {
		list, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range list {
			out = append(out, set.ID)
		}
		return out
	}
	if n, bytes, err := s.Prune(t.Context(), 7*day); n != 1 || bytes != 1000 || err != nil {
		t.Errorf("dropped %d, %d bytes: %v", n, bytes, err)
	}
	if got := ids(); !slices.Equal(got, []string{middle, live, young}) || slices.Contains(got, old) {
		t.Errorf("%q are left", got)
	}
	s.options.Limits.MaxTotalBytes = 2500 + 6*assumedEntryOverheadBytes
	if set, err := s.BackUpFiles(t.Context(), UndoableAction{}, []FileLoss{{Path: root + "/none"}}); set != nil || err != nil {
		t.Errorf("%v %v", set, err)
	}
	if got := ids(); !slices.Equal(got, []string{live, young}) {
		t.Errorf("%q are left in a full store", got)
	}
	write(t, root+"/5", strings.Repeat("x", 1000))
	if _, err := s.BackUpFiles(t.Context(), UndoableAction{}, []FileLoss{{Path: root + "/5"}}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("a full store keeps: %v", err)
	}
	if n, _, err := s.Prune(t.Context(), 0); n != 2 || err != nil {
		t.Errorf("dropped %d: %v", n, err)
	}
	if id := add("d", "6", 0); id == old || id == live {
		t.Errorf("the ID %s is used again", id)
	}
	if err := os.WriteFile(filepath.Join(s.options.Dir, storeTotalsFileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	add("d", "7", 0)
}

// TestKilled kills a process at a random step of Keep, and another one at a random step
// of Apply. Nothing may be lost, and nothing half restored.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := 60
	if os.Getenv("SHIELD_UNDO_KILLS") != "" {
		rounds = 500
	}
	random := rand.New(rand.NewPCG(1, uint64(rounds)))
	ended := 0
	for round := range rounds {
		store, root := filepath.Join(t.TempDir(), "undo"), tree(t)
		write(t, root+"/big", strings.Repeat(fmt.Sprint(round), 100_000))
		was := snapshot(t, root)
		losses := []FileLoss{{Path: root + "/d", Tree: true}, {Path: root + "/a.txt", Write: true}, {Path: root + "/big", Write: true}, {Path: root + "/empty"}}
		run := func(j job) (killed bool) {
			arg, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			err = reexec.Command(t, string(arg)).Run()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() >= 0) {
				t.Fatalf("round %d: %v", round, err)
			}
			return err != nil
		}
		if !run(job{Store: store, Losses: losses, Kill: random.IntN(30)}) {
			ended++
		}
		if m := missing(was, snapshot(t, root)); m != nil {
			t.Fatalf("round %d: Keep changed the tree: %q", round, m)
		}
		s := testStore(t, Options{Dir: store})
		set := keep(t, s, losses...)
		rewrite(t, root+"/a.txt", "new")
		rewrite(t, root+"/big", "new")
		for _, err := range []error{os.RemoveAll(root + "/d"), os.Remove(root + "/empty")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.RecordFilesAfterAction(t.Context(), "s", "h"); err != nil {
			t.Fatal(err)
		}
		gone := snapshot(t, root)
		if !run(job{Store: store, ID: set.ID, Kill: random.IntN(45)}) {
			ended++
		}
		for path, what := range snapshot(t, root) {
			if half := what != was[path] && what != gone[path] && !strings.HasPrefix(what, "d"); half && path != "/a.txt" {
				t.Errorf("round %d: %q is half restored: %.80q", round, path, what)
			}
		}
		for _, r := range apply(t, s, set.ID, false) {
			if r.Outcome == OutcomeFailed || r.Outcome == OutcomeRestoredUnderOtherName {
				t.Errorf("round %d: %+v", round, r)
			}
		}
		if m := missing(was, snapshot(t, root)); m != nil {
			t.Fatalf("round %d: not as it was: %q", round, m)
		}
		if left, _ := filepath.Glob(root + "/.shield*"); left != nil {
			t.Errorf("round %d: left %q", round, left)
		}
	}
	t.Logf("%d of %d processes were not killed", ended, 2*rounds)
}

// BenchmarkKeep measures what the documentation promises.
func BenchmarkKeep(b *testing.B) {
	names := b.TempDir()
	for i := range 5000 {
		write(b, fmt.Sprintf("%s/%d/%d", names, i/100, i), "some text")
	}
	big := b.TempDir()
	f, err := os.Create(big + "/big")
	if err == nil {
		_, err = f.Write(make([]byte, 1<<20))
		err = errors.Join(err, f.Truncate(1<<30), f.Close())
	}
	if err != nil {
		b.Fatal(err)
	}
	for name, loss := range map[string]FileLoss{"5000 names": {Path: names, Tree: true}, "1 GB linked": {Path: big + "/big"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := testStore(b, Options{})
				b.StartTimer()
				set := keep(b, s, loss)
				b.StopTimer()
				if err := os.RemoveAll(s.options.Dir + "/" + set.ID); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

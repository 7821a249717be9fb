//go:build unix

package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An applier restores the files of one [Set], the files kept for one action.
type applier struct {
	s               *Store
	set             *Set
	fd              int               // descriptor of the set's folder
	stampsAfter     map[int]fileStamp // state of the files after the action
	interruptedPath string            // a path that was being overwritten when a process was killed
	force           bool
}

// How to restore an entry.
type restorePlan uint8

const (
	planNothing restorePlan = iota
	planCreate
	planReplace     // the file is as the action left it, or force is set
	planOverwrite   // write into the file, because it has other hard links
	planPermissions // only mode or time differ
	planOtherName
)

// Apply restores a set, or only its names at or below some paths. A file that is newer than the action
// stays, and the kept file is restored under another name, unless force is set. Replaced files are
// kept first, in the returned set; nil if nothing was replaced.
func (s *Store) Apply(ctx context.Context, id string, paths []string, force bool) ([]Result, *Set, error) {
	set, err := s.Get(id)
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(s.o.Dir, id)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(fd)
	a := &applier{s: s, set: set, fd: fd, force: force, stampsAfter: s.stampsAfterAction(id)}
	if data, err := os.ReadFile(filepath.Join(dir, overwritingName)); err == nil {
		a.interruptedPath = string(data)
	}
	var chosen []int
	for i := range set.Entries {
		if e := &set.Entries[i]; !e.ContentDropped && (len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return isInOrBelow(e.path(), p) })) {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("the set %s contains none of these paths; run 'shield undo show %s' for its files", id, id)
	}
	var losses []FileLoss
	for _, i := range chosen {
		if p, _, _ := a.planFor(i); p == planReplace || p == planOverwrite {
			losses = append(losses, FileLoss{Path: set.Entries[i].path(), Write: true}) // a new hard link would change the file's change time
		}
	}
	saved, err := s.Keep(ctx, ActionInfo{Session: set.Session, CWD: set.CWD, Type: "undo", RestoredSet: id, Description: "what undo apply " + id + " replaced"}, losses)
	if err != nil {
		return nil, nil, fmt.Errorf("nothing was restored, because the files that would be replaced cannot be copied first: %w; move them away, then try again", err)
	}
	testCrashPoint()
	var out []Result
	for _, i := range chosen {
		if err := ctx.Err(); err != nil {
			return out, saved, err
		}
		e := &set.Entries[i]
		r := Result{Path: e.path()}
		r.Outcome, r.OtherPath, err = a.restoreEntry(i)
		if err != nil {
			r.Outcome, r.Why = Failed, err.Error()
		}
		out = append(out, r)
		testCrashPoint()
	}
	a.restoreFolderModes(chosen)
	at := s.o.Clock().UTC().Format(time.RFC3339)
	return out, saved, os.WriteFile(filepath.Join(dir, appliedName), []byte(at), 0o600)
}

// isInOrBelow reports whether a path is the folder or below it.
func isInOrBelow(path, folder string) bool {
	folder = filepath.Clean(folder)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// stampsAfterAction returns the state of the set's files after the action, by the index of the entry.
func (s *Store) stampsAfterAction(id string) map[int]fileStamp {
	left := map[int]fileStamp{}
	if data, err := os.ReadFile(filepath.Join(s.o.Dir, id, stampsAfterName)); err == nil {
		_ = json.Unmarshal(data, &left)
	}
	return left
}

// planFor returns how to restore an entry, and the state of the current file.
func (a *applier) planFor(i int) (p restorePlan, found fileStamp, err error) {
	e := &a.set.Entries[i]
	path := e.path()
	dir, err := openFolder(filepath.Dir(path))
	if isNotExist(err) {
		return planCreate, fileStamp{}, nil
	}
	if err != nil {
		return planNothing, fileStamp{}, fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	defer unix.Close(dir)
	return a.planIn(dir, i)
}

func (a *applier) planIn(dir, i int) (p restorePlan, found fileStamp, err error) {
	e := &a.set.Entries[i]
	name := filepath.Base(e.path())
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if isNotExist(err) {
			return planCreate, fileStamp{}, nil
		}
		return planNothing, fileStamp{}, err
	}
	found = stampOf(&st)
	if a.isUnchanged(e, dir, name, &st) {
		if e.Kind == "file" && uint32(st.Mode)&0o7777 != e.Mode {
			return planPermissions, found, nil
		}
		return planNothing, found, nil
	}
	if left, ok := a.stampsAfter[i]; !(ok && (left.isSameState(found) || left.isSameIgnoringCTime(found) && a.isKeptByLink(found))) && !a.force && a.interruptedPath != e.path() || e.Kind == "dir" || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return planOtherName, found, nil
	}
	if e.HasHardLinks && found.Ino == e.OriginalStamp.Ino && found.Dev == e.OriginalStamp.Dev {
		return planOverwrite, found, nil
	}
	return planReplace, found, nil
}

// isKeptByLink reports whether a file is one that the set keeps by a hard link, so that the action
// only moved it to its current path. Each further hard link changes the file's change time, so that
// time does not show a change of the content.
func (a *applier) isKeptByLink(s fileStamp) bool {
	return slices.ContainsFunc(a.set.Entries, func(e Entry) bool {
		return e.KeptBy == "link" && e.StoredStamp.Ino == s.Ino && e.StoredStamp.Dev == s.Dev
	})
}

// isUnchanged reports whether the current file is the kept file.
func (a *applier) isUnchanged(e *Entry, dir int, name string, st *unix.Stat_t) bool {
	now := stampOf(st)
	switch kind := st.Mode & unix.S_IFMT; e.Kind {
	case "dir":
		return kind == unix.S_IFDIR
	case "link":
		buf := make([]byte, len(e.Target)+1)
		n, err := unix.Readlinkat(dir, name, buf)
		return kind == unix.S_IFLNK && err == nil && string(buf[:n]) == e.Target
	case "text":
		f, _, err := openRegular(dir, name)
		if err != nil {
			return false
		}
		defer f.Close()
		buf := make([]byte, len(e.Target)+1)
		n, _ := f.ReadAt(buf, 0)
		return string(buf[:n]) == e.Target
	default:
		if kind != unix.S_IFREG || now.Size != e.Size {
			return false
		}
		if e.KeptBy != "link" && now.isSameState(e.OriginalStamp) || e.KeptBy == "link" && now.Ino == e.OriginalStamp.Ino && now.Dev == e.OriginalStamp.Dev && now.MTime == e.OriginalStamp.MTime {
			return true
		}
	}
	f, _, err := openRegular(dir, name)
	if err != nil {
		return false
	}
	defer f.Close()
	want := e.Hash
	if want == "" {
		k, err := a.openKeptContent(e)
		if err != nil {
			return false
		}
		defer k.Close()
		if want, err = hashFile(k); err != nil {
			return false
		}
	}
	got, err := hashFile(f)
	return err == nil && got == want
}

// openKeptContent opens the kept content of a file, and checks that it is unchanged.
func (a *applier) openKeptContent(e *Entry) (*os.File, error) {
	f, st, err := openRegular(a.fd, e.StoredName)
	if err != nil {
		return nil, fmt.Errorf("the stored copy cannot be opened: %w", err)
	}
	now := stampOf(st)
	ok := now.Size == e.Size
	switch e.KeptBy {
	case "copy":
		sum, err := hashFile(f)
		ok = ok && err == nil && sum == e.Hash
	default:
		ok = ok && now.Ino == e.StoredStamp.Ino && now.MTime == e.StoredStamp.MTime
	}
	if !ok {
		f.Close()
		return nil, errors.New("the stored copy was changed after shield made it, so it is not restored; restore the file from git or a backup")
	}
	return f, nil
}

// restoreEntry restores one entry.
func (a *applier) restoreEntry(i int) (did, at string, err error) {
	e := &a.set.Entries[i]
	path := e.path()
	dir, err := makeFolder(filepath.Dir(path))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	defer unix.Close(dir)
	name := filepath.Base(path)
	p, found, err := a.planIn(dir, i)
	if err != nil {
		return "", "", err
	}
	switch p {
	case planNothing:
		return Same, "", nil
	case planCreate:
		err := a.createEntry(dir, name, i)
		if err == nil {
			return Restored, "", nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return "", "", err
		}
	case planPermissions:
		fd, _, err := openRegular(dir, name)
		if err == nil {
			err = unix.Fchmod(int(fd.Fd()), e.Mode)
			fd.Close()
		}
		return Restored, "", err
	case planReplace:
		err := a.replaceFile(dir, name, i, found)
		return Restored, "", err
	case planOverwrite:
		return Restored, "", a.overwriteFile(dir, name, e, found)
	}
	for n := 1; n < 100; n++ {
		other := name + "." + a.set.ID
		if n > 1 {
			other += "." + strconv.Itoa(n)
		}
		err := a.createEntry(dir, other, i)
		if err == nil {
			return Beside, filepath.Join(filepath.Dir(path), other), nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return "", "", err
		}
		var st unix.Stat_t
		if unix.Fstatat(dir, other, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && a.isUnchanged(e, dir, other, &st) {
			return Beside, filepath.Join(filepath.Dir(path), other), nil
		}
	}
	return "", "", errors.New("a newer file exists, and the names for a copy beside it are taken; remove old copies, or use --force")
}

// makeFolder opens a folder, and creates the missing parts of its path.
func makeFolder(path string) (int, error) {
	fd, err := openFolder(path)
	if !errors.Is(err, unix.ENOENT) || path == "/" {
		return fd, err
	}
	above, err := makeFolder(filepath.Dir(path))
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	if err := unix.Mkdirat(above, filepath.Base(path), 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return openFolder(path)
}

// createEntry creates a file that must not exist.
func (a *applier) createEntry(dir int, name string, i int) error {
	e := &a.set.Entries[i]
	switch e.Kind {
	case "dir":
		return unix.Mkdirat(dir, name, e.Mode&0o777|0o700)
	case "link":
		return unix.Symlinkat(e.Target, dir, name)
	}
	return a.stageFile(dir, i, func(from int, staged string) error { return unix.Linkat(from, staged, dir, name, 0) })
}

// replaceFile replaces the file that was found at a name by the kept file of an entry. It fails if
// the found file has changed.
func (a *applier) replaceFile(dir int, name string, i int, found fileStamp) error {
	e := &a.set.Entries[i]
	move := func(from int, staged string) error {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || stampOf(&st) != found {
			return errors.New("the file changed during the restore; run the command again")
		}
		return unix.Renameat(from, staged, dir, name)
	}
	if e.Kind != "link" {
		return a.stageFile(dir, i, move)
	}
	staged := a.stagedName(i)
	_ = unix.Unlinkat(dir, staged, 0)
	if err := unix.Symlinkat(e.Target, dir, staged); err != nil {
		return err
	}
	defer unix.Unlinkat(dir, staged, 0)
	testCrashPoint()
	return move(dir, staged)
}

// stagedName returns the temporary name of an entry.
func (a *applier) stagedName(i int) string {
	return ".shield-undo-" + a.set.ID + "-" + strconv.Itoa(i)
}

// stageFile creates the kept file of an entry under a temporary name, in the store or, if the
// target folder is on another file system, in the target folder. It then calls the function use,
// which moves the file to its final name.
func (a *applier) stageFile(dir, i int, use func(from int, staged string) error) error {
	e := &a.set.Entries[i]
	staged := a.stagedName(i)
	if e.KeptBy == "link" {
		f, err := a.openKeptContent(e)
		if err != nil {
			return err
		}
		f.Close()
		_ = unix.Unlinkat(a.fd, staged, 0)
		if err := unix.Linkat(a.fd, e.StoredName, a.fd, staged, 0); err != nil {
			return err
		}
		defer unix.Unlinkat(a.fd, staged, 0)
		testCrashPoint()
		return use(a.fd, staged)
	}
	var err error
	for _, at := range [...]int{a.fd, dir} {
		_ = unix.Unlinkat(at, staged, 0)
		if err = a.writeContent(at, staged, e); err == nil {
			testCrashPoint()
			err = use(at, staged)
		}
		_ = unix.Unlinkat(at, staged, 0) // the file is gone if it was renamed
		if !errors.Is(err, unix.EXDEV) {
			break
		}
	}
	return err
}

// writeContent creates a file with the content of an entry.
func (a *applier) writeContent(dir int, name string, e *Entry) error {
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), name)
	defer to.Close()
	if e.Kind == "text" {
		if err := to.Chmod(0o644); err != nil {
			return err
		}
		_, err := to.WriteString(e.Target)
		return err
	}
	from, err := a.openKeptContent(e)
	if err != nil {
		return err
	}
	defer from.Close()
	if clone(to, from) != nil {
		if _, err := copyFile(to, from, alwaysContinue); err != nil {
			return err
		}
	}
	testCrashPoint()
	return setModeAndTime(fd, e)
}

// setModeAndTime sets the mode and time of an open file to those of an entry.
func setModeAndTime(fd int, e *Entry) error {
	if err := unix.Fchmod(fd, e.Mode); err != nil {
		return err
	}
	at := unix.NsecToTimeval(e.OriginalStamp.MTime)
	return unix.Futimes(fd, []unix.Timeval{at, at})
}

// overwriteFile writes the content of an entry into a file that has other hard links. It records the path
// first, since a process killed meanwhile leaves a partly written file.
func (a *applier) overwriteFile(dir int, name string, e *Entry, found fileStamp) error {
	from, err := a.openKeptContent(e)
	if err != nil {
		return err
	}
	defer from.Close()
	note := filepath.Join(a.s.o.Dir, a.set.ID, overwritingName)
	if err := os.WriteFile(note, []byte(e.path()), 0o600); err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), name)
	defer to.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || stampOf(&st) != found {
		return errors.New("the file changed during the restore; run the command again")
	}
	testCrashPoint()
	if err := to.Truncate(0); err != nil {
		return err
	}
	testCrashPoint()
	if _, err := copyFile(to, from, alwaysContinue); err != nil {
		return err
	}
	testCrashPoint()
	if err := setModeAndTime(fd, e); err != nil {
		return err
	}
	return os.Remove(note)
}

// restoreFolderModes restores the mode and time of the folders that were created, now or by a killed process,
// innermost first.
func (a *applier) restoreFolderModes(entries []int) {
	for _, i := range slices.Backward(entries) {
		e := &a.set.Entries[i]
		if e.Kind != "dir" {
			continue
		}
		fd, err := openFolderForReading(e.path())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && stampOf(&st).Ino != e.OriginalStamp.Ino {
			_ = setModeAndTime(fd, e)
		}
		unix.Close(fd)
	}
}

// openFolderForReading opens a folder for reading, unlike openFolder, which opens it only as a path.
func openFolderForReading(path string) (int, error) {
	fd, err := openFolder(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Ended records the state of the set's files after the action, so that Apply can tell it from newer
// content, and drops files that the action did not delete. It returns the set; nil if nothing was kept
// for the action.
func (s *Store) Ended(ctx context.Context, session, hash string) (*Set, error) {
	mark := s.pendingPath(session, hash)
	id, err := os.ReadFile(mark)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(mark); err != nil {
		return nil, err
	}
	set, err := s.Get(string(id))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.o.Dir, set.ID)
	left := map[int]fileStamp{}
	var freed int64
	remain := 0
	for i := range set.Entries {
		e := &set.Entries[i]
		var st unix.Stat_t
		fd, err := openFolder(filepath.Dir(e.path()))
		if err == nil {
			err = unix.Fstatat(fd, filepath.Base(e.path()), &st, unix.AT_SYMLINK_NOFOLLOW)
			unix.Close(fd)
		}
		now := stampOf(&st)
		switch {
		case err != nil:
			remain++
		case e.Kind == "dir":
		case e.Kind == "file" && now.Ino == e.OriginalStamp.Ino && now.Dev == e.OriginalStamp.Dev && (e.KeptBy == "link" || uint32(st.Mode)&0o7777 == e.Mode && now.isSameState(e.OriginalStamp)):
			e.ContentDropped = true
			freed += e.Size
			_ = os.Remove(filepath.Join(dir, e.StoredName))
		case e.Kind == "link" && now.isSameState(e.OriginalStamp):
			e.ContentDropped = true
		default:
			left[i] = now
			remain++
		}
	}
	if err := writeFile(dir, stampsAfterName, left); err != nil {
		return nil, err
	}
	if err := writeFile(dir, entriesName, set.Entries); err != nil {
		return nil, err
	}
	set.Bytes -= freed
	head := *set
	head.Entries, head.AppliedAt = nil, ""
	if err := writeFile(dir, headName, head); err != nil {
		return nil, err
	}
	err = s.withLock(ctx, func(c *counter) error {
		c.Used -= freed
		if remain == 0 { // the action deleted nothing
			c.Used -= set.cost()
			_ = os.Rename(dir, dir+goneSuffix)
		}
		return nil
	})
	if remain == 0 {
		_ = os.RemoveAll(dir + goneSuffix)
		return nil, err
	}
	return set, err
}

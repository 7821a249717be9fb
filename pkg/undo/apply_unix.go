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

// A backupSetRestorer restores the files of one [BackupSet], the files kept for one action.
type backupSetRestorer struct {
	store                 *Store
	set                   *BackupSet
	backupFolderFD        int               // descriptor of the set's folder
	stampsAfterAction     map[int]fileStamp // state of the files after the action
	partlyOverwrittenPath string            // a path that was being overwritten when a process was killed
	replacesNewerFiles    bool
}

// An entryRestorePlan is how an entry is restored.
type entryRestorePlan uint8

const (
	restorePlanNothing entryRestorePlan = iota
	restorePlanCreateEntry
	restorePlanReplaceFile      // the file is as the action left it, or force is set
	restorePlanOverwriteInPlace // write into the file, because it has other hard links
	restorePlanSetPermissions   // only mode or time differ
	restorePlanUseOtherName
)

// RestoreBackupSet restores a set, or only its names at or below some paths. A file that is newer than the action
// stays, and the kept file is restored under another name, unless force is set. Replaced files are
// kept first, in the returned set; nil if nothing was replaced.
func (s *Store) RestoreBackupSet(ctx context.Context, id string, paths []string, force bool) ([]RestoreResult, *BackupSet, error) {
	set, err := s.Get(id)
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(s.options.Dir, id)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(fd)
	a := &backupSetRestorer{store: s, set: set, backupFolderFD: fd, replacesNewerFiles: force, stampsAfterAction: s.readStampsAfterAction(id)}
	if data, err := os.ReadFile(filepath.Join(dir, overwriteInProgressFileName)); err == nil {
		a.partlyOverwrittenPath = string(data)
	}
	var chosen []int
	for i := range set.Entries {
		if e := &set.Entries[i]; !e.IsDiscardedAsUnchanged && (len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return isInOrBelow(e.rawOrUTF8Path(), p) })) {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("the set %s contains none of these paths; run 'shield undo show %s' for its files", id, id)
	}
	var losses []FileLoss
	for _, i := range chosen {
		if p, _, _ := a.planForEntry(i); p == restorePlanReplaceFile || p == restorePlanOverwriteInPlace {
			losses = append(losses, FileLoss{Path: set.Entries[i].rawOrUTF8Path(), Write: true}) // Write: back up by copy; a hard link would change the change time, and the file would look newer
		}
	}
	saved, err := s.BackUpFiles(ctx, UndoableAction{Session: set.Session, CWD: set.CWD, Type: "undo", RestoredSetID: id, Description: "what undo apply " + id + " replaced"}, losses)
	if err != nil {
		return nil, nil, fmt.Errorf("nothing was restored, because the files that would be replaced cannot be copied first: %w; move them away, then try again", err)
	}
	testCrashPoint()
	var out []RestoreResult
	for _, i := range chosen {
		if err := ctx.Err(); err != nil {
			return out, saved, err
		}
		e := &set.Entries[i]
		r := RestoreResult{Path: e.rawOrUTF8Path()}
		r.Outcome, r.RestoredUnderOtherPath, err = a.restoreEntry(i)
		if err != nil {
			r.Outcome, r.Why = OutcomeFailed, err.Error()
		}
		out = append(out, r)
		testCrashPoint()
	}
	a.restoreFolderModes(chosen)
	at := s.options.Clock().UTC().Format(time.RFC3339)
	return out, saved, os.WriteFile(filepath.Join(dir, lastRestoreTimeFileName), []byte(at), 0o600)
}

// isInOrBelow reports whether a path is the folder or below it.
func isInOrBelow(path, folder string) bool {
	folder = filepath.Clean(folder)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// readStampsAfterAction returns the state of the set's files after the action, by the index of the entry.
func (s *Store) readStampsAfterAction(setID string) map[int]fileStamp {
	left := map[int]fileStamp{}
	if data, err := os.ReadFile(filepath.Join(s.options.Dir, setID, stampsAfterActionFileName)); err == nil {
		_ = json.Unmarshal(data, &left)
	}
	return left
}

// planForEntry returns how to restore an entry, and the state of the current file.
func (a *backupSetRestorer) planForEntry(entryIndex int) (p entryRestorePlan, currentStamp fileStamp, err error) {
	e := &a.set.Entries[entryIndex]
	path := e.rawOrUTF8Path()
	dir, err := openFolderForTraversal(filepath.Dir(path))
	if isNotExist(err) {
		return restorePlanCreateEntry, fileStamp{}, nil
	}
	if err != nil {
		return restorePlanNothing, fileStamp{}, fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	defer unix.Close(dir)
	return a.planForEntryInFolder(dir, entryIndex)
}

func (a *backupSetRestorer) planForEntryInFolder(folderFD, entryIndex int) (p entryRestorePlan, currentStamp fileStamp, err error) {
	e := &a.set.Entries[entryIndex]
	name := filepath.Base(e.rawOrUTF8Path())
	var st unix.Stat_t
	if err := unix.Fstatat(folderFD, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if isNotExist(err) {
			return restorePlanCreateEntry, fileStamp{}, nil
		}
		return restorePlanNothing, fileStamp{}, err
	}
	currentStamp = stampOf(&st)
	if a.isSameAsBackup(e, folderFD, name, &st) {
		if e.Kind == "file" && uint32(st.Mode)&0o7777 != e.Mode {
			return restorePlanSetPermissions, currentStamp, nil
		}
		return restorePlanNothing, currentStamp, nil
	}
	if left, ok := a.stampsAfterAction[entryIndex]; !(ok && (left.isSameState(currentStamp) || left.isSameIgnoringCTime(currentStamp) && a.isHardLinkedInSet(currentStamp))) && !a.replacesNewerFiles && a.partlyOverwrittenPath != e.rawOrUTF8Path() || e.Kind == "dir" || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return restorePlanUseOtherName, currentStamp, nil
	}
	if e.HasHardLinks && currentStamp.Ino == e.OriginalStamp.Ino && currentStamp.Dev == e.OriginalStamp.Dev {
		return restorePlanOverwriteInPlace, currentStamp, nil
	}
	return restorePlanReplaceFile, currentStamp, nil
}

// isHardLinkedInSet reports whether a file is one that the set keeps by a hard link. If so, the
// action only moved the file to its current path. The file's change time is not compared: each new
// hard link changes it, even if the content stays the same.
func (a *backupSetRestorer) isHardLinkedInSet(stamp fileStamp) bool {
	return slices.ContainsFunc(a.set.Entries, func(e BackupEntry) bool {
		return e.BackupMethod == "link" && e.StoredStamp.Ino == stamp.Ino && e.StoredStamp.Dev == stamp.Dev
	})
}

// isSameAsBackup reports whether the current file is the kept file.
func (a *backupSetRestorer) isSameAsBackup(e *BackupEntry, dir int, name string, st *unix.Stat_t) bool {
	now := stampOf(st)
	switch kind := st.Mode & unix.S_IFMT; e.Kind {
	case "dir":
		return kind == unix.S_IFDIR
	case "link":
		buf := make([]byte, len(e.SymlinkTargetOrFileText)+1)
		n, err := unix.Readlinkat(dir, name, buf)
		return kind == unix.S_IFLNK && err == nil && string(buf[:n]) == e.SymlinkTargetOrFileText
	case "text":
		f, _, err := openRegular(dir, name)
		if err != nil {
			return false
		}
		defer f.Close()
		buf := make([]byte, len(e.SymlinkTargetOrFileText)+1)
		n, _ := f.ReadAt(buf, 0)
		return string(buf[:n]) == e.SymlinkTargetOrFileText
	default:
		if kind != unix.S_IFREG || now.Size != e.Size {
			return false
		}
		if e.BackupMethod != "link" && now.isSameState(e.OriginalStamp) || e.BackupMethod == "link" && now.Ino == e.OriginalStamp.Ino && now.Dev == e.OriginalStamp.Dev && now.MTime == e.OriginalStamp.MTime {
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
		k, err := a.openBackedUpContent(e)
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

// openBackedUpContent opens the kept content of a file, and checks that it is unchanged.
func (a *backupSetRestorer) openBackedUpContent(e *BackupEntry) (*os.File, error) {
	f, st, err := openRegular(a.backupFolderFD, e.StoredName)
	if err != nil {
		return nil, fmt.Errorf("the stored copy cannot be opened: %w", err)
	}
	now := stampOf(st)
	ok := now.Size == e.Size
	switch e.BackupMethod {
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

// restoreEntry restores the entry with an index. outcome is a constant such as OutcomeRestored; otherPath is the
// path of a file restored under another name, else "".
func (a *backupSetRestorer) restoreEntry(entryIndex int) (outcome, otherPath string, err error) {
	e := &a.set.Entries[entryIndex]
	path := e.rawOrUTF8Path()
	dir, err := openOrCreateFolderForTraversal(filepath.Dir(path))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	defer unix.Close(dir)
	name := filepath.Base(path)
	p, found, err := a.planForEntryInFolder(dir, entryIndex)
	if err != nil {
		return "", "", err
	}
	switch p {
	case restorePlanNothing:
		return OutcomeSameAsBackup, "", nil
	case restorePlanCreateEntry:
		err := a.createEntry(dir, name, entryIndex)
		if err == nil {
			return OutcomeRestored, "", nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return "", "", err
		}
	case restorePlanSetPermissions:
		fd, _, err := openRegular(dir, name)
		if err == nil {
			err = unix.Fchmod(int(fd.Fd()), e.Mode)
			fd.Close()
		}
		return OutcomeRestored, "", err
	case restorePlanReplaceFile:
		err := a.replaceFile(dir, name, entryIndex, found)
		return OutcomeRestored, "", err
	case restorePlanOverwriteInPlace:
		return OutcomeRestored, "", a.overwriteFile(dir, name, e, found)
	}
	for n := 1; n < 100; n++ {
		other := name + "." + a.set.ID
		if n > 1 {
			other += "." + strconv.Itoa(n)
		}
		err := a.createEntry(dir, other, entryIndex)
		if err == nil {
			return OutcomeRestoredUnderOtherName, filepath.Join(filepath.Dir(path), other), nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return "", "", err
		}
		var st unix.Stat_t
		if unix.Fstatat(dir, other, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && a.isSameAsBackup(e, dir, other, &st) {
			return OutcomeRestoredUnderOtherName, filepath.Join(filepath.Dir(path), other), nil
		}
	}
	return "", "", errors.New("a newer file exists, and the names for a copy beside it are taken; remove old copies, or use --force")
}

// openOrCreateFolderForTraversal opens a folder, and creates the missing parts of its path.
func openOrCreateFolderForTraversal(path string) (int, error) {
	fd, err := openFolderForTraversal(path)
	if !errors.Is(err, unix.ENOENT) || path == "/" {
		return fd, err
	}
	above, err := openOrCreateFolderForTraversal(filepath.Dir(path))
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	if err := unix.Mkdirat(above, filepath.Base(path), 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return openFolderForTraversal(path)
}

// createEntry creates a file that must not exist.
func (a *backupSetRestorer) createEntry(dir int, name string, i int) error {
	e := &a.set.Entries[i]
	switch e.Kind {
	case "dir":
		return unix.Mkdirat(dir, name, e.Mode&0o777|0o700)
	case "link":
		return unix.Symlinkat(e.SymlinkTargetOrFileText, dir, name)
	}
	return a.stageEntryFile(dir, i, func(from int, staged string) error { return unix.Linkat(from, staged, dir, name, 0) })
}

// replaceFile replaces the file that was found at a name by the kept file of an entry. It fails if
// the found file has changed.
func (a *backupSetRestorer) replaceFile(dir int, name string, i int, found fileStamp) error {
	e := &a.set.Entries[i]
	move := func(from int, staged string) error {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || stampOf(&st) != found {
			return errors.New("the file changed during the restore; run the command again")
		}
		return unix.Renameat(from, staged, dir, name)
	}
	if e.Kind != "link" {
		return a.stageEntryFile(dir, i, move)
	}
	staged := a.temporaryEntryName(i)
	_ = unix.Unlinkat(dir, staged, 0)
	if err := unix.Symlinkat(e.SymlinkTargetOrFileText, dir, staged); err != nil {
		return err
	}
	defer unix.Unlinkat(dir, staged, 0)
	testCrashPoint()
	return move(dir, staged)
}

// temporaryEntryName returns the temporary name of an entry.
func (a *backupSetRestorer) temporaryEntryName(entryIndex int) string {
	return ".shield-undo-" + a.set.ID + "-" + strconv.Itoa(entryIndex)
}

// stageEntryFile creates the kept file of an entry under a temporary name, in the store or, if the
// target folder is on another file system, in the target folder. It then calls moveIntoPlace, which
// moves the file to its final name.
func (a *backupSetRestorer) stageEntryFile(targetFolderFD, entryIndex int, moveIntoPlace func(from int, staged string) error) error {
	e := &a.set.Entries[entryIndex]
	staged := a.temporaryEntryName(entryIndex)
	if e.BackupMethod == "link" {
		f, err := a.openBackedUpContent(e)
		if err != nil {
			return err
		}
		f.Close()
		_ = unix.Unlinkat(a.backupFolderFD, staged, 0)
		if err := unix.Linkat(a.backupFolderFD, e.StoredName, a.backupFolderFD, staged, 0); err != nil {
			return err
		}
		defer unix.Unlinkat(a.backupFolderFD, staged, 0)
		testCrashPoint()
		return moveIntoPlace(a.backupFolderFD, staged)
	}
	var err error
	for _, at := range [...]int{a.backupFolderFD, targetFolderFD} {
		_ = unix.Unlinkat(at, staged, 0)
		if err = a.writeContent(at, staged, e); err == nil {
			testCrashPoint()
			err = moveIntoPlace(at, staged)
		}
		_ = unix.Unlinkat(at, staged, 0) // the file is gone if it was renamed
		if !errors.Is(err, unix.EXDEV) {
			break
		}
	}
	return err
}

// writeContent creates a file with the content of an entry.
func (a *backupSetRestorer) writeContent(dir int, name string, e *BackupEntry) error {
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
		_, err := to.WriteString(e.SymlinkTargetOrFileText)
		return err
	}
	from, err := a.openBackedUpContent(e)
	if err != nil {
		return err
	}
	defer from.Close()
	if reflinkFile(to, from) != nil {
		if _, err := copyFile(to, from, returnNilToKeepReading); err != nil {
			return err
		}
	}
	testCrashPoint()
	return setModeAndTime(fd, e)
}

// setModeAndTime sets the mode and time of an open file to those of an entry.
func setModeAndTime(fd int, e *BackupEntry) error {
	if err := unix.Fchmod(fd, e.Mode); err != nil {
		return err
	}
	at := unix.NsecToTimeval(e.OriginalStamp.MTime)
	return unix.Futimes(fd, []unix.Timeval{at, at})
}

// overwriteFile writes the content of an entry into a file that has other hard links. It records the path
// first, since a process killed meanwhile leaves a partly written file.
func (a *backupSetRestorer) overwriteFile(dir int, name string, e *BackupEntry, found fileStamp) error {
	from, err := a.openBackedUpContent(e)
	if err != nil {
		return err
	}
	defer from.Close()
	note := filepath.Join(a.store.options.Dir, a.set.ID, overwriteInProgressFileName)
	if err := os.WriteFile(note, []byte(e.rawOrUTF8Path()), 0o600); err != nil {
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
	if _, err := copyFile(to, from, returnNilToKeepReading); err != nil {
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
func (a *backupSetRestorer) restoreFolderModes(entries []int) {
	for _, i := range slices.Backward(entries) {
		e := &a.set.Entries[i]
		if e.Kind != "dir" {
			continue
		}
		fd, err := openFolderForReading(e.rawOrUTF8Path())
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

// openFolderForReading opens a folder for reading, unlike openFolderForTraversal, which opens it only as a path.
func openFolderForReading(path string) (int, error) {
	fd, err := openFolderForTraversal(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// RecordFilesAfterAction records the state of the set's files after the action, so that
// RestoreBackupSet can distinguish this state from newer content. It drops files from the set that
// the action did not delete or change. It returns the set; nil if no file is left in it or nothing
// was kept.
func (s *Store) RecordFilesAfterAction(ctx context.Context, sessionID, actionHash string) (*BackupSet, error) {
	mark := s.unfinishedActionFilePath(sessionID, actionHash)
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
	dir := filepath.Join(s.options.Dir, set.ID)
	left := map[int]fileStamp{}
	var freed int64
	remain := 0
	for i := range set.Entries {
		e := &set.Entries[i]
		var st unix.Stat_t
		fd, err := openFolderForTraversal(filepath.Dir(e.rawOrUTF8Path()))
		if err == nil {
			err = unix.Fstatat(fd, filepath.Base(e.rawOrUTF8Path()), &st, unix.AT_SYMLINK_NOFOLLOW)
			unix.Close(fd)
		}
		now := stampOf(&st)
		switch {
		case err != nil:
			remain++
		case e.Kind == "dir":
		case e.Kind == "file" && now.Ino == e.OriginalStamp.Ino && now.Dev == e.OriginalStamp.Dev && (e.BackupMethod == "link" || uint32(st.Mode)&0o7777 == e.Mode && now.isSameState(e.OriginalStamp)):
			e.IsDiscardedAsUnchanged = true
			freed += e.Size
			_ = os.Remove(filepath.Join(dir, e.StoredName))
		case e.Kind == "link" && now.isSameState(e.OriginalStamp):
			e.IsDiscardedAsUnchanged = true
		default:
			left[i] = now
			remain++
		}
	}
	if err := writeJSONFileAtomically(dir, stampsAfterActionFileName, left); err != nil {
		return nil, err
	}
	if err := writeJSONFileAtomically(dir, backupSetEntriesFileName, set.Entries); err != nil {
		return nil, err
	}
	set.BackedUpContentBytes -= freed
	head := *set
	head.Entries, head.LastRestoredAtRFC3339 = nil, ""
	if err := writeJSONFileAtomically(dir, backupSetHeadFileName, head); err != nil {
		return nil, err
	}
	err = s.withLockedTotals(ctx, func(c *storeTotals) error {
		c.UsedBytes -= freed
		if remain == 0 { // the action changed none of the backed-up files: delete the set
			c.UsedBytes -= set.usedStoreBytes()
			_ = os.Rename(dir, dir+deletedSetFolderSuffix)
		}
		return nil
	})
	if remain == 0 {
		_ = os.RemoveAll(dir + deletedSetFolderSuffix)
		return nil, err
	}
	return set, err
}

//go:build unix

package undo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Limits of one walk over the files, in addition to the limits of a set.
const (
	maxFolderDepth         = 256     // nested folders
	maxScannedFileNames    = 100_000 // names that are matched against a pattern
	maxSecretScanFileBytes = 16 << 10
	maxSecretScans         = 256 // files whose start is searched for a credential
)

// A backupSetBuilder makes one set.
type backupSetBuilder struct {
	store                *Store
	ctx                  context.Context
	set                  *BackupSet
	backupFolderFD       int // descriptor of the set's folder
	startedAt            time.Time
	remainingStoreBytes  int64
	copiedBytes          int64
	scannedFileNameCount int
	secretScans          int
	entryIndexes         map[string]int // index of the entry in the set, by path
	openFolderPath       string         // the folder that openFolderFD refers to
	openFolderFD         int
}

// BackUpFiles stores the files that an action is about to delete or change, and returns the set;
// nil if there are none. On an error nothing is stored; it is a [BackupError] if the files or the
// limits are the reason. The action must not run before BackUpFiles returns.
func (s *Store) BackUpFiles(ctx context.Context, actionInfo UndoableAction, losses []FileLoss) (set *BackupSet, err error) {
	if len(losses) == 0 {
		return nil, nil
	}
	start := s.options.Clock()
	id, room, err := s.createSetFolder(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.options.Dir, id)
	defer func() {
		if set == nil {
			_ = os.RemoveAll(dir)
		}
	}()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	k := &backupSetBuilder{store: s, ctx: ctx, set: &BackupSet{ID: id, At: start.UTC(), UndoableAction: actionInfo}, backupFolderFD: fd, startedAt: start, remainingStoreBytes: room, entryIndexes: map[string]int{}, openFolderFD: -1}
	defer k.closeFolder()
	for i := range losses {
		if err := k.backUpFilesOfLoss(&losses[i]); err != nil {
			return nil, err
		}
	}
	if len(k.set.Entries) == 0 {
		return nil, nil
	}
	l := &s.options.Limits
	k.set.EntryCount = len(k.set.Entries)
	k.set.MustMentionInVerdict = k.set.EntryCount > l.VerdictMentionThresholdEntries || k.copiedBytes > l.VerdictMentionThresholdCopiedBytes || s.options.Clock().Sub(start) > l.VerdictMentionThresholdBackupTime
	testCrashPoint()
	if err := s.commit(ctx, k.set); err != nil {
		return nil, err
	}
	return k.set, nil
}

//go:noinline
func (k *backupSetBuilder) newBackupError(path, why string, args ...any) error {
	return &BackupError{path, fmt.Sprintf(why, args...)}
}

// backUpFilesOfLoss keeps the files of one loss.
func (k *backupSetBuilder) backUpFilesOfLoss(l *FileLoss) error {
	if !filepath.IsAbs(l.Path) {
		return k.newBackupError(l.Path, "the path is not absolute; use an absolute path")
	}
	path := filepath.Clean(l.Path)
	switch {
	case l.Text != "":
		k.addEntry(path, BackupEntry{Kind: "text", SymlinkTargetOrFileText: l.Text})
		return nil
	case l.Under:
		fd, err := openFolderForTraversal(path)
		if isNotExist(err) {
			return nil
		}
		if err != nil {
			return k.newBackupError(path, "%v", err)
		}
		return k.backUpMatchingFiles(fd, path, l, 0)
	}
	if err := k.enterFolder(filepath.Dir(path)); err != nil {
		if isNotExist(err) {
			return nil
		}
		return k.newBackupError(path, "%v", err)
	}
	dir, name := k.openFolderFD, filepath.Base(path)
	if l.Store {
		return k.backUpSQLiteDatabase(dir, name, path)
	}
	return k.backUpNameInFolder(dir, name, path, l, 0)
}

// enterFolder opens a folder and stores it in k.openFolderFD, unless it is open already.
func (k *backupSetBuilder) enterFolder(folder string) error {
	if k.openFolderFD >= 0 && k.openFolderPath == folder {
		return nil
	}
	k.closeFolder()
	fd, err := openFolderForTraversal(folder)
	if err != nil {
		return err
	}
	k.openFolderPath, k.openFolderFD = folder, fd
	return nil
}

func (k *backupSetBuilder) closeFolder() {
	if k.openFolderFD >= 0 {
		unix.Close(k.openFolderFD)
	}
	k.openFolderFD = -1
}

// openFolderForTraversal opens a folder without following a symbolic link.
func openFolderForTraversal(path string) (int, error) {
	fd, err := unix.Open("/", folderTraversalOpenFlags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for rest := strings.TrimPrefix(path, "/"); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, folderTraversalOpenFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOTDIR) { // ENOTDIR means a regular file or a symbolic link; tell them apart
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
				err = unix.ELOOP
			}
		}
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// isNotExist reports whether an error of openFolderForTraversal means that the folder does not exist.
func isNotExist(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// backUpMatchingFiles backs up the names that l.IsLostPath accepts in the open folder folderFD and, with l.Deep,
// in the folders below. depth is the nesting below l.Path. It closes folderFD.
func (k *backupSetBuilder) backUpMatchingFiles(folderFD int, path string, l *FileLoss, depth int) error {
	defer unix.Close(folderFD)
	names, err := k.readNames(folderFD, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if k.scannedFileNameCount++; k.scannedFileNameCount > maxScannedFileNames {
			return k.newBackupError(path, "the search for matching files would read more than %d names; delete fewer files at once", maxScannedFileNames)
		}
		if err := k.checkTimeLimit(); err != nil {
			return err
		}
		child := filepath.Join(path, name)
		if l.IsLostPath(child) {
			if err := k.backUpNameInFolder(folderFD, name, child, l, 0); err != nil {
				return err
			}
		}
		if !l.Deep || k.store.isBuildOutput(child) || l.MustSkipFolder != nil && l.MustSkipFolder(child) {
			continue
		}
		if depth >= maxFolderDepth {
			return k.newBackupError(child, "the folders are nested more than %d deep; delete inner folders first", maxFolderDepth)
		}
		next, err := unix.Openat(folderFD, name, folderTraversalOpenFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			err = k.backUpMatchingFiles(next, child, l, depth+1)
		} else if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || isNotExist(err) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readNames returns the names in a folder.
func (k *backupSetBuilder) readNames(fd int, path string) ([]string, error) {
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, k.newBackupError(path, "%v", err)
	}
	f := os.NewFile(uintptr(own), path)
	defer f.Close()
	names, err := f.Readdirnames(maxScannedFileNames + 1)
	if len(names) > maxScannedFileNames {
		return nil, k.newBackupError(path, "the folder has more than %d files; delete fewer files at once", maxScannedFileNames)
	}
	if err != nil && len(names) == 0 && !errors.Is(err, os.ErrNotExist) && err.Error() != "EOF" {
		return nil, k.newBackupError(path, "%v", err)
	}
	return names, nil
}

func (k *backupSetBuilder) checkTimeLimit() error {
	if k.scannedFileNameCount%64 != 0 && len(k.set.Entries)%64 != 0 {
		return nil
	}
	if err := k.ctx.Err(); err != nil {
		return err
	}
	if k.store.options.Clock().Sub(k.startedAt) > k.store.options.Limits.MaxBackupTimePerSet {
		return k.newBackupError("", "copying the files takes longer than %v; delete fewer files at once", k.store.options.Limits.MaxBackupTimePerSet)
	}
	return nil
}

func (s *Store) isBuildOutput(path string) bool {
	return s.options.IsBuildOutput != nil && s.options.IsBuildOutput(path)
}

// addEntry sets the path of an entry and adds the entry to the backup set and to entryIndexes.
func (k *backupSetBuilder) addEntry(path string, e BackupEntry) {
	e.Path = path
	if !utf8.ValidString(path) {
		e.RawPath = []byte(path)
	}
	k.entryIndexes[path] = len(k.set.Entries)
	k.set.Entries = append(k.set.Entries, e)
}

// backUpNameInFolder backs up the file, folder or symbolic link called name in the open folder folderFD. A name
// that does not exist is skipped; depth is the nesting below the lost folder.
func (k *backupSetBuilder) backUpNameInFolder(folderFD int, name, path string, l *FileLoss, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(folderFD, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if isNotExist(err) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		return k.newBackupError(path, "%v", err)
	}
	if i, ok := k.entryIndexes[path]; ok {
		if e := &k.set.Entries[i]; l.Write && e.BackupMethod == "link" {
			k.remainingStoreBytes += e.Size
			k.set.BackedUpContentBytes -= e.Size
			if err := unix.Unlinkat(k.backupFolderFD, e.StoredName, 0); err != nil {
				return k.newBackupError(path, "%v", err)
			}
			return k.backUpByCopy(folderFD, name, path, e)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || !l.Tree {
			return nil
		}
	} else if len(k.set.Entries) >= k.store.options.Limits.MaxEntriesPerSet {
		return k.newBackupError("", "more than %d files and folders would be copied; delete fewer files at once", k.store.options.Limits.MaxEntriesPerSet)
	}
	if err := k.checkTimeLimit(); err != nil {
		return err
	}
	e := BackupEntry{Mode: uint32(st.Mode) & 0o7777, OriginalStamp: stampOf(&st)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return k.backUpFolder(folderFD, name, path, l, depth, e)
	case unix.S_IFLNK:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(folderFD, name, buf)
		if err != nil || n == len(buf) {
			return k.newBackupError(path, "the target of the symbolic link cannot be read; check its permissions")
		}
		e.Kind, e.SymlinkTargetOrFileText = "link", string(buf[:n])
		if !utf8.ValidString(e.SymlinkTargetOrFileText) {
			return k.newBackupError(path, "the target of the symbolic link is not UTF-8")
		}
		k.addEntry(path, e)
	case unix.S_IFREG:
		if s := k.store.options.IsSecret; s != nil && s(path, nil) {
			return k.newBackupError(path, "credential files are not copied")
		}
		e.Kind, e.Size, e.HasHardLinks = "file", st.Size, st.Nlink > 1
		k.addEntry(path, e)
		return k.backUpFile(folderFD, name, path, l.Write || e.HasHardLinks, &k.set.Entries[len(k.set.Entries)-1])
	default:
		k.set.NotBackedUpPaths = append(k.set.NotBackedUpPaths, path)
	}
	return nil
}

// backUpFolder keeps a folder and, if the loss is of a tree, everything below it except build output.
func (k *backupSetBuilder) backUpFolder(dir int, name, path string, l *FileLoss, level int, e BackupEntry) error {
	e.Kind = "dir"
	if _, ok := k.entryIndexes[path]; !ok {
		k.addEntry(path, e)
	}
	if !l.Tree {
		return nil
	}
	if level >= maxFolderDepth {
		return k.newBackupError(path, "the folders are nested more than %d deep; delete inner folders first", maxFolderDepth)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return k.newBackupError(path, "%v", err)
	}
	defer unix.Close(fd)
	names, err := k.readNames(fd, path)
	if err != nil {
		return err
	}
	for _, n := range names {
		child := filepath.Join(path, n)
		if k.store.isBuildOutput(child) {
			k.set.NotBackedUpPaths = append(k.set.NotBackedUpPaths, child)
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, n, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && uint64(st.Dev) != e.OriginalStamp.Dev {
			return k.newBackupError(child, "the file is on another file system")
		}
		if err := k.backUpNameInFolder(fd, n, child, l, level+1); err != nil {
			return err
		}
	}
	return nil
}

// backUpFile keeps the content of a file.
func (k *backupSetBuilder) backUpFile(dir int, name, path string, copied bool, e *BackupEntry) error {
	if e.Size > k.remainingStoreBytes {
		return k.newBackupError(path, "the undo store is full; run 'shield undo prune'")
	}
	if s := k.store.options.IsSecret; s != nil && k.secretScans < maxSecretScans && e.Size > 0 && e.Size <= maxSecretScanFileBytes {
		k.secretScans++
		start, err := readFirstBytes(dir, name)
		if err == nil && s(path, start) {
			return k.newBackupError(path, "the file contains a credential, and credentials are not copied")
		}
	}
	e.StoredName = strconv.Itoa(len(k.set.Entries) - 1)
	if copied {
		return k.backUpByCopy(dir, name, path, e)
	}
	err := unix.Linkat(dir, name, k.backupFolderFD, e.StoredName, 0)
	testCrashPoint()
	switch {
	case err == nil:
		var st unix.Stat_t
		if err := unix.Fstatat(k.backupFolderFD, e.StoredName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || stampOf(&st).Ino != e.OriginalStamp.Ino {
			return k.newBackupError(path, "the file changed while it was copied; try again")
		}
		e.BackupMethod, e.StoredStamp = "link", stampOf(&st)
		k.remainingStoreBytes -= e.Size
		k.set.BackedUpContentBytes += e.Size
		return nil
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMLINK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
		return k.backUpByCopy(dir, name, path, e)
	}
	return k.newBackupError(path, "%v", err)
}

// backUpByCopy keeps the content of a file as a separate copy.
func (k *backupSetBuilder) backUpByCopy(dir int, name, path string, e *BackupEntry) error {
	from, st, err := openRegular(dir, name)
	if err != nil {
		return k.newBackupError(path, "%v", err)
	}
	defer from.Close()
	if stampOf(st).Ino != e.OriginalStamp.Ino {
		return k.newBackupError(path, "the file changed while it was copied; try again")
	}
	e.Size, e.OriginalStamp = st.Size, stampOf(st)
	fd, err := unix.Openat(k.backupFolderFD, e.StoredName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return k.newBackupError(path, "%v", err)
	}
	to := os.NewFile(uintptr(fd), e.StoredName)
	defer to.Close()
	testCrashPoint()
	e.BackupMethod, e.Hash = "copy", ""
	if reflinkFile(to, from) == nil {
		e.BackupMethod = "clone"
	} else {
		full := int64(st.Blocks) * 512
		if k.copiedBytes += min(full, st.Size); k.copiedBytes > k.store.options.Limits.MaxCopiedBytesPerSet {
			return k.newBackupError(path, "more than %d MB would be copied; delete fewer files at once", k.store.options.Limits.MaxCopiedBytesPerSet>>20)
		}
		deadline := k.startedAt.Add(k.store.options.Limits.MaxBackupTimePerSet)
		e.Hash, err = copyFile(to, from, func() error {
			if k.store.options.Clock().After(deadline) {
				return fmt.Errorf("copying the files takes longer than %v; delete fewer files at once", k.store.options.Limits.MaxBackupTimePerSet)
			}
			return k.ctx.Err()
		})
		if err != nil {
			return k.newBackupError(path, "%v", err)
		}
	}
	testCrashPoint()
	var now, kept unix.Stat_t
	if unix.Fstat(int(from.Fd()), &now) != nil || stampOf(&now).Size != e.OriginalStamp.Size || stampOf(&now).MTime != e.OriginalStamp.MTime {
		return k.newBackupError(path, "the file changed while it was copied; try again")
	}
	if err := unix.Fstat(fd, &kept); err != nil || kept.Size != st.Size {
		return k.newBackupError(path, "the file changed while it was copied; try again")
	}
	e.StoredStamp = stampOf(&kept)
	k.remainingStoreBytes -= e.Size
	k.set.BackedUpContentBytes += e.Size
	return nil
}

// backUpSQLiteDatabase keeps an SQLite database with its log files, unless a process has it open.
func (k *backupSetBuilder) backUpSQLiteDatabase(dir int, name, path string) error {
	for i, suffix := range [...]string{"", "-wal", "-journal", "-shm"} {
		from, st, err := openRegular(dir, name+suffix)
		if isNotExist(err) {
			continue
		}
		if err != nil {
			return k.newBackupError(path+suffix, "%v", err)
		}
		inUse := isOpenInOtherProcess(from, st)
		from.Close()
		if inUse {
			return k.newBackupError(path, "a program has the SQLite database open; close it first")
		}
		if i == 3 {
			continue // SQLite recreates this file from the log
		}
		if err := k.backUpNameInFolder(dir, name+suffix, path+suffix, &FileLoss{Write: true}, 0); err != nil {
			return err
		}
	}
	return nil
}

// openRegular opens a regular file in a folder for reading.
func openRegular(dir int, name string) (*os.File, *unix.Stat_t, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, nil, errors.New("the path is not a regular file")
	}
	return os.NewFile(uintptr(fd), name), &st, nil
}

func readFirstBytes(dir int, name string) ([]byte, error) {
	f, _, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, maxSecretScanFileBytes)
	n, err := f.Read(buf)
	return buf[:max(n, 0)], err
}

func stampOf(st *unix.Stat_t) fileStamp {
	return fileStamp{uint64(st.Dev), uint64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

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
	maxFolderDepth  = 256     // nested folders
	maxScannedNames = 100_000 // names that are matched against a pattern
	secretScanBytes = 16 << 10
	maxSecretScans  = 256 // files whose start is searched for a credential
)

// A setBuilder makes one set.
type setBuilder struct {
	s              *Store
	ctx            context.Context
	set            *Set
	fd             int // descriptor of the set's folder
	startedAt      time.Time
	remainingBytes int64
	copiedBytes    int64
	scannedNames   int
	secretScans    int
	entryIndexes   map[string]int // index of the entry in the set, by path
	folder         string         // the folder that dir refers to
	folderFD       int
}

// Keep stores the files that an action is about to delete or change, and returns the set; nil if there
// are none. On an error nothing is stored; it is an [KeepError] if the files or the limits are the
// reason. The action must not run before Keep returns.
func (s *Store) Keep(ctx context.Context, about ActionInfo, losses []FileLoss) (set *Set, err error) {
	if len(losses) == 0 {
		return nil, nil
	}
	start := s.o.Clock()
	id, room, err := s.reserve(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.o.Dir, id)
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
	k := &setBuilder{s: s, ctx: ctx, set: &Set{ID: id, At: start.UTC(), ActionInfo: about}, fd: fd, startedAt: start, remainingBytes: room, entryIndexes: map[string]int{}, folderFD: -1}
	defer k.closeFolder()
	for i := range losses {
		if err := k.keepLoss(&losses[i]); err != nil {
			return nil, err
		}
	}
	if len(k.set.Entries) == 0 {
		return nil, nil
	}
	l := &s.o.Limits
	k.set.Names = len(k.set.Entries)
	k.set.MentionInAnswer = k.set.Names > l.NotifyAboveNames || k.copiedBytes > l.NotifyAboveBytes || s.o.Clock().Sub(start) > l.NotifyAboveTime
	testCrashPoint()
	if err := s.commit(ctx, k.set); err != nil {
		return nil, err
	}
	return k.set, nil
}

//go:noinline
func (k *setBuilder) keepError(path, why string, args ...any) error {
	return &KeepError{path, fmt.Sprintf(why, args...)}
}

// keepLoss keeps the files of one loss.
func (k *setBuilder) keepLoss(l *FileLoss) error {
	if !filepath.IsAbs(l.Path) {
		return k.keepError(l.Path, "the path is not absolute")
	}
	path := filepath.Clean(l.Path)
	switch {
	case l.Text != "":
		k.addEntry(path, Entry{Kind: "text", Target: l.Text})
		return nil
	case l.Under:
		fd, err := openFolder(path)
		if isNotExist(err) {
			return nil
		}
		if err != nil {
			return k.keepError(path, "%v", err)
		}
		return k.keepMatching(fd, path, l, 0)
	}
	if err := k.enterFolder(filepath.Dir(path)); err != nil {
		if isNotExist(err) {
			return nil
		}
		return k.keepError(path, "%v", err)
	}
	dir, name := k.folderFD, filepath.Base(path)
	if l.Store {
		return k.keepDatabase(dir, name, path)
	}
	return k.keepName(dir, name, path, l, 0)
}

// enterFolder opens a folder and stores it in k.dir, unless it is open already.
func (k *setBuilder) enterFolder(folder string) error {
	if k.folderFD >= 0 && k.folder == folder {
		return nil
	}
	k.closeFolder()
	fd, err := openFolder(folder)
	if err != nil {
		return err
	}
	k.folder, k.folderFD = folder, fd
	return nil
}

func (k *setBuilder) closeFolder() {
	if k.folderFD >= 0 {
		unix.Close(k.folderFD)
	}
	k.folderFD = -1
}

// openFolder opens a folder without following a symbolic link.
func openFolder(path string) (int, error) {
	fd, err := unix.Open("/", pathFlags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for rest := strings.TrimPrefix(path, "/"); rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, pathFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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

// isNotExist reports whether an error of openFolder means that the folder does not exist.
func isNotExist(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// keepMatching keeps the matching names in a folder, and closes its descriptor.
func (k *setBuilder) keepMatching(fd int, path string, l *FileLoss, level int) error {
	defer unix.Close(fd)
	names, err := k.readNames(fd, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if k.scannedNames++; k.scannedNames > maxScannedNames {
			return k.keepError(path, "the search for matching files would read more than %d names; delete fewer files at once", maxScannedNames)
		}
		if err := k.checkTime(); err != nil {
			return err
		}
		child := filepath.Join(path, name)
		if l.Match(child) {
			if err := k.keepName(fd, name, child, l, 0); err != nil {
				return err
			}
		}
		if !l.Deep || k.s.isBuildOutput(child) || l.Skip != nil && l.Skip(child) {
			continue
		}
		if level >= maxFolderDepth {
			return k.keepError(child, "the folders are nested more than %d deep", maxFolderDepth)
		}
		next, err := unix.Openat(fd, name, pathFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			err = k.keepMatching(next, child, l, level+1)
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
func (k *setBuilder) readNames(fd int, path string) ([]string, error) {
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, k.keepError(path, "%v", err)
	}
	f := os.NewFile(uintptr(own), path)
	defer f.Close()
	names, err := f.Readdirnames(maxScannedNames + 1)
	if len(names) > maxScannedNames {
		return nil, k.keepError(path, "the folder has more than %d files; delete fewer files at once", maxScannedNames)
	}
	if err != nil && len(names) == 0 && !errors.Is(err, os.ErrNotExist) && err.Error() != "EOF" {
		return nil, k.keepError(path, "%v", err)
	}
	return names, nil
}

func (k *setBuilder) checkTime() error {
	if k.scannedNames%64 != 0 && len(k.set.Entries)%64 != 0 {
		return nil
	}
	if err := k.ctx.Err(); err != nil {
		return err
	}
	if k.s.o.Clock().Sub(k.startedAt) > k.s.o.Limits.MaxTime {
		return k.keepError("", "copying the files takes longer than %v; delete fewer files at once", k.s.o.Limits.MaxTime)
	}
	return nil
}

func (s *Store) isBuildOutput(path string) bool {
	return s.o.IsBuildOutput != nil && s.o.IsBuildOutput(path)
}

// addEntry adds an entry.
func (k *setBuilder) addEntry(path string, e Entry) {
	e.Path = path
	if !utf8.ValidString(path) {
		e.Raw = []byte(path)
	}
	k.entryIndexes[path] = len(k.set.Entries)
	k.set.Entries = append(k.set.Entries, e)
}

// keepName keeps one name in an open folder.
func (k *setBuilder) keepName(dir int, name, path string, l *FileLoss, level int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if isNotExist(err) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		return k.keepError(path, "%v", err)
	}
	if i, ok := k.entryIndexes[path]; ok {
		if e := &k.set.Entries[i]; l.Write && e.KeptBy == "link" {
			k.remainingBytes += e.Size
			k.set.Bytes -= e.Size
			if err := unix.Unlinkat(k.fd, e.StoredName, 0); err != nil {
				return k.keepError(path, "%v", err)
			}
			return k.keepCopy(dir, name, path, e)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || !l.Tree {
			return nil
		}
	} else if len(k.set.Entries) >= k.s.o.Limits.MaxNames {
		return k.keepError("", "more than %d files and folders would be copied", k.s.o.Limits.MaxNames)
	}
	if err := k.checkTime(); err != nil {
		return err
	}
	e := Entry{Mode: uint32(st.Mode) & 0o7777, OriginalStamp: stampOf(&st)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return k.keepFolder(dir, name, path, l, level, e)
	case unix.S_IFLNK:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil || n == len(buf) {
			return k.keepError(path, "the target of the symbolic link cannot be read")
		}
		e.Kind, e.Target = "link", string(buf[:n])
		if !utf8.ValidString(e.Target) {
			return k.keepError(path, "the target of the symbolic link is not UTF-8")
		}
		k.addEntry(path, e)
	case unix.S_IFREG:
		if s := k.s.o.IsSecret; s != nil && s(path, nil) {
			return k.keepError(path, "credential files are not copied")
		}
		e.Kind, e.Size, e.HasHardLinks = "file", st.Size, st.Nlink > 1
		k.addEntry(path, e)
		return k.keepFile(dir, name, path, l.Write || e.HasHardLinks, &k.set.Entries[len(k.set.Entries)-1])
	default:
		k.set.LeftOut = append(k.set.LeftOut, path)
	}
	return nil
}

// keepFolder keeps a folder and, if the loss is of a tree, everything below it except build output.
func (k *setBuilder) keepFolder(dir int, name, path string, l *FileLoss, level int, e Entry) error {
	e.Kind = "dir"
	if _, ok := k.entryIndexes[path]; !ok {
		k.addEntry(path, e)
	}
	if !l.Tree {
		return nil
	}
	if level >= maxFolderDepth {
		return k.keepError(path, "the folders are nested more than %d deep", maxFolderDepth)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return k.keepError(path, "%v", err)
	}
	defer unix.Close(fd)
	names, err := k.readNames(fd, path)
	if err != nil {
		return err
	}
	for _, n := range names {
		child := filepath.Join(path, n)
		if k.s.isBuildOutput(child) {
			k.set.LeftOut = append(k.set.LeftOut, child)
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, n, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && uint64(st.Dev) != e.OriginalStamp.Dev {
			return k.keepError(child, "the file is on another file system")
		}
		if err := k.keepName(fd, n, child, l, level+1); err != nil {
			return err
		}
	}
	return nil
}

// keepFile keeps the content of a file.
func (k *setBuilder) keepFile(dir int, name, path string, copied bool, e *Entry) error {
	if e.Size > k.remainingBytes {
		return k.keepError(path, "the undo store is full; run 'shield undo prune'")
	}
	if s := k.s.o.IsSecret; s != nil && k.secretScans < maxSecretScans && e.Size > 0 && e.Size <= secretScanBytes {
		k.secretScans++
		start, err := readFirstBytes(dir, name)
		if err == nil && s(path, start) {
			return k.keepError(path, "the file contains a credential, and credentials are not copied")
		}
	}
	e.StoredName = strconv.Itoa(len(k.set.Entries) - 1)
	if copied {
		return k.keepCopy(dir, name, path, e)
	}
	err := unix.Linkat(dir, name, k.fd, e.StoredName, 0)
	testCrashPoint()
	switch {
	case err == nil:
		var st unix.Stat_t
		if err := unix.Fstatat(k.fd, e.StoredName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || stampOf(&st).Ino != e.OriginalStamp.Ino {
			return k.keepError(path, "the file changed while it was copied")
		}
		e.KeptBy, e.StoredStamp = "link", stampOf(&st)
		k.remainingBytes -= e.Size
		k.set.Bytes += e.Size
		return nil
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMLINK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
		return k.keepCopy(dir, name, path, e)
	}
	return k.keepError(path, "%v", err)
}

// keepCopy keeps the content of a file as a separate copy.
func (k *setBuilder) keepCopy(dir int, name, path string, e *Entry) error {
	from, st, err := openRegular(dir, name)
	if err != nil {
		return k.keepError(path, "%v", err)
	}
	defer from.Close()
	if stampOf(st).Ino != e.OriginalStamp.Ino {
		return k.keepError(path, "the file changed while it was copied")
	}
	e.Size, e.OriginalStamp = st.Size, stampOf(st)
	fd, err := unix.Openat(k.fd, e.StoredName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return k.keepError(path, "%v", err)
	}
	to := os.NewFile(uintptr(fd), e.StoredName)
	defer to.Close()
	testCrashPoint()
	e.KeptBy, e.Hash = "copy", ""
	if clone(to, from) == nil {
		e.KeptBy = "clone"
	} else {
		full := int64(st.Blocks) * 512
		if k.copiedBytes += min(full, st.Size); k.copiedBytes > k.s.o.Limits.MaxBytes {
			return k.keepError(path, "more than %d MB would be copied", k.s.o.Limits.MaxBytes>>20)
		}
		deadline := k.startedAt.Add(k.s.o.Limits.MaxTime)
		e.Hash, err = copyFile(to, from, func() error {
			if k.s.o.Clock().After(deadline) {
				return fmt.Errorf("copying the file takes longer than %v", k.s.o.Limits.MaxTime)
			}
			return k.ctx.Err()
		})
		if err != nil {
			return k.keepError(path, "%v", err)
		}
	}
	testCrashPoint()
	var now, kept unix.Stat_t
	if unix.Fstat(int(from.Fd()), &now) != nil || stampOf(&now).Size != e.OriginalStamp.Size || stampOf(&now).MTime != e.OriginalStamp.MTime {
		return k.keepError(path, "the file changed while it was copied")
	}
	if err := unix.Fstat(fd, &kept); err != nil || kept.Size != st.Size {
		return k.keepError(path, "the file changed while it was copied")
	}
	e.StoredStamp = stampOf(&kept)
	k.remainingBytes -= e.Size
	k.set.Bytes += e.Size
	return nil
}

// keepDatabase keeps an SQLite database with its log files, unless a process has it open.
func (k *setBuilder) keepDatabase(dir int, name, path string) error {
	for i, suffix := range [...]string{"", "-wal", "-journal", "-shm"} {
		from, st, err := openRegular(dir, name+suffix)
		if isNotExist(err) {
			continue
		}
		if err != nil {
			return k.keepError(path+suffix, "%v", err)
		}
		inUse := isOpen(from, st)
		from.Close()
		if inUse {
			return k.keepError(path, "a program has the SQLite database open; close it first")
		}
		if i == 3 {
			continue // SQLite recreates this file from the log
		}
		if err := k.keepName(dir, name+suffix, path+suffix, &FileLoss{Write: true}, 0); err != nil {
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
	buf := make([]byte, secretScanBytes)
	n, err := f.Read(buf)
	return buf[:max(n, 0)], err
}

func stampOf(st *unix.Stat_t) fileStamp {
	return fileStamp{uint64(st.Dev), uint64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

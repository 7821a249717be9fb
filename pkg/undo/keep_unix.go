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
	maxLevels = 256     // nested folders
	maxSeen   = 100_000 // names that are matched against a pattern
	startSize = 16 << 10
	maxStarts = 256 // files whose start is searched for a credential
)

// A keeper makes one set.
type keeper struct {
	s      *Store
	ctx    context.Context
	set    *Set
	fd     int // descriptor of the set's folder
	start  time.Time
	room   int64
	copied int64
	looked int
	starts int
	at     map[string]int // index of the entry in the set, by path
	folder string         // the folder that dir refers to
	dir    int
}

// Keep stores the files that an action is about to delete or change, and returns the set; nil if there
// are none. On an error nothing is stored; it is an [UnkeptError] if the files or the limits are the
// reason. The action must not run before Keep returns.
func (s *Store) Keep(ctx context.Context, about About, losses []Loss) (set *Set, err error) {
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
	k := &keeper{s: s, ctx: ctx, set: &Set{ID: id, At: start.UTC(), About: about}, fd: fd, start: start, room: room, at: map[string]int{}, dir: -1}
	defer k.leave()
	for i := range losses {
		if err := k.loss(&losses[i]); err != nil {
			return nil, err
		}
	}
	if len(k.set.Entries) == 0 {
		return nil, nil
	}
	l := &s.o.Limits
	k.set.Names = len(k.set.Entries)
	k.set.Said = k.set.Names > l.QuietNames || k.copied > l.QuietBytes || s.o.Clock().Sub(start) > l.QuietTime
	step()
	if err := s.commit(ctx, k.set); err != nil {
		return nil, err
	}
	return k.set, nil
}

//go:noinline
func (k *keeper) unkept(path, why string, args ...any) error {
	return &UnkeptError{path, fmt.Sprintf(why, args...)}
}

// loss keeps the files of one loss.
func (k *keeper) loss(l *Loss) error {
	if !filepath.IsAbs(l.Path) {
		return k.unkept(l.Path, "its path is not absolute")
	}
	path := filepath.Clean(l.Path)
	switch {
	case l.Text != "":
		k.add(path, Entry{Kind: "text", Target: l.Text})
		return nil
	case l.Under:
		fd, err := openFolder(path)
		if isGone(err) {
			return nil
		}
		if err != nil {
			return k.unkept(path, "%v", err)
		}
		return k.under(fd, path, l, 0)
	}
	if err := k.enter(filepath.Dir(path)); err != nil {
		if isGone(err) {
			return nil
		}
		return k.unkept(path, "%v", err)
	}
	dir, name := k.dir, filepath.Base(path)
	if l.Store {
		return k.database(dir, name, path)
	}
	return k.name(dir, name, path, l, 0)
}

// enter opens a folder and stores it in k.dir, unless it is open already.
func (k *keeper) enter(folder string) error {
	if k.dir >= 0 && k.folder == folder {
		return nil
	}
	k.leave()
	fd, err := openFolder(folder)
	if err != nil {
		return err
	}
	k.folder, k.dir = folder, fd
	return nil
}

func (k *keeper) leave() {
	if k.dir >= 0 {
		unix.Close(k.dir)
	}
	k.dir = -1
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
		if errors.Is(err, unix.ENOTDIR) { // a regular file contains nothing, but the name can be a symbolic link
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

// isGone reports whether an error of openFolder means that the folder does not exist.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// under keeps the matching names in a folder, and closes its descriptor.
func (k *keeper) under(fd int, path string, l *Loss, level int) error {
	defer unix.Close(fd)
	names, err := k.names(fd, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if k.looked++; k.looked > maxSeen {
			return k.unkept(path, "the search would read more than %d files", maxSeen)
		}
		if err := k.inTime(); err != nil {
			return err
		}
		child := filepath.Join(path, name)
		if l.Match(child) {
			if err := k.name(fd, name, child, l, 0); err != nil {
				return err
			}
		}
		if !l.Deep || k.s.output(child) || l.Skip != nil && l.Skip(child) {
			continue
		}
		if level >= maxLevels {
			return k.unkept(child, "the folders are nested more than %d deep", maxLevels)
		}
		next, err := unix.Openat(fd, name, pathFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			err = k.under(next, child, l, level+1)
		} else if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || isGone(err) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// names returns the names in a folder.
func (k *keeper) names(fd int, path string) ([]string, error) {
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, k.unkept(path, "%v", err)
	}
	f := os.NewFile(uintptr(own), path)
	defer f.Close()
	names, err := f.Readdirnames(maxSeen + 1)
	if len(names) > maxSeen {
		return nil, k.unkept(path, "the folder has more than %d files", maxSeen)
	}
	if err != nil && len(names) == 0 && !errors.Is(err, os.ErrNotExist) && err.Error() != "EOF" {
		return nil, k.unkept(path, "%v", err)
	}
	return names, nil
}

func (k *keeper) inTime() error {
	if k.looked%64 != 0 && len(k.set.Entries)%64 != 0 {
		return nil
	}
	if err := k.ctx.Err(); err != nil {
		return err
	}
	if k.s.o.Clock().Sub(k.start) > k.s.o.Limits.Time {
		return k.unkept("", "copying takes longer than %v", k.s.o.Limits.Time)
	}
	return nil
}

func (s *Store) output(path string) bool { return s.o.Output != nil && s.o.Output(path) }

// add adds an entry.
func (k *keeper) add(path string, e Entry) {
	e.Path = path
	if !utf8.ValidString(path) {
		e.Raw = []byte(path)
	}
	k.at[path] = len(k.set.Entries)
	k.set.Entries = append(k.set.Entries, e)
}

// name keeps one name in an open folder.
func (k *keeper) name(dir int, name, path string, l *Loss, level int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if isGone(err) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		return k.unkept(path, "%v", err)
	}
	if i, ok := k.at[path]; ok {
		if e := &k.set.Entries[i]; l.Write && e.By == "link" {
			k.room += e.Size
			k.set.Bytes -= e.Size
			if err := unix.Unlinkat(k.fd, e.Kept, 0); err != nil {
				return k.unkept(path, "%v", err)
			}
			return k.copy(dir, name, path, e)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || !l.Tree {
			return nil
		}
	} else if len(k.set.Entries) >= k.s.o.Limits.Names {
		return k.unkept("", "more than %d files and folders would be copied", k.s.o.Limits.Names)
	}
	if err := k.inTime(); err != nil {
		return err
	}
	e := Entry{Mode: uint32(st.Mode) & 0o7777, Was: stampOf(&st)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return k.tree(dir, name, path, l, level, e)
	case unix.S_IFLNK:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil || n == len(buf) {
			return k.unkept(path, "the target of the symbolic link cannot be read")
		}
		e.Kind, e.Target = "link", string(buf[:n])
		if !utf8.ValidString(e.Target) {
			return k.unkept(path, "the target of the symbolic link is not UTF-8")
		}
		k.add(path, e)
	case unix.S_IFREG:
		if s := k.s.o.Secret; s != nil && s(path, nil) {
			return k.unkept(path, "credential files are not copied")
		}
		e.Kind, e.Size, e.Links = "file", st.Size, st.Nlink > 1
		k.add(path, e)
		return k.file(dir, name, path, l.Write || e.Links, &k.set.Entries[len(k.set.Entries)-1])
	default:
		k.set.LeftOut = append(k.set.LeftOut, path)
	}
	return nil
}

// tree keeps a folder and, if the loss is of a tree, everything below it except build output.
func (k *keeper) tree(dir int, name, path string, l *Loss, level int, e Entry) error {
	e.Kind = "dir"
	if _, ok := k.at[path]; !ok {
		k.add(path, e)
	}
	if !l.Tree {
		return nil
	}
	if level >= maxLevels {
		return k.unkept(path, "the folders are nested more than %d deep", maxLevels)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return k.unkept(path, "%v", err)
	}
	defer unix.Close(fd)
	names, err := k.names(fd, path)
	if err != nil {
		return err
	}
	for _, n := range names {
		child := filepath.Join(path, n)
		if k.s.output(child) {
			k.set.LeftOut = append(k.set.LeftOut, child)
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, n, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && uint64(st.Dev) != e.Was.Dev {
			return k.unkept(child, "the file is on another file system")
		}
		if err := k.name(fd, n, child, l, level+1); err != nil {
			return err
		}
	}
	return nil
}

// file keeps the content of a file.
func (k *keeper) file(dir int, name, path string, copied bool, e *Entry) error {
	if e.Size > k.room {
		return k.unkept(path, "the undo store is full; run 'shield undo prune'")
	}
	if s := k.s.o.Secret; s != nil && k.starts < maxStarts && e.Size > 0 && e.Size <= startSize {
		k.starts++
		start, err := readStart(dir, name)
		if err == nil && s(path, start) {
			return k.unkept(path, "the file contains a credential, and credentials are not copied")
		}
	}
	e.Kept = strconv.Itoa(len(k.set.Entries) - 1)
	if copied {
		return k.copy(dir, name, path, e)
	}
	err := unix.Linkat(dir, name, k.fd, e.Kept, 0)
	step()
	switch {
	case err == nil:
		var st unix.Stat_t
		if err := unix.Fstatat(k.fd, e.Kept, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || stampOf(&st).Ino != e.Was.Ino {
			return k.unkept(path, "the file changed while it was copied")
		}
		e.By, e.Copy = "link", stampOf(&st)
		k.room -= e.Size
		k.set.Bytes += e.Size
		return nil
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EMLINK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
		return k.copy(dir, name, path, e)
	}
	return k.unkept(path, "%v", err)
}

// copy keeps the content of a file as a separate copy.
func (k *keeper) copy(dir int, name, path string, e *Entry) error {
	from, st, err := openRegular(dir, name)
	if err != nil {
		return k.unkept(path, "%v", err)
	}
	defer from.Close()
	if stampOf(st).Ino != e.Was.Ino {
		return k.unkept(path, "the file changed while it was copied")
	}
	e.Size, e.Was = st.Size, stampOf(st)
	fd, err := unix.Openat(k.fd, e.Kept, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return k.unkept(path, "%v", err)
	}
	to := os.NewFile(uintptr(fd), e.Kept)
	defer to.Close()
	step()
	e.By, e.Hash = "copy", ""
	if clone(to, from) == nil {
		e.By = "clone"
	} else {
		full := int64(st.Blocks) * 512
		if k.copied += min(full, st.Size); k.copied > k.s.o.Limits.Bytes {
			return k.unkept(path, "more than %d MB would be copied", k.s.o.Limits.Bytes>>20)
		}
		deadline := k.start.Add(k.s.o.Limits.Time)
		e.Hash, err = copyFile(to, from, func() error {
			if k.s.o.Clock().After(deadline) {
				return fmt.Errorf("copying takes longer than %v", k.s.o.Limits.Time)
			}
			return k.ctx.Err()
		})
		if err != nil {
			return k.unkept(path, "%v", err)
		}
	}
	step()
	var now, kept unix.Stat_t
	if unix.Fstat(int(from.Fd()), &now) != nil || stampOf(&now).Size != e.Was.Size || stampOf(&now).MTime != e.Was.MTime {
		return k.unkept(path, "the file changed while it was copied")
	}
	if err := unix.Fstat(fd, &kept); err != nil || kept.Size != st.Size {
		return k.unkept(path, "the file changed while it was copied")
	}
	e.Copy = stampOf(&kept)
	k.room -= e.Size
	k.set.Bytes += e.Size
	return nil
}

// database keeps an SQLite database with its log files, unless a process has it open.
func (k *keeper) database(dir int, name, path string) error {
	for i, suffix := range [...]string{"", "-wal", "-journal", "-shm"} {
		from, st, err := openRegular(dir, name+suffix)
		if isGone(err) {
			continue
		}
		if err != nil {
			return k.unkept(path+suffix, "%v", err)
		}
		inUse := isOpen(from, st)
		from.Close()
		if inUse {
			return k.unkept(path, "a program has the SQLite database open; close it first")
		}
		if i == 3 {
			continue // SQLite recreates this file from the log
		}
		if err := k.name(dir, name+suffix, path+suffix, &Loss{Write: true}, 0); err != nil {
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

func readStart(dir int, name string) ([]byte, error) {
	f, _, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, startSize)
	n, err := f.Read(buf)
	return buf[:max(n, 0)], err
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{uint64(st.Dev), uint64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

package undo

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const folderTraversalOpenFlags = unix.O_PATH

// reflinkFile makes a file share the content of another file (reflink), if the file system supports it.
func reflinkFile(to, from *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// nextDataOffset returns the offset of the next data of a sparse file at or after an offset; io.EOF if there
// are none.
func nextDataOffset(f *os.File, offset int64) (int64, error) {
	next, err := unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA)
	switch err {
	case nil:
		return next, nil
	case unix.ENXIO:
		return 0, io.EOF
	}
	return offset, nil // the file system does not support SEEK_DATA: treat everything from offset on as data
}

// isOpenInOtherProcess reports whether another process has a file open or locked, as far as this user
// can see.
func isOpenInOtherProcess(f *os.File, st *unix.Stat_t) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK {
		return true
	}
	own := strconv.Itoa(os.Getpid())
	processes, _ := os.ReadDir("/proc")
	for _, p := range processes {
		if c := p.Name()[0]; c < '0' || c > '9' || p.Name() == own {
			continue
		}
		folder := "/proc/" + p.Name() + "/fd/"
		files, _ := os.ReadDir(folder)
		for _, n := range files {
			var at unix.Stat_t
			if unix.Stat(folder+n.Name(), &at) == nil && at.Ino == st.Ino && at.Dev == st.Dev {
				return true
			}
		}
	}
	return false
}

// totalFileSystemBytes returns the size of the file system that holds a folder.
func totalFileSystemBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(st.Blocks) * int64(st.Bsize)
}

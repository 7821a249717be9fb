package analysis

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func splitRoot(path string) (root, rest string) { return "", strings.TrimPrefix(path, "/") }

// allowInspectingFileSystem trusts the file system that holds a folder, whatever its type: the home folder and the
// roots may be on a network or shared file system.
func (f *localFileInspector) allowInspectingFileSystem(folder string) {
	if dev, ok := deviceOf(folder); ok && folder != "" {
		f.devicesAllowedForInspection = append(f.devicesAllowedForInspection, dev)
	}
}

func deviceOf(path string) (dev uint64, ok bool) {
	var st unix.Stat_t
	err := unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_NO_AUTOMOUNT)
	return uint64(st.Dev), err == nil //nolint:unconvert // its type differs between processors
}

// folderStampOf returns the stamp of a folder; ok is false if the path is not a folder.
func folderStampOf(folder string) (s folderStamp, ok bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(unix.AT_FDCWD, folder, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return s, false
	}
	return folderStamp{uint64(st.Dev), st.Ino, st.Ctim.Nano()}, true //nolint:unconvert // its type differs between processors
}

// lastChangeTime returns the ctime of a file, the last change of its content or metadata, or its modification
// time if that is later. A program can make it later, not earlier.
func lastChangeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if changed := time.Unix(0, st.Ctim.Nano()); changed.After(info.ModTime()) {
			return changed
		}
	}
	return info.ModTime()
}

// newLocalFileInspector returns a localFileInspector that trusts the file system of the root folder.
func newLocalFileInspector() *localFileInspector {
	f := &localFileInspector{}
	f.allowInspectingFileSystem("/")
	return f
}

// A localSymlinkReader looks up names as long as they are on local file systems.
type localSymlinkReader struct {
	files               *localFileInspector
	lastSeenLocalDevice uint64 // the device that was last found to be local
	hasSeenLocalDevice  bool
}

func (f *localFileInspector) newLocalLinkLookup() localSymlinkReader {
	return localSymlinkReader{files: f}
}

// linkTarget looks up a name whose parent folders are resolved. target is the target of a symbolic link, "" for
// anything else. The error is that of the lookup, or says that the path is not local.
func (l *localSymlinkReader) linkTarget(path string) (target string, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil {
		return "", err
	}
	if !l.hasSeenLocalDevice || uint64(st.Dev) != l.lastSeenLocalDevice {
		if !slices.Contains(l.files.devicesAllowedForInspection, uint64(st.Dev)) && !isOnLocalDisk(path) {
			return "", errPathNotInspected
		}
		l.lastSeenLocalDevice, l.hasSeenLocalDevice = uint64(st.Dev), true
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", nil
	}
	if target, err = os.Readlink(path); err == nil && target == "" {
		err = errPathNotInspected
	}
	return target, err
}

// isOnLocalDisk reports whether a path is on a local file system, which answers at once. Opening it with O_PATH
// triggers no automount.
func isOnLocalDisk(path string) bool {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC,
		unix.AUTOFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC,
		unix.PROC_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
		0x01161970, // GFS2
		0x0bd00bd0, // Lustre
		0x47504653: // GPFS
		return false
	}
	return true
}

// open opens a regular file by a path without symbolic links.
func (f *localFileInspector) open(real string) (*os.File, error) {
	// O_NONBLOCK: a FIFO or device must not block the analysis.
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errPathNotInspected
	}
	file := os.NewFile(uintptr(fd), real)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = file.Close()
		return nil, errPathNotInspected
	}
	return file, nil
}

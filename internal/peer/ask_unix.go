//go:build linux || darwin

package peer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// SupportsServiceConnections reports whether this system supports a [ServiceConnection].
const SupportsServiceConnections = true

// A ServiceConnection is a connection to this user's service, for one question.
type ServiceConnection struct {
	socketFile *os.File
	sealKey    [KeySize]byte
}

// Dial connects to the service whose socket and key are in a folder. It does not block.
func Dial(folder string) (*ServiceConnection, error) {
	fd, err := connect(filepath.Join(folder, SocketFileName))
	if err != nil {
		return nil, err
	}
	l := &ServiceConnection{socketFile: os.NewFile(uintptr(fd), SocketFileName)}
	uid, err := UIDBySocketFD(fd)
	if err == nil && uid != os.Geteuid() {
		err = errors.New("another user runs the service at this socket; remove the socket, and restart the service")
	}
	if err == nil {
		l.sealKey, err = readSealKey(folder)
	}
	if err != nil {
		_ = l.socketFile.Close()
		return nil, err
	}
	return l, nil
}

// Ask sends a question, reads the answer and closes the connection. If it returns an error, for
// example because no answer came within the duration patience, the question was not decided.
func (l *ServiceConnection) Ask(q *Question, patience time.Duration) (Answer, error) {
	defer l.socketFile.Close()
	asked, message, err := NewQuestion(&l.sealKey, q)
	if err != nil {
		return Answer{}, err
	}
	late := time.AfterFunc(patience, func() { _ = l.socketFile.Close() })
	defer late.Stop()
	if _, err := l.socketFile.Write(message); err != nil {
		return Answer{}, err
	}
	return asked.ReadAnswer(l.socketFile)
}

// connect connects to a Unix socket without blocking, which net.Dial cannot do. It returns an error if
// the socket's backlog is full.
func connect(path string) (fd int, err error) {
	syscall.ForkLock.RLock()
	fd, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	err = syscall.SetNonblock(fd, true)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
	}
	if err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// readSealKey reads the key. It returns an error unless only this user can read the file and write its
// folder.
func readSealKey(folder string) (key [KeySize]byte, err error) {
	var dir, file syscall.Stat_t
	if err := syscall.Stat(folder, &dir); err != nil {
		return key, err
	}
	f, err := os.OpenFile(filepath.Join(folder, SealKeyFileName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return key, err
	}
	defer f.Close()
	if err := syscall.Fstat(int(f.Fd()), &file); err != nil {
		return key, err
	}
	me := uint32(os.Geteuid())
	if dir.Uid != me || dir.Mode&0o022 != 0 || file.Uid != me || file.Mode&0o077 != 0 || file.Mode&syscall.S_IFMT != syscall.S_IFREG || file.Size != KeySize {
		return key, fmt.Errorf("other users can read the key of the service in %s; delete the file, and restart the service", folder)
	}
	_, err = io.ReadFull(f, key[:])
	return key, err
}

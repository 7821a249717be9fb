package classify

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// checkListenerUID returns an error unless the listener runs as the user allowedUID or as root.
// Root listens for services that are started on demand.
func checkListenerUID(conn *net.UnixConn, allowedUID int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if peer.Uid != 0 && int(peer.Uid) != allowedUID {
		return fmt.Errorf("the program that listens on the socket runs as user %d, not as the user who runs shield; start the classifier as the user who runs shield", peer.Uid)
	}
	return nil
}

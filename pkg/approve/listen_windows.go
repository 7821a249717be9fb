package approve

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/windows"
)

// listenTCPExclusively listens at an address that no other program uses, or can use later: without the socket
// option SO_EXCLUSIVEADDRUSE, another program of the same user could take over the address.
func listenTCPExclusively(address string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) {
			err = windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, exclusiveAddrUse, 1)
		})
		if err == nil {
			err = failed
		}
		return err
	}}
	return lc.Listen(context.Background(), "tcp", address)
}

// exclusiveAddrUse is SO_EXCLUSIVEADDRUSE.
const exclusiveAddrUse = ^windows.SO_REUSEADDR

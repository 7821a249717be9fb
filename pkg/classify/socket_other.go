//go:build !linux

package classify

import "net"

// checkListenerUID accepts every listener: file and folder were checked before.
func checkListenerUID(*net.UnixConn, int) error { return nil }

//go:build !linux

package classify

import "net"

// checkPeer accepts every listener: file and folder were checked before.
func checkPeer(*net.UnixConn, int) error { return nil }

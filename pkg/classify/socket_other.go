//go:build !linux

package classify

import "net"

// checkPeer accepts every listener: file and folder were looked at.
func checkPeer(*net.UnixConn, int) error { return nil }

//go:build !windows

package approve

import "net"

// listenTCPExclusively listens at an address that no other program uses.
func listenTCPExclusively(address string) (net.Listener, error) { return net.Listen("tcp", address) }

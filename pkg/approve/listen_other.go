//go:build !windows

package approve

import "net"

// listenAt listens at an address that no other program uses.
func listenAt(address string) (net.Listener, error) { return net.Listen("tcp", address) }

package effect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Loopback reports whether a host in its canonical form, see [Host], is this
// machine and cannot be another: an address of the loopback networks, or a name
// that RFC 6761 reserves for them. What is allowed only here asks this.
func Loopback(host string) bool {
	if addr := ParseAddr(host); addr.IsValid() {
		return addr.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// ThisMachine reports whether a host in its canonical form may be this machine:
// Linux and macOS connect to it for the unspecified address, and their lists of
// hosts give it more names. What must not be done to this machine asks this.
func ThisMachine(host string) bool {
	return Loopback(host) || ParseAddr(host).IsUnspecified() || slices.Contains(listed[:], host)
}

// listed are the names of the loopback addresses in /etc/hosts of Linux systems.
var listed = [...]string{
	"ip6-localhost", "ip6-loopback", "ipv6-localhost", "ipv6-loopback",
	"localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
}

// DialLoopback is the Control function of a [net.Dialer] that connects to this
// machine alone: anyone who answers for a name such as localhost may give the
// address of another.
func DialLoopback(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("the host %s is not this machine; use https", address)
	}
	return nil
}

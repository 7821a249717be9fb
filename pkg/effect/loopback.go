package effect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// IsLoopbackHost reports whether a canonical host, see [CanonicalHost], is certainly this machine: a
// loopback address, or a name that RFC 6761 reserves for it. Use it to allow actions only on this
// machine.
func IsLoopbackHost(host string) bool {
	if addr := ParseAddr(host); addr.IsValid() {
		return addr.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// MayBeThisMachine reports whether a canonical host may be this machine: Linux and macOS also connect to
// it for the unspecified address, and /etc/hosts gives it more names. Use it to refuse actions on
// this machine.
func MayBeThisMachine(canonicalHost string) bool {
	return IsLoopbackHost(canonicalHost) || ParseAddr(canonicalHost).IsUnspecified() || slices.Contains(loopbackNames[:], canonicalHost)
}

// loopbackNames are the names of the loopback addresses in /etc/hosts on Linux.
var loopbackNames = [...]string{
	"ip6-localhost", "ip6-loopback", "ipv6-localhost", "ipv6-loopback",
	"localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
}

// RefuseNonLoopbackDial is the Control function of a [net.Dialer] that connects only to this machine: a resolver may
// return another machine's address for names such as localhost.
func RefuseNonLoopbackDial(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("http is allowed to this machine only, and %s is another machine; use https", address)
	}
	return nil
}

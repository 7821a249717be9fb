package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"github.com/shieldcli/shield/pkg/effect"
)

// A hostPattern matches canonical hosts: a name, a glob in which * matches any
// characters, or a CIDR prefix.
type hostPattern struct {
	prefix netip.Prefix
	glob   string
}

func parseHost(s string) (hostPattern, error) {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return hostPattern{}, fmt.Errorf("host %q is not a CIDR prefix such as 10.0.0.0/8", s)
		}
		return hostPattern{prefix: p.Masked()}, nil
	}
	switch {
	case s == "":
		return hostPattern{}, errors.New("empty host")
	case strings.ContainsAny(s, " \t@?#[]\\"):
		return hostPattern{}, fmt.Errorf("host %q: write a name or address without scheme, port or path", s)
	case strings.Count(s, ":") == 1:
		return hostPattern{}, fmt.Errorf("host %q: remove the port; rules match hosts on every port", s)
	case strings.Count(s, "*") > 8:
		return hostPattern{}, fmt.Errorf("host %q: more than 8 stars", s)
	}
	if !strings.Contains(s, "*") {
		name := effect.Host(s)
		if name == "" {
			return hostPattern{}, fmt.Errorf("host %q is neither a name nor an address", s)
		}
		return hostPattern{glob: name}, nil
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return hostPattern{}, fmt.Errorf("host %q: with a star, write the name in its ASCII form (xn--…)", s)
	}
	return hostPattern{glob: strings.ToLower(strings.TrimSuffix(s, "."))}, nil
}

// match reports whether a canonical host matches; addr is the host as an
// address, if it is one.
func (p *hostPattern) match(host string, addr netip.Addr) bool {
	if p.glob == "" {
		return addr.IsValid() && p.prefix.Contains(addr)
	}
	return matchStars(p.glob, host)
}

// parseAddr returns a canonical host as an address, or the zero Addr if it is a
// name.
func parseAddr(host string) netip.Addr {
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// matchStars matches s against a glob in which only * is special. It backtracks
// only to the last star, so it takes at most len(glob)·len(s) steps.
func matchStars(glob, s string) bool {
	g, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, mark = g, i
			g++
		case g < len(glob) && glob[g] == s[i]:
			g++
			i++
		case star >= 0:
			mark++
			g, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], "*") == ""
}

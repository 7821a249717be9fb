package effect

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// A HostPattern matches canonical hosts: a name, a glob in which * matches any
// characters, or a CIDR prefix.
type HostPattern struct {
	prefix netip.Prefix
	glob   string
}

// ParseHostPattern parses a name, a glob or a CIDR prefix.
func ParseHostPattern(s string) (HostPattern, error) {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return HostPattern{}, fmt.Errorf("host %q is not a CIDR prefix; write one such as 10.0.0.0/8", s)
		}
		return HostPattern{prefix: p.Masked()}, nil
	}
	switch {
	case s == "":
		return HostPattern{}, errors.New("empty host")
	case strings.ContainsAny(s, " \t@?#[]\\"):
		return HostPattern{}, fmt.Errorf("host %q: write a name or address without scheme, port or path", s)
	case strings.Count(s, ":") == 1:
		return HostPattern{}, fmt.Errorf("host %q: remove the port; rules match hosts on every port", s)
	case strings.Count(s, "*") > 8:
		return HostPattern{}, fmt.Errorf("host %q: more than 8 stars; remove some", s)
	}
	if !strings.Contains(s, "*") {
		name := CanonicalHost(s)
		if name == "" {
			return HostPattern{}, fmt.Errorf("host %q is neither a name nor an address; write one of them", s)
		}
		return HostPattern{glob: name}, nil
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return HostPattern{}, fmt.Errorf("host %q: with a star, write the name in its ASCII form (xn--…)", s)
	}
	return HostPattern{glob: strings.ToLower(strings.TrimSuffix(s, "."))}, nil
}

// Match reports whether a canonical host matches; addr is the host as an address, or the zero Addr.
func (p *HostPattern) Match(host string, addr netip.Addr) bool {
	if p.glob == "" {
		return addr.IsValid() && p.prefix.Contains(addr)
	}
	return MatchStars(p.glob, host)
}

// ParseAddr returns a canonical host as an address, or the zero Addr if it is a
// name.
func ParseAddr(host string) netip.Addr {
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// MatchStars reports whether a glob matches all of s. * matches any text, every other character itself. It
// backtracks only to the last star, so it takes at most len(glob)·len(s) steps.
func MatchStars(glob, s string) bool {
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

package effect

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/shieldcli/shield/internal/decode"
)

// CanonicalHost returns the canonical form of a host: a name in lower-case ASCII, or an address in its usual notation,
// without port, user, zone or trailing dot. It parses IPv4 addresses as the C library and browsers do, in
// decimal, octal, hexadecimal and with fewer than four parts, and extracts those embedded in IPv6 addresses.
// It returns "" for text that is not a host, and for text that two common clients parse as different hosts.
func CanonicalHost(hostText string) string {
	s := strings.Trim(hostText, " \t\r\n")
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if s == "" || len(s) > 1024 {
		return ""
	}
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || !isPort(s[end+1:]) {
			return ""
		}
		return canonicalIPv6(s[1:end])
	}
	switch i := strings.IndexByte(s, ':'); {
	case i >= 0 && strings.Count(s, ":") > 1:
		return canonicalIPv6(s)
	case i >= 0:
		if !isPort(s[i:]) {
			return ""
		}
		s = s[:i]
	}
	if strings.IndexByte(s, '%') >= 0 {
		s = decode.DecodePercentEscapes(s)
	}
	return canonicalHostName(s)
}

// isPort reports whether s is empty or a colon with an optional port.
func isPort(s string) bool {
	return s == "" || s[0] == ':' && len(s) <= 6 && strings.Trim(s[1:], "0123456789") == ""
}

// canonicalHostName returns the canonical form of a name or an IPv4 address.
func canonicalHostName(s string) string {
	if !decode.IsASCII(s) || strings.Contains(strings.ToLower(s), "xn--") {
		ascii, err := idnaProfile().ToASCII(s)
		if err != nil || !utf8.ValidString(s) {
			return ""
		}
		s = ascii
	}
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return ""
	}
	last := s[strings.LastIndexByte(s, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return canonicalIPv4(s)
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 {
			return ""
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; c != '-' && !isAlnumOrUnderscore(c) {
				return ""
			}
		}
	}
	return s
}

// idnaProfile returns the mapping of international names that clients use. It also converts full-width digits and
// other full stops to ASCII.
func idnaProfile() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))
}

// canonicalIPv4 parses an IPv4 address of one to four parts; the last part fills the remaining bytes. A part with
// a leading zero is octal, one with 0x hexadecimal.
func canonicalIPv4(s string) string {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return ""
	}
	var sum uint64
	for i, part := range parts {
		base := 10
		switch {
		case strings.HasPrefix(part, "0x"):
			part, base = part[2:], 16
			if part == "" {
				part = "0"
			}
		case len(part) > 1 && part[0] == '0':
			base = 8
		}
		n, err := strconv.ParseUint(part, base, 32)
		if err != nil || part[0] == '+' {
			return ""
		}
		room := uint(8)
		if i == len(parts)-1 {
			room = uint(8 * (5 - len(parts)))
		}
		if n >= 1<<room {
			return ""
		}
		sum = sum<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}).String()
}

// canonicalIPv6 returns an IPv6 address in its usual notation, or the IPv4 address embedded in it.
func canonicalIPv6(s string) string {
	s, _, _ = strings.Cut(s, "%")
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() {
		return ""
	}
	if a.Is4In6() {
		return a.Unmap().String()
	}
	b := a.As16()
	for _, head := range [...]string{
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // compatible, ::a.b.c.d
		"\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00", // NAT64, 64:ff9b::a.b.c.d
		"\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00", // translated, ::ffff:0:a.b.c.d
	} {
		if string(b[:12]) == head && (head[1] != 0 || head[8] != 0 || b[12] != 0 || b[13] != 0) {
			return netip.AddrFrom4([4]byte(b[12:])).String()
		}
	}
	return a.String()
}

// NormalizeURL returns a URL with its scheme in lower case, its host in canonical form and without user and password,
// and the host. A URL without a scheme is parsed as http, as clients do; "user@host:path" as ssh. The host is
// "" if there is none, or if two common clients would find different hosts: it is then unknown which host is
// contacted.
func NormalizeURL(rawURL string) (url, host string) {
	s := strings.Trim(rawURL, " \t\r\n\f\v\x00")
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return s, "" // browsers drop tabs and newlines; other clients stop there
	}
	scheme, rest := cutScheme(s)
	if rest == "" {
		return s, ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	switch {
	case authority == "":
		return s, "" // http:///host
	case strings.ContainsAny(authority, `\ <>"{}|^`+"`"):
		return s, "" // http://good\@evil
	case strings.Count(authority, "@") > 1, strings.HasPrefix(tail, "?@"), strings.HasPrefix(tail, "#@"):
		return s, ""
	}
	if i := strings.IndexByte(authority, '@'); i >= 0 {
		if strings.ContainsAny(authority[:i], "[]") {
			return s, ""
		}
		authority = authority[i+1:]
	}
	host = CanonicalHost(authority)
	if host == "" || strings.IndexByte(authority, '[') > 0 {
		return s, ""
	}
	shown := host
	if strings.IndexByte(host, ':') >= 0 {
		shown = "[" + host + "]"
	}
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') && i+1 < len(authority) && authority[0] == '[' || i >= 0 && strings.Count(authority, ":") == 1 && i+1 < len(authority) {
		shown += authority[i:]
	}
	return scheme + "://" + shown + tail, host
}

// cutScheme splits a URL into its scheme and the text after the two slashes. rest is "" for a URL without a
// host, or whose host differs between clients, such as http:/host.
func cutScheme(s string) (scheme, rest string) {
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		return "http", rest
	}
	n := 0
	for n < len(s) && (isAlnumOrUnderscore(s[n]) && s[n] != '_' || n > 0 && strings.IndexByte("+-.", s[n]) >= 0) {
		n++
	}
	if n == 0 || n == len(s) || s[n] != ':' {
		if user, path, ok := strings.Cut(s, ":"); ok && strings.IndexByte(user, '@') > 0 && !strings.ContainsAny(user, "/?#") && !isPort(":"+path) {
			return "ssh", user + "/" + path
		}
		return "http", s
	}
	if rest, ok := strings.CutPrefix(s[n+1:], "//"); ok {
		return strings.ToLower(s[:n]), rest
	}
	port, _, _ := strings.Cut(s[n+1:], "/")
	if port != "" && isPort(":"+port) {
		return "http", s
	}
	return "", ""
}

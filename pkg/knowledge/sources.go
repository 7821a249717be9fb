package knowledge

import (
	"strings"
	"sync"
)

// A SourceForm is how files of some names say where packages, plug-ins and build
// tools come from.
type SourceForm struct {
	Files   []string // globs, as of effect.Globs
	Setting string   // RE2; the first group is the address, or text that holds addresses
	Code    bool     // hosts of code are usual places, too
	Sums    string   // RE2; what says how packages are checked
}

// Addresses returns the addresses that the settings of the form name in a text.
func (f *SourceForm) Addresses(text string) []string {
	if strings.Contains(f.Setting, "://") && !strings.Contains(text, "://") { // as every match does, see TestSourceSettings
		return nil
	}
	var out []string
	for _, m := range expression(f.Setting).FindAllStringSubmatch(text, maxAddresses) {
		text := strings.ReplaceAll(m[1], `\`, "")
		found := expression(address).FindAllString(text, maxAddresses)
		if len(found) == 0 && strings.Contains(text, ".") && !strings.ContainsAny(text, " \"") {
			found = []string{"https://" + text} // a path that begins with its host
		}
		out = append(out, found...)
	}
	return out
}

// address matches an address in the text of a setting.
const address = `(?i)\b(?:https?|ssh|git)://[^\s"'<>|;,)\]}]+`

// Checks reports whether a text says how packages of the form are checked.
func (f *SourceForm) Checks(text string) bool {
	return f.Sums != "" && expression(f.Sums).MatchString(text)
}

// maxAddresses bounds the addresses that are taken from one text.
const maxAddresses = 64

// UsualSource reports whether a host is one of those that packages and images come
// from all day, or is below one.
func UsualSource(host string) bool {
	return below(registries(), host)
}

// Publisher reports whether a host has releases of those alone who make the program.
func Publisher(host string) bool { return below(publishers(), host) }

// below reports whether a host or one above it is in a set.
func below(set map[string]bool, host string) bool {
	for host != "" {
		if set[host] {
			return true
		}
		_, host, _ = strings.Cut(host, ".")
	}
	return false
}

var registries = sync.OnceValue(func() map[string]bool {
	return hostsOf("package_registries", "image_registries", "module_hosts", "chart_registries", "publishers")
})

var publishers = sync.OnceValue(func() map[string]bool { return hostsOf("publishers") })

func hostsOf(lists ...string) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		hosts, _ := Hosts(list)
		for _, h := range hosts {
			out[h] = true
		}
	}
	return out
}

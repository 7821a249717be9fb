package knowledge

import (
	"strings"
	"sync"
)

// A PackageSourceSetting describes how configuration files name the sources of packages, plug-ins and build tools.
type PackageSourceSetting struct {
	Files                      []string // in the syntax of effect.Globs
	AddressSettingPattern      string   // RE2; the first group is the address, or text with addresses
	AllowsCodeHosts            bool     // code hosting services are also usual sources
	VerificationSettingPattern string   // RE2; matches the setting for verifying packages
}

// Addresses returns the package source addresses in a configuration text: those that
// AddressSettingPattern finds.
func (f *PackageSourceSetting) Addresses(text string) []string {
	if strings.Contains(f.AddressSettingPattern, "://") && !strings.Contains(text, "://") { // every match contains "://", see TestSourceSettings
		return nil
	}
	var out []string
	for _, m := range cachedRegexp(f.AddressSettingPattern).FindAllStringSubmatch(text, maxAddressesPerText) {
		text := strings.ReplaceAll(m[1], `\`, "")
		found := cachedRegexp(addressPattern).FindAllString(text, maxAddressesPerText)
		if len(found) == 0 && strings.Contains(text, ".") && !strings.ContainsAny(text, " \"") {
			found = []string{"https://" + text} // a path that begins with its host
		}
		out = append(out, found...)
	}
	return out
}

// addressPattern matches an address in the text of a setting.
const addressPattern = `(?i)\b(?:https?|ssh|git)://[^\s"'<>|;,)\]}]+`

// ConfiguresPackageVerification reports whether a text configures the verification of packages.
func (f *PackageSourceSetting) ConfiguresPackageVerification(text string) bool {
	return f.VerificationSettingPattern != "" && cachedRegexp(f.VerificationSettingPattern).MatchString(text)
}

// maxAddressesPerText is the maximum number of addresses returned for one text.
const maxAddressesPerText = 64

// IsUsualPackageSource reports whether a host, or a domain above it, is a usual source of packages and images.
func IsUsualPackageSource(host string) bool {
	return hasHostOrParent(usualPackageSourceHosts(), host)
}

// OnlyAuthorsCanPublishReleasesOn reports whether only the authors of programs can publish releases on a host.
func OnlyAuthorsCanPublishReleasesOn(host string) bool {
	return hasHostOrParent(authorOnlyReleaseHosts(), host)
}

// hasHostOrParent reports whether a host or a domain above it is in a set.
func hasHostOrParent(set map[string]bool, host string) bool {
	for host != "" {
		if set[host] {
			return true
		}
		_, host, _ = strings.Cut(host, ".")
	}
	return false
}

var usualPackageSourceHosts = sync.OnceValue(func() map[string]bool {
	return hostSet("package_registries", "image_registries", "module_hosts", "chart_registries", "publishers")
})

var authorOnlyReleaseHosts = sync.OnceValue(func() map[string]bool { return hostSet("publishers") })

func hostSet(lists ...string) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		hosts, _ := Hosts(list)
		for _, h := range hosts {
			out[h] = true
		}
	}
	return out
}

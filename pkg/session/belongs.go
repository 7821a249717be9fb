package session

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// genericCredentialWords are words in the names of credentials that do not name a service.
var genericCredentialWords = []string{
	"access", "account", "admin", "api", "app", "auth", "authorization", "bearer", "client", "credential", "credentials", "db", "default", "dev", "env", "id",
	"key", "live", "local", "login", "master", "my", "pass", "password", "private", "prod", "production", "public", "refresh", "secret", "service",
	"session", "staging", "test", "token", "url", "user", "www", "com", "net", "org", "http", "https", "web", "cloud", "host", "server",
}

// serviceHostNameWords returns the words of a credential's name and value that the host name of its service
// may contain.
func serviceHostNameWords(credentialName, credentialValue string) (out []string) {
	for _, c := range redact.FindCredentialSpans(credentialValue) {
		if service := knowledge.SecretService[c.KindName]; service != "" && c.Start == 0 {
			return []string{service}
		}
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(shortenText(credentialName)), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		if len(word) > 2 && !slices.Contains(genericCredentialWords, word) {
			out = append(out, word)
		}
	}
	return out
}

// allHostsBelongToService reports whether all hosts belong to the service of a value.
func (v *HashedSensitiveValue) allHostsBelongToService(hosts []string) bool {
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(host string) bool {
		if slices.Contains(v.ServiceHostNameWords, host) {
			return false
		}
		labels := strings.Split(host, ".")
		if len(labels) > 2 {
			labels = labels[len(labels)-2:] // the owner of a domain chooses any name below it
		}
		return !slices.ContainsFunc(v.ServiceHostNameWords, func(word string) bool { return slices.Contains(labels, word) })
	})
}

// awsKeyIDPattern matches the ID of an AWS access key, which is not secret by itself.
var awsKeyIDPattern = prefilter.LazyRegexp(`^A[KS]IA[0-9A-Z]{16}$`)

// isTestPassword reports whether a short value is a well-known test password, which is not secret.
func isTestPassword(value string) bool {
	if len(value) >= minNonCoincidentalValueBytes {
		return false
	}
	value = strings.ToLower(value)
	for word := range command.WeakSecrets {
		if strings.Contains(value, word) {
			return true
		}
	}
	return false
}

// hostByURLPassword returns, for each password in a URL of a text, the URL's host.
func hostByURLPassword(text string) map[string]string {
	if !strings.Contains(text, "://") {
		return nil
	}
	out := map[string]string{}
	for _, m := range analysis.PasswordURL().FindAllStringSubmatch(text, maxSensitiveValuesPerSource) {
		if m[2] != "" {
			out[m[1]] = effect.CanonicalHost(m[2])
		}
	}
	return out
}

// soleOutputSourceHost returns the host from which all output of some actions comes, "" if there is other output
// or more than one host.
func soleOutputSourceHost(cases []*analysis.ActionCase) (host string) {
	for _, c := range cases {
		if c.UnexaminedReason != "" {
			return ""
		}
		for i := range c.Effects {
			switch e := &c.Effects[i]; e.KindForPolicies() {
			case effect.Execute:
				if e.Class != effect.ReadOnly && e.Class != effect.Network {
					return ""
				}
			case effect.HTTPRequest, effect.SendData:
				if e.Host == "" || e.Path != "" || host != "" && e.Host != host {
					return ""
				}
				host = e.Host
			default:
				return ""
			}
		}
	}
	return host
}

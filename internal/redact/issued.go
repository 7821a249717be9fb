package redact

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// userChosenCredentialKinds are forms of credentials that people choose themselves; in files they are often
// examples.
var userChosenCredentialKinds = map[string]bool{
	"setx": true, "aws-signature": true, "aws-signature-header": true, "json-web-token": true, "jwt": true, "authorization-header": true, "cookie-header": true,
	"session-cookie": true, "query-credential": true, "bearer-token": true, "url-password": true, "url-token": true, "netrc": true, "htpasswd-hash": true,
	"npmrc-auth": true, "docker-auth": true, "secret-key-prefix": true,
}

// privateKeyBodyPattern matches base64 data as in the body of a private key. It does not match a
// text that only mentions the header and footer lines of a key.
var privateKeyBodyPattern = prefilter.LazyRegexp(`[A-Za-z0-9+/]{24}`)

// ServiceIssuedCredentialKindName returns the kind of a credential in text that is a private key or was issued
// by a service. It returns "" if the text is too long or has no such credential. Credentials that contain
// "example" or "xxxx", as in documentation, do not count.
func ServiceIssuedCredentialKindName(text string) string {
	if len(text) > MaxScannedTextBytes {
		return ""
	}
	for _, sp := range findCredentials(text, nil) {
		secret := strings.ToLower(text[sp.start:sp.end])
		if sp.kind == "private-key" && !privateKeyBodyPattern().MatchString(secret) {
			continue
		}
		if userChosenCredentialKinds[sp.kind] || strings.Contains(secret, "example") || strings.Contains(secret, "xxxx") {
			continue
		}
		return sp.kind
	}
	return ""
}

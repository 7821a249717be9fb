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

// privateKeyBodyPattern matches a part of a private key's content, which text that only mentions the header and
// footer lines does not have.
var privateKeyBodyPattern = prefilter.Lazy(`[A-Za-z0-9+/]{24}`)

// ServiceIssuedCredentialKindName returns the form of a credential in a text that a service issued, or of a private key; "" if
// there is none, the text is too long, or the credential is a known documentation example.
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

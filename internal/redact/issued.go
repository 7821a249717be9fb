package redact

import "strings"

// written are the forms whose secret anybody may have made up: where they stand in a
// file, they often are examples.
var written = map[string]bool{
	"setx": true, "aws-signature": true, "aws-signature-header": true, "json-web-token": true, "jwt": true, "authorization-header": true, "cookie-header": true,
	"session-cookie": true, "query-credential": true, "bearer-token": true, "url-password": true, "url-token": true, "netrc": true, "htpasswd-hash": true,
	"npmrc-auth": true, "docker-auth": true, "secret-key-prefix": true,
}

// Issued returns the name of the form of a credential in a text that a service has
// issued, or of a private key; "" if it holds none, is too long to be searched, or holds
// such as documents show.
func Issued(text string) string {
	if len(text) > MaxText {
		return ""
	}
	for _, sp := range credentials(text, nil) {
		secret := strings.ToLower(text[sp.start:sp.end])
		if written[sp.kind] || strings.Contains(secret, "example") || strings.Contains(secret, "xxxx") {
			continue
		}
		return sp.kind
	}
	return ""
}

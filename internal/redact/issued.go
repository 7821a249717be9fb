package redact

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// madeUpForms are the forms whose secret anybody may have made up: where they stand in a
// file, they often are examples.
var madeUpForms = map[string]bool{
	"setx": true, "aws-signature": true, "aws-signature-header": true, "json-web-token": true, "jwt": true, "authorization-header": true, "cookie-header": true,
	"session-cookie": true, "query-credential": true, "bearer-token": true, "url-password": true, "url-token": true, "netrc": true, "htpasswd-hash": true,
	"npmrc-auth": true, "docker-auth": true, "secret-key-prefix": true,
}

// keyBody is a part of what a private key holds between its first and last line: words
// around these lines, as in a message about keys, have none.
var keyBody = prefilter.Lazy(`[A-Za-z0-9+/]{24}`)

// Issued returns the name of the form of a credential in a text that a service has
// issued, or of a private key; "" if it holds none, is too long to be searched, or holds
// such as documents show.
func Issued(text string) string {
	if len(text) > MaxText {
		return ""
	}
	for _, sp := range credentials(text, nil) {
		secret := strings.ToLower(text[sp.start:sp.end])
		if sp.kind == "private-key" && !keyBody().MatchString(secret) {
			continue
		}
		if madeUpForms[sp.kind] || strings.Contains(secret, "example") || strings.Contains(secret, "xxxx") {
			continue
		}
		return sp.kind
	}
	return ""
}

package redact

import (
	"strings"
	"testing"
)

func TestIsSecretName(t *testing.T) {
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Cookie", "private-token", "dbPassword"} {
		if !IsSecretName(name) {
			t.Errorf("%q is not the name of a secret", name)
		}
	}
	for _, name := range [...]string{"Accept", "User-Agent", "password_policy", "public_key", "", strings.Repeat("password_", 100)} {
		if IsSecretName(name) {
			t.Errorf("%q is the name of a secret", name)
		}
	}
}

func TestHolds(t *testing.T) {
	if !ContainsCredential("body", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI7K7MDENGbPxRfiCYzzzzzzzzzzz") || !ContainsCredential("password", "hunter22") || !ContainsCredential("x", strings.Repeat("a ", MaxScannedTextBytes)) {
		t.Error("a credential is not seen")
	}
	if ContainsCredential("body", "The password is kept in the vault.") || ContainsCredential("", "") {
		t.Error("a credential is seen where none is")
	}
}

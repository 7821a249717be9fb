package redact

import "testing"

func TestIssued(t *testing.T) {
	for text, want := range map[string]string{
		"token ghp_16C7e42F292c6912E7710c838347" + "Ae178B4a":                                          "github-token",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7abcdefghijk\n-----END RSA PRIVATE KEY-----": "private-key",
		"AKIAIOSFODNN7" + "EXAMPLE":       "",
		"password = hunter2":              "",
		"postgres://u:secretpw@host/db":   "",
		"Authorization: Bearer abcdefghi": "",
		"nothing":                         "",
	} {
		if got := ServiceIssuedCredentialKindName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

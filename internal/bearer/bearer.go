// Package bearer authenticates HTTP clients by bearer tokens. Tokens and certificate keys are read
// from files that only their owner can read.
package bearer

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/shieldcli/shield/internal/owner"
)

// Limits of tokens that shield generates, and of files.
const (
	MinTokenBytes          = 32 // bytes
	minServiceTokenBytes   = 16 // least number of bytes of a token that another service issued
	maxCredentialFileBytes = 1 << 20
)

// Tokens are the names of the authorized clients, by the SHA-256 of their tokens. The name of a single
// client can be "".
type Tokens map[[sha256.Size]byte]string

// isClientName reports whether a word can be a client name, which appears in logs.
func isClientName(word string) bool {
	return len(word) <= 64 && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._@-", r)
	})
}

// LoadClientTokens reads a file with a line NAME TOKEN for each client, or, if allowUnnamedToken is
// set, a single token without a name. Empty lines and lines that begin with # are skipped. A file
// that other users can read is an error.
func LoadClientTokens(filePath string, allowUnnamedToken bool) (Tokens, error) {
	text, err := readPrivateFile(filePath)
	if err != nil {
		return nil, err
	}
	out := Tokens{}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		fail := func(what string) (Tokens, error) { return nil, fmt.Errorf("%s:%d: %s", filePath, i+1, what) }
		if allowUnnamedToken && len(words) == 1 && len(out) == 0 {
			words = []string{"", words[0]}
		}
		if len(words) != 2 || !isClientName(words[0]) {
			return fail("the line is not NAME TOKEN; write both, with a space between them")
		}
		if len(words[1]) < MinTokenBytes {
			return fail(fmt.Sprintf("the token has fewer than %d characters; make one with 'openssl rand -hex 32'", MinTokenBytes))
		}
		for _, other := range out {
			if other == "" {
				return fail("two tokens need names; write NAME TOKEN in each line")
			}
		}
		sum := sha256.Sum256([]byte(words[1]))
		if _, again := out[sum]; again {
			return fail("the token is the same as in an earlier line; make another with 'openssl rand -hex 32'")
		}
		out[sum] = words[0]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s contains no token; make one with 'openssl rand -hex 32'", filePath)
	}
	return out, nil
}

// ClientName returns the name of the client whose token a request has, if it has exactly one. Tokens are
// looked up by their hash, so that timing reveals nothing about other tokens.
func (t Tokens) ClientName(h http.Header) (name string, ok bool) {
	given := h.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	name, ok = t[sha256.Sum256([]byte(token))]
	return name, ok
}

// ReadServiceToken reads a file that contains one token for another service.
func ReadServiceToken(filePath string) (string, error) {
	b, err := readPrivateFile(filePath)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if len(text) < minServiceTokenBytes || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s must contain a token of at least %d printable ASCII characters; make one with 'openssl rand -hex 32'", filePath, minServiceTokenBytes)
	}
	return text, nil
}

// LoadTLSCertificate reads a certificate and its key.
func LoadTLSCertificate(certPath, keyPath string) (*tls.Certificate, error) {
	public, _, err := owner.ReadRegularFile(certPath, maxCredentialFileBytes)
	if err != nil {
		return nil, fmt.Errorf("tls_cert: %w", err)
	}
	secret, err := readPrivateFile(keyPath)
	if err != nil {
		return nil, fmt.Errorf("tls_key: %w", err)
	}
	pair, err := tls.X509KeyPair(public, secret)
	if err != nil {
		return nil, fmt.Errorf("the files of tls_cert and tls_key cannot be used: %w; set a certificate and its key, in PEM format", err)
	}
	return &pair, nil
}

// readPrivateFile reads a file that only its owner can read.
func readPrivateFile(name string) ([]byte, error) {
	text, info, err := owner.ReadRegularFile(name, maxCredentialFileBytes)
	if err == nil {
		err = owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits)
	}
	if err != nil {
		return nil, errors.Join(err, fmt.Errorf("the token file %s must belong to you and have mode 0600; correct both with chown and chmod", name))
	}
	return text, nil
}

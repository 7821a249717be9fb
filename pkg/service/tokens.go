package service

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/shieldcli/shield/internal/owner"
)

// MinToken is how long a token has to be, in bytes.
const MinToken = 32

// Tokens say who asks over HTTP.
type Tokens map[[sha256.Size]byte]string

// isName reports whether a word can be a name of who asks: it stands in logs.
func isName(word string) bool {
	return len(word) <= 64 && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._@-", r)
	})
}

// LoadTokens reads a file with a line NAME TOKEN for each who may ask. Empty lines and
// those that begin with # are skipped. One that others than its owner can read is an error.
func LoadTokens(name string) (Tokens, error) {
	text, err := private(name)
	if err != nil {
		return nil, fmt.Errorf("serve.tokens_file: %w", err)
	}
	out := Tokens{}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		fail := func(what string) (Tokens, error) {
			return nil, fmt.Errorf("serve.tokens_file %s:%d: %s", name, i+1, what)
		}
		if len(words) != 2 || !isName(words[0]) {
			return fail("not a line NAME TOKEN")
		}
		if len(words[1]) < MinToken {
			return fail(fmt.Sprintf("the token has fewer than %d characters; make one with 'openssl rand -hex 32'", MinToken))
		}
		sum := sha256.Sum256([]byte(words[1]))
		if _, again := out[sum]; again {
			return fail("the token stands in an earlier line")
		}
		out[sum] = words[0]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("serve.tokens_file %s: holds no token", name)
	}
	return out, nil
}

// who returns whose token an Authorization header holds. Tokens are looked up by
// their hash, so the time that takes says nothing about others.
func (t Tokens) who(header string) (name string, ok bool) {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	name, ok = t[sha256.Sum256([]byte(token))]
	return name, ok
}

// loadCertificate reads a certificate and its key.
func loadCertificate(cert, key string) (*tls.Certificate, error) {
	public, _, err := owner.ReadFile(cert, maxFile)
	if err != nil {
		return nil, fmt.Errorf("serve.tls_cert: %w", err)
	}
	secret, err := private(key)
	if err != nil {
		return nil, fmt.Errorf("serve.tls_key: %w", err)
	}
	pair, err := tls.X509KeyPair(public, secret)
	if err != nil {
		return nil, fmt.Errorf("serve.tls_cert, serve.tls_key: %w", err)
	}
	return &pair, nil
}

const maxFile = 1 << 20 // bytes

// private reads a file that only its owner can read.
func private(name string) ([]byte, error) {
	text, info, err := owner.ReadFile(name, maxFile)
	if err == nil {
		err = owner.Check(info, owner.Access)
	}
	if err != nil {
		return nil, errors.Join(err, fmt.Errorf("use a file of your own with mode 0600: %s", name))
	}
	return text, nil
}

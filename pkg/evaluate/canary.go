package evaluate

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
)

// canaryBytes is the entropy of a canary drawn for one request.
const canaryBytes = 32

// token draws n random bytes and returns them in hex.
func token(random io.Reader, n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("draw random bytes: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// sameCanary compares two canaries in a time that does not depend on where
// they differ.
func sameCanary(got, want string) bool {
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// checkCanary refuses a configured canary that could be guessed or that would
// not survive being copied by a model.
func checkCanary(s string) error {
	if len(s) < 16 || len(s) > 128 {
		return fmt.Errorf("canary_token: %d characters, want 16 to 128; leave it empty for a fresh one each request", len(s))
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' || s[i] == '{' {
			return fmt.Errorf(`canary_token: character %d is not a printable ASCII letter, digit or sign other than ", \ and {`, i+1)
		}
	}
	return nil
}

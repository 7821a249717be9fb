package evaluate

import (
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// untrustedDataBoundaryBytes is the number of random bytes in the boundary of one request. The text
// of the action cannot contain the boundary, since the boundary is generated after the action was
// written.
const untrustedDataBoundaryBytes = 8

// canaryRandomBytes is the number of random bytes in a canary.
const canaryRandomBytes = 32

// randomHex returns n random bytes in hex.
func randomHex(random io.Reader, n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("draw random bytes: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// sameCanary compares two canaries in constant time.
func sameCanary(got, want string) bool {
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// containsCanaryInAnyForm reports whether a text reveals a canary or a large part of it in any spelling: in
// upper case, reversed, with other characters in between, in pieces, or encoded. It is also true if the text has
// more encoded text than shield decodes.
func containsCanaryInAnyForm(text, canary string) bool {
	if canary == "" {
		return false
	}
	m := newCanaryMatcher(canary)
	if m.foundIn(text) {
		return true
	}
	found := false
	whole := decode.VisitPossibleDecodings([]string{text}, func(l decode.DecodedLayer) bool {
		found = m.foundIn(l.Text)
		return !found
	})
	return found || !whole
}

// A canaryMatcher finds a canary, or a revealing part of it, in a text.
type canaryMatcher struct {
	canary              string // only letters and digits, see [lettersAndDigits]
	minCanaryPartLength int    // minimum length of a part of canary that reveals it, in characters
	encodedForms        []string
}

// newCanaryMatcher returns the matcher of a canary. Eight digits of a random canary reveal it,
// since they do not occur by chance; of a configured canary, which may consist of words, a longer
// part is required.
func newCanaryMatcher(canary string) canaryMatcher {
	m := canaryMatcher{canary: lettersAndDigits(canary), minCanaryPartLength: 8}
	b, err := hex.DecodeString(canary)
	if err != nil {
		m.minCanaryPartLength = max(8, len(m.canary)*3/4)
		return m
	}
	slices.Reverse(b)
	back := base64.RawStdEncoding.EncodeToString(b)
	slices.Reverse(b)
	m.encodedForms = []string{lettersAndDigits(base64.RawStdEncoding.EncodeToString(b)), lettersAndDigits(back), lettersAndDigits(base32.StdEncoding.EncodeToString(b))}
	return m
}

// foundIn reports whether a text, without further decoding, contains the canary, a revealing part
// of it, or an encoded form.
func (m canaryMatcher) foundIn(text string) bool {
	text = strings.ToLower(decode.FoldUnicodeLookalikes(text))
	for _, form := range [...]string{lettersAndDigits(text), concatenateHexNumberWords(text, false), concatenateHexNumberWords(text, true)} {
		for _, raw := range m.encodedForms {
			if strings.Contains(form, raw) {
				return true
			}
		}
		if m.containsCanaryPart(form) {
			return true
		}
		back := []byte(form)
		slices.Reverse(back)
		if m.containsCanaryPart(string(back)) {
			return true
		}
	}
	return false
}

// containsCanaryPart reports whether a text reduced to letters and digits contains a revealing part of the canary.
func (m canaryMatcher) containsCanaryPart(alphanumericText string) bool {
	n := min(m.minCanaryPartLength, len(m.canary))
	for i := 0; i+n <= len(m.canary); i++ {
		if strings.Contains(alphanumericText, m.canary[i:i+n]) {
			return true
		}
	}
	return false
}

// lettersAndDigits returns the ASCII letters and digits of a text, in lower case.
func lettersAndDigits(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}

// concatenateHexNumberWords joins the words of a text that are hexadecimal numbers, to find a canary split over
// a sentence. If requiresDecimalDigit is set, a word must have a decimal digit, so that "a" and
// "be" do not count.
func concatenateHexNumberWords(s string, requiresDecimalDigit bool) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "x")
		if strings.Trim(word, "0123456789abcdef") == "" && (!requiresDecimalDigit || strings.ContainsAny(word, "0123456789")) {
			b.WriteString(word)
		}
	}
	return b.String()
}

// checkConfiguredCanaryFormat returns an error for a configured canary that is shorter than 16 or longer than
// 128 characters, or that has a character which a model might not copy exactly.
func checkConfiguredCanaryFormat(canary string) error {
	if len(canary) < 16 || len(canary) > 128 {
		return fmt.Errorf("canary_token has %d characters instead of 16 to 128; leave it empty to get a fresh one for each request", len(canary))
	}
	for i := range len(canary) {
		if canary[i] <= ' ' || canary[i] > '~' || canary[i] == '"' || canary[i] == '\\' || canary[i] == '{' {
			return fmt.Errorf(`canary_token: character %d is not allowed; use printable ASCII characters without spaces, ", \ and {`, i+1)
		}
	}
	return nil
}

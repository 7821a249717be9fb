package session

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A HashedSensitiveValue is a credential that a session has read, or a word of a private file, as
// hashes with a key of this installation; the text itself is not stored.
type HashedSensitiveValue struct {
	Length               int // bytes
	Hash                 []byte
	PrefixShortHash      uint32   // short hash of the first ngramBytes bytes of the value
	NGramHashes          []byte   // short and long hash of each stored piece of ngramBytes bytes; empty if the value only matches whole
	ServiceHostNameWords []string // word in the names of its service's hosts or, if its service is unknown, words of the credential's name; also host names: they show which hosts belong to its service
	IsPrivateFileWord    bool     // not a credential, but a word of a private file that is unlikely to occur in other texts
}

// Bounds of the stored sensitive values (credentials and words of private files) and of their hashes.
const (
	minSensitiveValueBytes       = 8   // bytes; shorter values occur by chance
	minNonCoincidentalValueBytes = 16  // bytes from which a value cannot occur by chance
	maxValueBytes                = 512 // bytes of a value that are split into pieces
	ngramBytes                   = 8   // bytes
	storedShortHashBytes         = 3
	shortHashBits                = 20 // bits of a piece's short hash (tag): fast, reveals little, and differs for most pieces of other texts
	valueHashBytes               = 16
	ngramHashBytes               = 8
	storedNGramBytes             = storedShortHashBytes + ngramHashBytes // bytes stored per piece
	maxSensitiveValuesPerGroup   = 1024                                  // maximum number of values in a storage group, which belongs to one user or one session
	maxSensitiveValuesPerSource  = 64                                    // per file or result
	maxPrivateTextBytes          = 1 << 16                               // bytes of a private text that are read
	maxHashedNGrams              = 1 << 17                               // per action: pieces of its texts that are compared by long hash, after their short hashes matched
	minEntropyBitsPerByte        = 3.0                                   // entropy of a random-looking text, in bits per byte
)

// privateFileWordPattern matches what may be a number, an address or a name in a private file.
var privateFileWordPattern = prefilter.LazyRegexp(`[A-Za-z0-9@._:/%+-]{8,}`)

// privateValues returns the words of a private text that are rare in other texts: those with a digit and a
// letter, and e-mail addresses.
func (h *hasher) privateValues(text string) (out []HashedSensitiveValue) {
	for _, word := range privateFileWordPattern().FindAllString(text[:min(len(text), maxPrivateTextBytes)], maxSensitiveValuesPerSource) {
		if word = strings.Trim(word, ".:/-"); len(word) >= minSensitiveValueBytes && (characterClassCount(word) > 1 && strings.ContainsAny(word, "0123456789") || strings.Contains(word[1:], "@")) {
			out = append(out, HashedSensitiveValue{Length: len(word), Hash: slices.Clone(h.hash(word)[:valueHashBytes]), PrefixShortHash: h.ngramShortHash(littleEndianUint64At(word, 0)), IsPrivateFileWord: true})
		}
	}
	return out
}

// characterClassCount returns how many of the classes digit, lower-case and upper-case letter a text has.
func characterClassCount(s string) (n int) {
	for _, set := range [...]string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		if strings.ContainsAny(s, set) {
			n++
		}
	}
	return n
}

// assignmentPattern matches a line of a configuration file.
var assignmentPattern = prefilter.LazyRegexp(`(?m)^\s*(?:export\s+)?["']?([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*[=:]\s*["']?([^\s"',;]+)`)

// credentialValues returns the stored form of the credentials in a text. isCredentialStore means
// that the text is a credential store, in which random-looking words count. senderHost is the host
// that sent the text, where its credentials are valid; "" if unknown.
func (h *hasher) credentialValues(text string, isCredentialStore bool, senderHost string) (out []HashedSensitiveValue) {
	var seen []string
	signIn := hostByURLPassword(text)
	add := func(value, name string) {
		value = strings.Trim(value, " \t\r\n\"'")
		if len(value) >= minSensitiveValueBytes && len(out) < maxSensitiveValuesPerSource && !slices.Contains(seen, value) && !isTestPassword(value) {
			seen = append(seen, value)
			v := h.hashSensitiveValue(value, name)
			for _, host := range [...]string{senderHost, signIn[value]} {
				if host != "" {
					v.ServiceHostNameWords = append(v.ServiceHostNameWords, host)
				}
			}
			out = append(out, v)
		}
	}
	found := redact.FindDecodedCredentials(text)
	for _, m := range assignmentPattern().FindAllStringSubmatch(text, 4*maxSensitiveValuesPerSource) {
		if slices.Contains(found, m[2]) || redact.IsSecretName(m[1]) && !strings.Contains(m[2], "://") && looksRandom(m[2]) || isCredentialStore && len(m[2]) >= minNonCoincidentalValueBytes && looksRandom(m[2]) {
			add(m[2], m[1])
		}
	}
	for _, value := range found {
		for line := range strings.Lines(value) { // a private key in PEM format has several lines
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				add(line, "")
			}
		}
	}
	if !isCredentialStore {
		return out
	}
	for _, word := range namelessCredentialPattern().FindAllString(text, 4*maxSensitiveValuesPerSource) {
		within := func(value string) bool { return strings.Contains(value, word) }
		if looksLikeCredential(word) && !slices.ContainsFunc(seen, within) {
			add(word, "")
		}
	}
	return out
}

// namelessCredentialPattern matches words of a credential store that may be a credential without a name.
var namelessCredentialPattern = prefilter.LazyRegexp(`[A-Za-z0-9+/_!%~-]{16,}={0,2}`)

// looksLikeCredential reports whether a word looks like a credential.
func looksLikeCredential(word string) bool {
	if len(word) >= 2*minNonCoincidentalValueBytes && strings.Trim(word, "0123456789abcdef") == "" {
		return true
	}
	return characterClassCount(word) == 3 && looksRandom(word)
}

// looksRandom reports whether a text has the entropy of a credential, and is not a path, an address or
// a word.
func looksRandom(s string) bool {
	if len(s) < minSensitiveValueBytes || strings.ContainsAny(s, " ${}<>()") || strings.HasPrefix(s, "/") && (len(s) < 32 || characterClassCount(s) < 3 || strings.Contains(s, ".")) || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "~") || strings.Contains(s, "://") {
		return false
	}
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return characterClassCount(s) > 1 && bits >= min(minEntropyBitsPerByte, math.Log2(float64(len(s)))-0.5)
}

// credentialsInReadFiles returns the values in the credential files that a case reads.
func (h *hasher) credentialsInReadFiles(c *analysis.ActionCase) (out []HashedSensitiveValue) {
	place := c.ExecutionContext()
	if place.ReadScript == nil {
		return nil
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.ReadFile || e.PathIsPattern || e.Certainty == effect.Possible || !effect.IsSecretPath(e.Path, false) || len(out) >= maxSensitiveValuesPerSource {
			continue
		}
		if text, err := place.ReadScript(e.Path); err == nil {
			out = append(out, h.credentialValues(string(text), path.Ext(e.Path) != ".md", "")...)
		}
	}
	return out[:min(len(out), maxSensitiveValuesPerSource)]
}

package redact

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// hints are what every name of a secret has in it, in small letters.
var hints = [...]string{"pass", "pw", "secret", "sas", "sig", "token", "cred", "cookie", "webhook", "key", "auth", "bearer"}

// hintPairs are the pairs of bytes with which hints begin.
var hintPairs = func() (set bytePairs) {
	for _, h := range hints {
		set.add(h)
	}
	return set
}()

// hasSecretHint says whether s begins with one of the words that every name of a
// secret has in it.
func hasSecretHint(s string) bool {
	if len(s) < 2 || !hintPairs.begin(s) {
		return false
	}
	for _, h := range hints {
		if h[0] == s[0]|0x20 && hasFold(s, h) {
			return true
		}
	}
	return false
}

// mentionsSecret says whether a name may be one of a secret.
func mentionsSecret(name string) bool {
	for i := range len(name) {
		if hasSecretHint(name[i:]) {
			return true
		}
	}
	return false
}

// assignments returns the values in s whose names give them away, in the
// notations of shells, programming languages, YAML, JSON and command lines.
func assignments(s string, spans []span) []span {
	for i, last := 0, 0; i+1 < len(s); i++ {
		if !hintPairs.begin(s[i:]) || !hasSecretHint(s[i:]) {
			continue
		}
		start, end := i, i
		for start > last && nameByte(s[start-1]) {
			start--
		}
		for end < len(s) && nameByte(s[end]) {
			end++
		}
		name := s[start:end]
		i, last = end-1, end
		if inMark(s[:start]) {
			continue // what is after a mark was read with the name that the mark replaced
		}
		from, to := value(s, end, strings.HasPrefix(name, "--"))
		if from == to {
			continue
		}
		if kind := sensitive(name, s[from:to]); kind != "" {
			spans = append(spans, newSpan(s, from, to, kind))
			i, last = to-1, to
		}
	}
	return spans
}

// inMark says whether a mark is open where s ends.
func inMark(s string) bool {
	const longest = 64 // bytes of a kind
	s = s[max(0, len(s)-longest):]
	at := strings.LastIndex(s, openMark)
	return at >= 0 && !strings.Contains(s[at:], "]")
}

func nameByte(c byte) bool { return nameBytes[c] }

var nameBytes = func() (set [256]bool) {
	for _, c := range []byte(letters + "0123456789_-.") {
		set[c] = true
	}
	return set
}()

// maxValue is the longest value that is looked at, in bytes.
const maxValue = 1000

// value returns where the value stands that is given to the name that ends at
// i, or two equal numbers if there is none.
func value(s string, i int, option bool) (from, to int) {
	for n := 0; n < 2 && i < len(s) && strings.IndexByte("\"'`]", s[i]) >= 0; n++ {
		i++
	}
	after := i
	i = skipSpace(s, i)
	switch {
	case strings.HasPrefix(s[i:], "=>"), strings.HasPrefix(s[i:], ":="), strings.HasPrefix(s[i:], "=="):
		i = skipSpace(s, i+2)
	case i < len(s) && (s[i] == '=' || s[i] == ':'):
		i = skipSpace(s, i+1)
	case option && i > after: // --password VALUE
	default:
		return 0, 0 // a word in a sentence
	}
	if i >= len(s) {
		return 0, 0
	}
	if q := s[i]; q == '"' || q == '\'' || q == '`' {
		for to = i + 1; to < len(s) && to-i <= maxValue && s[to] != q && s[to] != '\n'; to++ {
		}
		return i + 1, to
	}
	for to = i; to < len(s) && to-i < maxValue && strings.IndexByte(" \t\r\n\"'`&;,|<>(){}[]", s[to]) < 0; to++ {
	}
	if to < len(s) && s[to] == '(' { // a call
		return 0, 0
	}
	return i, to
}

// skipSpace passes over three spaces at most.
func skipSpace(s string, i int) int {
	for n := 0; n < 3 && i < len(s) && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	return i
}

// sensitive returns the kind of the secret that name holds, or "" if value is
// none: a password may be any word, a key must look random.
func sensitive(name, value string) string {
	if name == "" || len(value) < 4 || len(name) > 200 {
		return ""
	}
	switch kind := nameKind(name); {
	case kind == "password" && !placeholder(value):
		return "password"
	case kind == "key" && random(value) && !placeholder(value) && !strings.Contains(value, `\`): // that is DOMAIN\user
		return "key"
	}
	return ""
}

// nameKind returns "password", "key" or "" by the words of a name, as in
// db_password, apiKey or --client-secret.
func nameKind(name string) string {
	if !mentionsSecret(name) {
		return ""
	}
	words := split(name)
	if len(words) == 0 {
		return ""
	}
	if nameWords()[words[len(words)-1]] == "about" {
		return ""
	}
	kind := ""
	known := nameWords()
	for i, w := range words {
		switch known[w] {
		case "password":
			return "password"
		case "last":
			if i == len(words)-1 {
				return "password"
			}
		case "key":
			kind = "key"
		case "public":
			return ""
		}
		if w == "key" && i > 0 && slices.Contains(knowledge.SecretNames.Owners, words[i-1]) {
			kind = "key"
		}
		for _, end := range knowledge.SecretNames.Endings {
			if strings.HasSuffix(w, end) {
				return "password"
			}
		}
	}
	return kind
}

// nameWords says what the words of names mean.
var nameWords = sync.OnceValue(func() map[string]string {
	words := map[string]string{}
	for meaning, list := range map[string][]string{
		"password": knowledge.SecretNames.Passwords, "last": knowledge.SecretNames.Last,
		"key": knowledge.SecretNames.Keys, "about": knowledge.SecretNames.About,
		"public": knowledge.SecretNames.Public,
	} {
		for _, w := range list {
			words[w] = meaning
		}
	}
	return words
})

// split cuts a name into its words, in lower case.
func split(name string) []string {
	var words []string
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z':
			cut(i)
			start = i + 1
		case 'A' <= c && c <= 'Z' && i > start && name[i-1] >= 'a':
			cut(i)
			start = i
		}
	}
	cut(len(name))
	return words
}

// placeholder says whether a value only stands for a secret that is elsewhere.
func placeholder(v string) bool {
	v = strings.TrimSpace(v)
	if v == "" || isRedactionMark(v) || strings.Trim(v, v[:1]) == "" || strings.Trim(v, "xX*.-_") == "" {
		return true
	}
	switch v[0] {
	case '$':
		return variable(v[1:])
	case '<', '%', '{', '/', '~':
		return true
	}
	if cmdlet(v) {
		return true
	}
	v = strings.ToLower(v)
	for _, p := range [...]string{"os.", "process.", "env.", "env[", "getenv", "config.", "settings.", "self.", "this.", "args.", "ctx.", "your", "..."} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return strings.Contains(" none null true false undefined string bytes text optional required example redacted password secret token prompt stdin auto ", " "+strings.TrimRight(v, "?!.")+" ")
}

// cmdlet says whether v is the name of a PowerShell command, which computes what
// is assigned.
func cmdlet(v string) bool {
	verb, noun, ok := strings.Cut(v, "-")
	return ok && noun != "" && slices.Contains(knowledge.SecretNames.Verbs, strings.ToLower(verb)) && strings.Trim(noun, letters) == ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// variable says whether what follows a "$" is the name of a variable or what a
// shell computes, and nothing more.
func variable(v string) bool {
	if v != "" && (v[0] == '{' || v[0] == '(' || v[0] == '$') {
		return true
	}
	for i := range len(v) {
		if !nameByte(v[i]) && v[i] != ':' && v[i] != '[' {
			return false
		}
	}
	return true
}

// random says whether a value looks drawn rather than written.
func random(v string) bool {
	if len(v) < 8 || strings.ContainsAny(v, " \t\n") {
		return false
	}
	digit, up, low := false, false, false
	for i := range len(v) {
		c := v[i]
		digit = digit || '0' <= c && c <= '9'
		up = up || 'A' <= c && c <= 'Z'
		low = low || 'a' <= c && c <= 'z'
	}
	switch e := entropy(v); {
	case len(v) < 12:
		return e >= 2.5 && digit && (up || low)
	case len(v) < 24:
		return e >= 3 && digit && (up || low)
	default:
		return e >= 3 && (digit || up && low)
	}
}

package redact

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// secretNameHints are lower-case words of which every name of a secret contains one.
var secretNameHints = [...]string{"pass", "pw", "secret", "sas", "sig", "token", "cred", "cookie", "webhook", "key", "auth", "bearer"}

// secretNameHintFirstTwoBytes are the first two bytes of hints.
var secretNameHintFirstTwoBytes = func() (set wordFirstTwoBytesSet) {
	for _, h := range secretNameHints {
		set.add(h)
	}
	return set
}()

// hasSecretNameHintPrefix reports whether s begins with a word of secretNameHints, in any letter case.
func hasSecretNameHintPrefix(s string) bool {
	if len(s) < 2 || !secretNameHintFirstTwoBytes.containsFirstTwoBytesOf(s) {
		return false
	}
	for _, h := range secretNameHints {
		if h[0] == s[0]|0x20 && hasPrefixFold(s, h) {
			return true
		}
	}
	return false
}

// containsSecretNameHint reports whether a name can be that of a secret.
func containsSecretNameHint(name string) bool {
	for i := range len(name) {
		if hasSecretNameHintPrefix(name[i:]) {
			return true
		}
	}
	return false
}

// findAssignedSecrets returns the values in s that are assigned to names of secrets, in the notations of
// shells, programming languages, YAML, JSON and command lines.
func findAssignedSecrets(s string, spans []secretSpan) []secretSpan {
	for i, last := 0, 0; i+1 < len(s); i++ {
		if !secretNameHintFirstTwoBytes.containsFirstTwoBytesOf(s[i:]) || !hasSecretNameHintPrefix(s[i:]) {
			continue
		}
		start, end := i, i
		for start > last && isVariableOrProgramNameByte(s[start-1]) {
			start--
		}
		for end < len(s) && isVariableOrProgramNameByte(s[end]) {
			end++
		}
		name := s[start:end]
		i, last = end-1, end
		if endsInsideRedactionMark(s[:start]) {
			continue // the name is in a redaction mark; the value after the mark was examined before the mark was inserted
		}
		from, to := findAssignedValue(s, end, strings.HasPrefix(name, "--"))
		if from == to {
			continue
		}
		if kind := secretKind(name, s[from:to]); kind != "" {
			spans = append(spans, newSpan(s, from, to, kind))
			i, last = to-1, to
		}
	}
	return spans
}

// endsInsideRedactionMark reports whether a redaction mark is still open at the end of s.
func endsInsideRedactionMark(s string) bool {
	const longest = 64 // upper bound for the length of a redaction mark, in bytes
	s = s[max(0, len(s)-longest):]
	at := strings.LastIndex(s, redactionMarkPrefix)
	return at >= 0 && !strings.Contains(s[at:], "]")
}

func isVariableOrProgramNameByte(c byte) bool { return variableOrProgramNameBytes[c] }

var variableOrProgramNameBytes = func() (set [256]bool) {
	for _, c := range []byte(letters + "0123456789_-.") {
		set[c] = true
	}
	return set
}()

// maxAssignedValueBytes is the maximum length of an examined value, in bytes.
const maxAssignedValueBytes = 1000

// findAssignedValue returns the position of the value assigned to the name that ends at nameEnd;
// two equal numbers if there is none.
func findAssignedValue(s string, nameEnd int, allowsSpaceSeparator bool) (valueStart, valueEnd int) {
	for n := 0; n < 2 && nameEnd < len(s) && strings.IndexByte("\"'`]", s[nameEnd]) >= 0; n++ {
		nameEnd++
	}
	after := nameEnd
	nameEnd = skipSpace(s, nameEnd)
	switch {
	case strings.HasPrefix(s[nameEnd:], "=>"), strings.HasPrefix(s[nameEnd:], ":="), strings.HasPrefix(s[nameEnd:], "=="):
		nameEnd = skipSpace(s, nameEnd+2)
	case nameEnd < len(s) && (s[nameEnd] == '=' || s[nameEnd] == ':'):
		nameEnd = skipSpace(s, nameEnd+1)
	case allowsSpaceSeparator && nameEnd > after: // --password VALUE
	default:
		return 0, 0 // a word in a sentence
	}
	if nameEnd >= len(s) {
		return 0, 0
	}
	if q := s[nameEnd]; q == '"' || q == '\'' || q == '`' {
		for valueEnd = nameEnd + 1; valueEnd < len(s) && valueEnd-nameEnd <= maxAssignedValueBytes && s[valueEnd] != q && s[valueEnd] != '\n'; valueEnd++ {
		}
		return nameEnd + 1, valueEnd
	}
	for valueEnd = nameEnd; valueEnd < len(s) && valueEnd-nameEnd < maxAssignedValueBytes && strings.IndexByte(" \t\r\n\"'`&;,|<>(){}[]", s[valueEnd]) < 0; valueEnd++ {
	}
	if valueEnd < len(s) && s[valueEnd] == '(' { // a function call
		return 0, 0
	}
	return nameEnd, valueEnd
}

// skipSpace passes over three spaces at most.
func skipSpace(s string, i int) int {
	for n := 0; n < 3 && i < len(s) && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	return i
}

// secretKind returns the kind of secret that a named value is: "password" or "key", or "" if the
// value is not a secret. A password can be any word, but a key must look random.
func secretKind(name, value string) string {
	if name == "" || len(value) < 4 || len(name) > 200 {
		return ""
	}
	switch kind := secretKindOfName(name); {
	case kind == "password" && !isPlaceholder(value):
		return "password"
	case kind == "key" && looksRandom(value) && !isPlaceholder(value) && !strings.Contains(value, `\`): // without DOMAIN\user
		return "key"
	}
	return ""
}

// secretKindOfName returns "password", "key" or "", by the words in a name such as db_password, apiKey or
// --client-secret.
func secretKindOfName(name string) string {
	if !containsSecretNameHint(name) {
		return ""
	}
	words := splitNameIntoWords(name)
	if len(words) == 0 {
		return ""
	}
	if secretKindByNameWord()[words[len(words)-1]] == "about" {
		return ""
	}
	kind := ""
	known := secretKindByNameWord()
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
		if w == "key" && i > 0 && slices.Contains(knowledge.SecretNames.SecretKeyPrefixWords, words[i-1]) {
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

// secretKindByNameWord maps words in names to the kind of secret that they mean.
var secretKindByNameWord = sync.OnceValue(func() map[string]string {
	words := map[string]string{}
	for meaning, list := range map[string][]string{
		"password": knowledge.SecretNames.Passwords, "last": knowledge.SecretNames.PasswordWordsOnlyAtEnd,
		"key": knowledge.SecretNames.RandomLookingSecretWords, "about": knowledge.SecretNames.SecretPropertyWords,
		"public": knowledge.SecretNames.NonSecretWords,
	} {
		for _, w := range list {
			words[w] = meaning
		}
	}
	return words
})

// splitNameIntoWords splits a name into its words, in lower case.
func splitNameIntoWords(name string) []string {
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

// isPlaceholder reports whether a value is a placeholder or reference instead of a secret.
func isPlaceholder(v string) bool {
	v = strings.TrimSpace(v)
	if v == "" || isRedactionMark(v) || strings.Trim(v, v[:1]) == "" || strings.Trim(v, "xX*.-_") == "" {
		return true
	}
	switch v[0] {
	case '$':
		return isVariableNameOrExpansion(v[1:])
	case '<', '%', '{', '/', '~':
		return true
	}
	if isCmdlet(v) {
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

// isCmdlet reports whether v is the name of a PowerShell command, whose result is assigned.
func isCmdlet(v string) bool {
	verb, noun, ok := strings.Cut(v, "-")
	return ok && noun != "" && slices.Contains(knowledge.SecretNames.ValueComputingCmdletVerbs, strings.ToLower(verb)) && strings.Trim(noun, letters) == ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isVariableNameOrExpansion reports whether the text after a "$" is only a variable name or a shell expansion.
func isVariableNameOrExpansion(textAfterDollar string) bool {
	if textAfterDollar != "" && (textAfterDollar[0] == '{' || textAfterDollar[0] == '(' || textAfterDollar[0] == '$') {
		return true
	}
	for i := range len(textAfterDollar) {
		if !isVariableOrProgramNameByte(textAfterDollar[i]) && textAfterDollar[i] != ':' && textAfterDollar[i] != '[' {
			return false
		}
	}
	return true
}

// looksRandom reports whether a value looks randomly generated.
func looksRandom(v string) bool {
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

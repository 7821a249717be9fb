// Package sqltext cuts text in SQL into statements and words.
package sqltext

import "strings"

// FindDestructiveStatement returns the verb and the object of the first statement that drops or empties a
// database, a schema or a table; "" if there is none. A quoted object is "".
func FindDestructiveStatement(text string) (verb, object string) {
	for text != "" {
		var statement string
		statement, text = NextStatement(text)
		words := ParseWords(statement)
		at := 1
		switch verb = words.WordAt(0); {
		case verb == "drop" && (words.WordAt(1) == "table" || words.WordAt(1) == "database" || words.WordAt(1) == "schema"):
			at = 2
		case verb == "truncate" && words.WordAt(1) == "table":
			at = 2
		case verb == "truncate":
		case verb == "delete" && words.WordAt(1) == "from" && words.AffectsEveryRow():
			at = 2
		default:
			continue
		}
		if words.WordAt(at) == "if" && words.WordAt(at+1) == "exists" {
			at += 2
		}
		return verb, words.WordAt(at)
	}
	return "", ""
}

// NextStatement cuts off the first statement. Semicolons in quotes and
// comments do not end one.
func NextStatement(s string) (statement, rest string) {
	t := strings.TrimLeft(s, " \t\r\n;")
	if strings.HasPrefix(t, ".") || strings.HasPrefix(t, `\`) {
		statement, rest, _ = strings.Cut(t, "\n")
		return statement, rest
	}
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c == ';':
			return t[:i], t[i+1:]
		case c == '\'' || c == '"' || c == '`':
			end := strings.IndexByte(t[i+1:], c)
			if end < 0 {
				return t, ""
			}
			i += end + 1
		case c == '-' && strings.HasPrefix(t[i:], "--"):
			end := strings.IndexByte(t[i:], '\n')
			if end < 0 {
				return t, ""
			}
			i += end
		case strings.HasPrefix(t[i:], "/*") && !strings.HasPrefix(t[i:], "/*!"): // MySQL executes the text after "/*!"
			if end := strings.Index(t[i+2:], "*/"); end >= 0 {
				i += end + 3
			}
		}
	}
	return t, ""
}

// StatementWords is the words of a statement outside quotes and comments, in lower
// case.
type StatementWords struct {
	Words                  [96]string
	StoredWordCount        int
	HasMoreWordsThanStored bool // there were more words than list holds
}

// WordAt returns the stored word with index i, counted from 0; "" if i is beyond the last stored word.
func (t *StatementWords) WordAt(i int) string {
	if i < t.StoredWordCount {
		return t.Words[i]
	}
	return ""
}

// HasWord reports whether a statement contains a word. It also returns true for a statement with
// more words than were stored.
func (t *StatementWords) HasWord(word string) bool {
	for i := range t.StoredWordCount {
		if t.Words[i] == word {
			return true
		}
	}
	return t.HasMoreWordsThanStored
}

// AffectsEveryRow reports whether a statement has no condition, or one that always
// holds.
func (t *StatementWords) AffectsEveryRow() bool {
	for i := range t.StoredWordCount {
		if t.Words[i] == "where" {
			rest := t.WordAt(i + 1)
			return rest == "true" && i+2 >= t.StoredWordCount || rest != "" && rest == t.WordAt(i+2) && i+3 >= t.StoredWordCount
		}
	}
	return !t.HasMoreWordsThanStored
}

// ParseWords returns the words of a statement.
func ParseWords(s string) (t StatementWords) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\'' || c == '"' || c == '`':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return t
			}
			i += end + 2
		case strings.HasPrefix(s[i:], "--"):
			end := strings.IndexByte(s[i:], '\n')
			if end < 0 {
				return t
			}
			i += end
		case strings.HasPrefix(s[i:], "/*!"):
			// MySQL executes the text of a comment that begins with "/*!"; a version number can
			// come first.
			for i += 3; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
			}
		case strings.HasPrefix(s[i:], "/*"):
			end := strings.Index(s[i+2:], "*/")
			if end < 0 {
				return t
			}
			i += end + 4
		case isWordByte(c) || c == '\\' || c == '.':
			start := i
			for i++; i < len(s) && (isWordByte(s[i]) || s[i] == '!'); i++ {
			}
			if t.StoredWordCount == len(t.Words) {
				t.HasMoreWordsThanStored = true
				return t
			}
			t.Words[t.StoredWordCount] = strings.ToLower(s[start:i])
			t.StoredWordCount++
		default:
			i++
		}
	}
	return t
}

func isWordByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Package sqltext cuts text in SQL into statements and words.
package sqltext

import "strings"

// FindDestructiveStatement returns the verb and the objects of the first statement that drops or empties
// databases, schemas or tables; "" if there is none. The objects are in lower case, and nil if they cannot be read.
func FindDestructiveStatement(text string) (verb string, objects []string) {
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
		return verb, parseObjects(statement, words.Words[:at])
	}
	return "", nil
}

// parseObjects returns the names, separated by commas, that come after the first words of a statement; nil if
// one cannot be read.
func parseObjects(statement string, firstWords []string) (objects []string) {
	rest := statement
	for _, w := range firstWords {
		var ok bool
		if rest, ok = cutKeyword(rest, w); !ok {
			return nil // a quoted "table" is a name
		}
	}
	if after, ok := cutKeyword(rest, "if"); ok {
		if after, ok = cutKeyword(after, "exists"); ok {
			rest = after
		}
	}
	for {
		if firstWords[0] != "drop" {
			rest, _ = cutKeyword(rest, "only")
		}
		name, after := cutName(rest)
		if name == "" {
			return nil
		}
		objects = append(objects, name)
		after = skipBlanksAndComments(strings.TrimPrefix(after, "*")) // PostgreSQL: with the tables that inherit
		if !strings.HasPrefix(after, ",") {
			return objects
		}
		rest = after[1:]
	}
}

// cutKeyword cuts a word off the beginning of a statement.
func cutKeyword(s, word string) (rest string, ok bool) {
	t := skipBlanksAndComments(s)
	if len(t) < len(word) || !strings.EqualFold(t[:len(word)], word) || len(t) > len(word) && isNameByte(t[len(word)]) {
		return s, false
	}
	return t[len(word):], true
}

// cutName cuts the name of an object off the beginning of a statement. Its parts can be quoted, and are
// separated by dots. The name is "" if it cannot be read.
func cutName(s string) (name, rest string) {
	for {
		s = skipBlanksAndComments(s)
		end := 0
		for end < len(s) && (isNameByte(s[end]) || s[end] == '-' && !strings.HasPrefix(s[end:], "--")) {
			end++
		}
		part := s[:end]
		if end > 0 {
			s = s[end:]
		} else if s != "" && strings.IndexByte("'\"`[", s[0]) >= 0 {
			mark := s[:1]
			if mark == "[" { // SQL Server
				mark = "]"
			}
			var closed bool
			if part, s, closed = strings.Cut(s[1:], mark); !closed {
				return "", ""
			}
		}
		if part == "" || s != "" && strings.IndexByte(" \t\r\n\f\v,.;*/-", s[0]) < 0 {
			return "", "" // none, or more of a name than is read
		}
		name += strings.ToLower(part)
		if s = skipBlanksAndComments(s); !strings.HasPrefix(s, ".") {
			return name, s
		}
		name, s = name+".", s[1:]
	}
}

// skipBlanksAndComments returns s without the blanks and comments at its beginning. MySQL executes the text of
// a comment that begins with "/*!", so only its marks are left out.
func skipBlanksAndComments(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*!"):
			s = strings.TrimLeft(s[3:], "0123456789")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		case strings.HasPrefix(s, "*/"):
			s = s[2:]
		default:
			return s
		}
	}
}

// isNameByte reports whether c can be part of a name without quotes.
func isNameByte(c byte) bool { return isWordByte(c) || c == '$' || c == '#' || c == '@' || c >= 0x80 }

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

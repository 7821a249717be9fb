// Package apicall finds destructive operations in the body of an API request: GraphQL mutations, verbs
// in fields such as "action", and flags and states such as "deleted". It is lenient: a body that
// cannot be parsed is searched for GraphQL operations.
package apicall

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/sqltext"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// Limits of what is read of a body.
const (
	maxBodyBytes  = 1 << 18 // bytes
	maxJSONDepth  = 16
	maxBodyValues = 1024
)

// FindDestructiveWord returns the word in a body that destroys something which cannot be restored; "" if there is
// none.
func FindDestructiveWord(body string) string {
	if len(body) > maxBodyBytes {
		body = body[:maxBodyBytes]
	}
	body = strings.TrimSpace(body)
	var value any
	if json.Unmarshal([]byte(body), &value) == nil {
		r := bodyWalker{valuesLeft: maxBodyValues}
		return r.findDestructiveWord("", value, 0)
	}
	if at := strings.Index(body, "mutation"); at >= 0 {
		return FindDestructiveGraphQLVerb(strings.ReplaceAll(body[at:], `\"`, `"`))
	}
	form, err := url.ParseQuery(body)
	if err != nil || len(form) > maxBodyValues || strings.ContainsAny(body, "{\n ") {
		return ""
	}
	r := bodyWalker{valuesLeft: maxBodyValues}
	for _, name := range sorted.Keys(form) {
		for _, v := range form[name] {
			if word := r.findDestructiveWord(name, v, 0); word != "" {
				return word
			}
		}
	}
	return ""
}

// A bodyWalker walks through a JSON value.
type bodyWalker struct{ valuesLeft int }

// verbFields are the last words of the names of fields that say what is done.
var verbFields = map[string]bool{"action": true, "type": true, "op": true, "operation": true, "method": true, "command": true, "cmd": true, "mode": true, "verb": true, "task": true, "event": true}

// destructiveBodyVerbs are verbs that are destructive in a request body, in addition to those of package
// knowledge: they replace what exists.
var destructiveBodyVerbs = map[string]bool{"rebuild": true, "reinstall": true, "reimage": true, "restore": true}

// deletionFlags are names of fields that delete something when true.
var deletionFlags = map[string]bool{"archived": true, "deleted": true, "is_deleted": true, "isdeleted": true, "trashed": true, "in_trash": true, "is_archived": true, "isarchived": true, "purge": true, "destroy": true, "delete": true, "terminated": true}

// deletionStates are field values that mean deletion in a field that names a state.
var deletionStates = map[string]bool{"deleted": true, "archived": true, "terminated": true, "destroyed": true, "trashed": true, "removed": true}

func (r *bodyWalker) findDestructiveWord(field string, v any, depth int) string {
	if r.valuesLeft--; r.valuesLeft < 0 || depth > maxJSONDepth {
		return ""
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sorted.Keys(v) {
			if word := r.findDestructiveWord(name, v[name], depth+1); word != "" {
				return word
			}
		}
	case []any:
		for _, item := range v {
			if word := r.findDestructiveWord(field, item, depth+1); word != "" {
				return word
			}
		}
	case bool:
		if v && deletionFlags[strings.ToLower(field)] {
			return strings.ToLower(field)
		}
	case string:
		return destructiveWord(strings.ToLower(field), v)
	}
	return ""
}

// destructiveWord returns the word of a text field by which a request deletes data; "" if it has none.
func destructiveWord(field, v string) string {
	words := knowledge.SplitNameWords(field)
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch {
	case last == "query" || last == "mutation" || last == "sql" || last == "statement":
		if word := FindDestructiveGraphQLVerb(v); word != "" {
			return word
		}
		word, _ := sqltext.FindDestructiveStatement(v)
		return word
	case verbFields[last] && len(v) <= 64:
		if parts := knowledge.SplitNameWords(v); len(parts) > 0 && len(parts) < 5 {
			for _, w := range []string{parts[0], parts[len(parts)-1]} {
				if knowledge.VerbIn(w, "destroys") || destructiveBodyVerbs[w] {
					return w
				}
			}
		}
	case (last == "status" || last == "state") && deletionStates[strings.ToLower(v)]:
		return strings.ToLower(v)
	}
	return ""
}

// FindDestructiveGraphQLVerb returns the first destructive verb in a field of a GraphQL mutation; "" if there is none.
// Fields of all fragments count, used or not.
func FindDestructiveGraphQLVerb(query string) string {
	if !strings.Contains(query, "mutation") {
		return ""
	}
	changes, parens := false, 0
	depth := 0                      // of selections; those of inline fragments do not count: their fields are fields of the selection around them
	var inlineFragments []bool      // for each open brace: whether it opens an inline fragment, such as "... on Mutation {"
	fragment, previous := false, "" // whether an inline fragment may begin, and the last token
	for i := 0; i < len(query); {
		token := query[i : i+1]
		switch c := query[i]; {
		case c == '#':
			n := strings.IndexAny(query[i:], "\n\r")
			if n < 0 {
				return ""
			}
			i += n
			continue
		case c == '"':
			i += leadingGraphQLStringLen(query[i:])
		case strings.HasPrefix(query[i:], "..."):
			fragment = parens == 0
			i += 3
		case c == '{':
			if inlineFragments = append(inlineFragments, fragment); !fragment {
				depth++
			}
			fragment = false
			i++
		case c == '}':
			if n := len(inlineFragments) - 1; n >= 0 {
				if !inlineFragments[n] {
					depth--
				}
				inlineFragments = inlineFragments[:n]
			}
			fragment = false
			i++
		case c == '(':
			parens++
			i++
		case c == ')':
			parens = max(parens-1, 0)
			i++
		case isLetter(c):
			n := i
			for n < len(query) && (isLetter(query[n]) || query[n] >= '0' && query[n] <= '9') {
				n++
			}
			token = query[i:n]
			if i = n; parens > 0 {
				break
			}
			switch {
			case depth == 0 && (token == "mutation" || token == "fragment"):
				changes = true
			case depth == 0 && (token == "query" || token == "subscription"):
				changes = false
			case fragment && (token == "on" || previous == "on" || previous == "@"): // the type, or a directive
			case fragment: // the name of a fragment
				fragment = false
			case changes && depth == 1:
				for _, w := range knowledge.SplitNameWords(token) {
					if knowledge.VerbIn(w, "destroys") || knowledge.VerbIn(w, "pays") && !knowledge.VerbIn(w, "things") || w == "archive" {
						return w
					}
				}
			}
		case strings.IndexByte(" \t\r\n,", c) >= 0:
			i++
			continue
		default:
			i++
		}
		previous = token
	}
	return ""
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// leadingGraphQLStringLen returns the length of the quoted string at the start of a text.
func leadingGraphQLStringLen(s string) int {
	if strings.HasPrefix(s, `"""`) {
		if n := strings.Index(s[3:], `"""`); n >= 0 {
			return n + 6
		}
		return len(s)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"', '\n':
			return i + 1
		}
	}
	return len(s)
}

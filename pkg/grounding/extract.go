// Package grounding finds the objects that a user names in a prompt, with what is to be done
// to them. It decides nothing, reads English alone, and finds too little rather than too much.
package grounding

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/shieldcli/shield/internal/prefilter"
)

// Doing is what a user wants done to an object, a set of kinds.
type Doing uint8

// The kinds of what is done.
const (
	Delete Doing = 1 << iota
	Change
	Send
	Fetch
)

// A Named is an object that a user has named.
type Named struct {
	Name string `json:"name"`           // as it is compared, see [Canonical]; where it is kept, a keyed hash of that
	Noun string `json:"noun,omitempty"` // what the user says that it is: branch, bucket, …; "" if the name says it
	Does Doing  `json:"does"`
	Not  bool   `json:"not,omitempty"` // the user does not want it done
	Said string `json:"said"`          // the words, short
}

// Bounds of a prompt.
const (
	maxPrompt = 8 << 10 // bytes that are read: of a longer one the first line counts
	maxShort  = 600     // characters of a prompt that counts as a whole
	maxLines  = 8
	maxNamed  = 32
	maxName   = 200
	maxSaid   = 80
)

// Extract returns the objects that a prompt names with a verb, each with what is to be done.
func Extract(prompt string) (out []Named) {
	if len(prompt) > maxPrompt {
		prompt = prompt[:maxPrompt]
	}
	for _, sentence := range sentences(own(prompt)) {
		for _, n := range objects(sentence) {
			if len(out) == maxNamed {
				return out
			}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Canonical returns a name as names are compared; "" for one that is not compared.
func Canonical(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if len(name) > 1 {
		name = strings.TrimRight(name, "/")
	}
	name = strings.TrimPrefix(name, "./")
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return name
}

var (
	fence  = prefilter.Lazy("(?s)```.*?(```|$)|~~~.*?(~~~|$)|<[a-zA-Z_-]+[^>]*>.*?(</[a-zA-Z_-]+>|$)")
	quoted = prefilter.Lazy("[\"“”«»„][^\"“”«»„\\n]*[\"“”«»„]|`[^`\\n]*\\s[^`\\n]*`")
	single = prefilter.Lazy(`(^|[\s(])'[^'\n]*\s[^'\n]*'($|[\s).,;:!?])`) // and no apostrophe
	logged = prefilter.Lazy(`^\s*(>|\||\$ |#|\d{4}-\d\d-\d\d|\d\d:\d\d|\[?(ERROR|WARN|INFO|DEBUG|TRACE|error|warning)\b|at \S+\(|Traceback|File "|diff |[+-]{3} |@@)`)
	tag    = prefilter.Lazy(`<[a-zA-Z_/!-]`)
)

// own returns what of a prompt are surely the words of who wrote it: without fences, quotes
// and lines of logs; of a long one the first line.
func own(prompt string) string {
	prompt = strings.ReplaceAll(prompt, "\r\n", "\n")
	long := len([]rune(prompt)) > maxShort || strings.Count(strings.TrimSpace(prompt), "\n") >= maxLines
	if tag().MatchString(prompt) && strings.HasPrefix(strings.TrimSpace(prompt), "<") {
		return "" // another program's
	}
	prompt = fence().ReplaceAllString(prompt, "\n")
	var lines []string
	for line := range strings.SplitSeq(prompt, "\n") {
		if logged().MatchString(line) {
			lines = append(lines, "")
			continue
		}
		line = single().ReplaceAllString(line, " , ")
		line = quoted().ReplaceAllStringFunc(line, func(q string) string {
			runes := []rune(q)
			inside := strings.TrimSpace(string(runes[1 : len(runes)-1]))
			if inside != "" && !strings.ContainsFunc(inside, unicode.IsSpace) {
				return " " + inside + " " // a name
			}
			return " , "
		})
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines = append(lines, line)
		if long {
			break
		}
	}
	return strings.Join(lines, "\n")
}

var sentenceEnd = prefilter.Lazy(`[.!;:]+(\s+|$)|\n+|(\?)\s*|,?\s+(?:but|however|instead)\s+|—|–`)

// sentences cuts a text into sentences, each with the mark that ends it if that is a question
// mark.
func sentences(text string) (out []string) {
	at := 0
	for _, m := range sentenceEnd().FindAllStringSubmatchIndex(text, -1) {
		end := m[0]
		if m[4] >= 0 {
			end = m[5]
		}
		if s := strings.TrimSpace(text[at:end]); s != "" {
			out = append(out, s)
		}
		at = m[1]
	}
	if s := strings.TrimSpace(text[at:]); s != "" {
		out = append(out, s)
	}
	return out
}

// words are those of a sentence.
func words(sentence string) []string {
	fields := strings.Fields(strings.NewReplacer("(", " ", ")", " ", "`", " ", "\"", " ").Replace(sentence))
	out := make([]string, 0, 2*len(fields))
	for _, w := range fields {
		comma := strings.HasSuffix(w, ",")
		w = strings.TrimLeft(strings.TrimRight(w, ",.!?;:'’*"), ",!?;:'’*")
		if w == "" || w == "-" {
			continue
		}
		out = append(out, w)
		if comma {
			out = append(out, ",")
		}
	}
	return out
}

// objects returns the objects of one sentence.
func objects(sentence string) (out []Named) {
	list := words(sentence)
	if len(list) == 0 || strings.ContainsFunc(norm.NFKC.String(sentence), func(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) }) {
		return nil // another language, or letters that look like others
	}
	lower := make([]string, len(list))
	for i, w := range list {
		lower[i] = strings.ToLower(w)
	}
	asks := strings.HasSuffix(sentence, "?") && !requests(lower)
	if asks || supposes[lower[0]] {
		return nil
	}
	said := sentence
	if len(said) > maxSaid {
		said = said[:maxSaid]
	}
	negated := false
	var does Doing
	governed := false // a verb that is no deed governs what follows: explain how to …
	ends := false     // with the next part of the sentence
	fresh := true     // a deed can begin here
	first := false    // no object has come since the deed
	apart := false    // a comma has come since the negation
	for i, w := range lower {
		switch {
		case foreign[w]:
			return nil
		case negates(lower, i):
			negated, fresh, apart = true, true, false
			first = i+1 < len(lower) && (lower[i+1] == "to" || lower[i+1] == "on" || lower[i+1] == "in" || lower[i+1] == "from")
			continue
		case tells[w] && does == 0 && !governed: // this could delete …
			fresh = false
			continue
		case w == "," || w == "and" || w == "then" || w == "please":
			fresh, governed, apart = true, governed && !ends, apart || w == ","
			continue
		case governed && relates[w]:
			ends = false
		case w == "to" && i+1 < len(lower) && deeds[lower[i+1]] != 0 && does != 0: // write a script to delete …
			governed, ends, does, fresh = true, false, 0, false
			continue
		case w == "to" && !governed && i > 0 && wants[lower[i-1]]:
			fresh = true
			continue
		case governs[w] && fresh:
			governed, ends, does, fresh = true, false, 0, false
			continue
		case works[w] && fresh:
			governed, ends, does, fresh = true, true, 0, false
			continue
		}
		if d, ok := deeds[w]; ok && (fresh || negated) && !(i+1 < len(lower) && lower[i+1] == "branch" && i > 0 && lower[i-1] == "the") {
			if w == "push" && i > 0 && (lower[i-1] == "force" || strings.HasPrefix(lower[i-1], "--force")) {
				d |= Delete
			}
			if !governed || lower[max(i-1, 0)] == "then" {
				does, governed, first = d, false, true
			}
			if fresh = w == "force" || w == "force-push"; w == "force-push" {
				fresh = false
			}
			continue
		}
		if opens[w] {
			continue
		}
		fresh = false
		if does == 0 || governed {
			continue
		}
		name, noun, ok := named(list, lower, i, negated && first && !apart)
		first = first && nouns[w] != ""
		if !ok {
			continue
		}
		out = append(out, Named{Name: name, Noun: noun, Does: does, Not: negated, Said: said})
	}
	return out
}

// requests reports whether a question asks for something to be done.
func requests(lower []string) bool {
	return slices.Contains([]string{"can", "could", "will", "would", "please"}, lower[0]) && len(lower) > 2 && (lower[1] == "you" || lower[0] == "please")
}

// negates reports whether the words at an index say that what follows is not wanted.
func negates(lower []string, i int) bool {
	w := lower[i]
	return negations[w] || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t") || w == "leave" && slices.Contains(lower[i:], "alone") || w == "stay" && slices.Contains(lower[i:], "away") ||
		w == "hands" && i+1 < len(lower) && lower[i+1] == "off" || w == "other" && i+1 < len(lower) && lower[i+1] == "than" || w == "rather" && i+1 < len(lower) && lower[i+1] == "than"
}

// named returns the name of the object that the word at an index is, and what it is.
// With bare, a word of the dictionary counts too.
func named(list, lower []string, i int, bare bool) (name, noun string, ok bool) {
	w := list[i]
	if lower[i] == "," || nouns[lower[i]] != "" || common[lower[i]] {
		return "", "", false
	}
	for _, k := range [...]int{i - 1, i + 1} { // the branch main, the main branch
		if k >= 0 && k < len(lower) && nouns[lower[k]] != "" && noun == "" {
			noun = nouns[lower[k]]
		}
	}
	if i >= 2 && lower[i-1] == "called" || i >= 2 && lower[i-1] == "named" {
		noun = nouns[lower[i-2]]
	}
	if strings.HasPrefix(w, "@") && strings.Contains(w, "/") && strings.Contains(w, ".") {
		w = w[1:] // a reference to a file
	}
	name = Canonical(w)
	if name == "" || !plainName().MatchString(name) {
		return "", "", false
	}
	if host, rest, isURL := strings.Cut(name, "://"); isURL && host != "" {
		host, _, _ = strings.Cut(rest, "/")
		_, host, _ = cutLast(host, "@")
		return host, noun, host != ""
	}
	telling := strings.ContainsAny(name, "./_-@~0123456789") && len(name) >= 5 && strings.ContainsFunc(name, unicode.IsLetter)
	if noun == "" && !telling && !(bare && len(name) > 2) {
		return "", "", false
	}
	return name, noun, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

var plainName = prefilter.Lazy(`^[a-z0-9~./_@][a-z0-9~./_@:+=#-]*$`)

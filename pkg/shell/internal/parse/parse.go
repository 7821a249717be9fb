// Package parse parses shell text within limits, as bash or, failing that, as another shell of its family.
package parse

import (
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// Limits of the parsed text. They are checked before the parser runs: it is recursive, and a stack overflow cannot
// be recovered.
const (
	MaxCommandBytes                 = 64 << 10 // bytes of a command
	MaxBracketNesting               = 200      // depth of nested brackets; brackets in quotes count too
	maxNestableConstructsPerCommand = 4096     // total of constructs that nest in the parser or the analysis
)

// ExceededLimitReason returns why text must not be parsed, or "".
func ExceededLimitReason(text string) string {
	if len(text) > MaxCommandBytes {
		return "the command is longer than 64 KiB"
	}
	depth, deepest, total := 0, 0, 0
	arithmetic := strings.Contains(text, "((") || strings.Contains(text, "$[") || strings.Contains(text, "let")
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			total++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		case '`', '!', '?':
			total++
		case '=', '-', '+', '~', '*':
			if arithmetic {
				total++
			}
		case 'i', 'w', 'u', 'f', 'c', 's', 't', 'e':
			if startsNestableShellConstruct(text, i) {
				total++
			}
		}
	}
	if deepest > MaxBracketNesting || total > maxNestableConstructsPerCommand {
		return "the command is nested too deeply"
	}
	return ""
}

// startsNestableShellConstruct reports whether the word at index wordStart starts a construct that
// can be nested, such as if or while.
func startsNestableShellConstruct(text string, wordStart int) bool {
	if wordStart > 0 && (text[wordStart-1] == '_' || text[wordStart-1]|0x20 >= 'a' && text[wordStart-1]|0x20 <= 'z') {
		return false
	}
	rest := text[wordStart:]
	for _, w := range [...]string{"if", "while", "until", "for", "case", "select", "time", "elif", "else", "coproc", "function"} {
		if w[0] == rest[0] && strings.HasPrefix(rest, w) {
			return true
		}
	}
	return false
}

var BashParsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// otherParsers are the parsers for mksh, POSIX sh and zsh. [Shell] tries them in this order if a
// text is not valid bash.
var otherParsers = [...]*sync.Pool{newParserPool(syntax.LangMirBSDKorn), newParserPool(syntax.LangPOSIX), newParserPool(syntax.LangZsh)}

func newParserPool(lang syntax.LangVariant) *sync.Pool {
	return &sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(lang)) }}
}

// Shell parses text as bash, or else as another shell of its family.
func Shell(text string) (*syntax.File, error) {
	p := BashParsers.Get().(*syntax.Parser)
	f, err := p.Parse(strings.NewReader(text), "")
	BashParsers.Put(p)
	if err == nil {
		return f, nil
	}
	for i := range otherParsers {
		p := otherParsers[i].Get().(*syntax.Parser)
		f, err := p.Parse(strings.NewReader(text), "")
		otherParsers[i].Put(p)
		if err == nil {
			return f, nil
		}
	}
	return nil, err
}

// ReplaceAnglePlaceholdersWithVariables replaces each placeholder <name>, as in manuals, by an unset variable of the same length, so
// that spans stay valid.
func ReplaceAnglePlaceholdersWithVariables(text string) string {
	b := []byte(text)
	for i := 0; i < len(b); i++ {
		if b[i] != '<' {
			continue
		}
		end := i + 1
		for end < len(b) && end-i < 64 && (plain.IsWordByte(b[end]) || strings.IndexByte(" -./:|,", b[end]) >= 0) {
			end++
		}
		if end < i+2 || end >= len(b) || b[end] != '>' || b[i+1] == ' ' || b[i+1] == '/' {
			continue
		}
		if end == i+2 {
			copy(b[i:], "$__") // <x> has 3 bytes, too few for the form ${_}
		} else {
			copy(b[i:], "${"+strings.Repeat("_", end-i-2)+"}")
		}
		i = end
	}
	return string(b)
}

// ReplaceGitHubExpressionsByVariables replaces each ${{ … }} of a workflow file by an unset variable of the same length, so that
// spans stay valid.
func ReplaceGitHubExpressionsByVariables(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "${{")
		end := strings.Index(text[max(i, 0):], "}}")
		if i < 0 || end < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i] + "${" + strings.Repeat("_", end-1) + "}")
		text = text[i+end+2:]
	}
}

func ShortError(err error) string {
	msg := err.Error()
	if len(msg) > 120 {
		msg = msg[:120]
	}
	return msg
}

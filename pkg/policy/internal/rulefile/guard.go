package rulefile

import (
	"bytes"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a file. The parser is recursive and copies what aliases name,
// so all of them are checked before it runs.
const (
	MaxBytes  = 1 << 20 // of a file
	maxDepth  = 16      // of nested lists and mappings
	maxColumn = 64      // in which a key or a list entry may start
	maxTokens = 200_000
)

// tokens cuts a file into tokens and refuses what a policy has no use for.
func tokens(data []byte) (token.Tokens, error) {
	if len(data) > MaxBytes {
		return nil, Pos{}.errorf("larger than %d KiB", MaxBytes>>10)
	}
	if err := checkText(data); err != nil {
		return nil, err
	}
	tks := lexer.Tokenize(string(data))
	if len(tks) > maxTokens {
		return nil, Pos{}.errorf("more than %d words", maxTokens)
	}
	depth, entries, line := 0, 0, 0
	for _, tk := range tks {
		at := Pos{tk.Position.Line, tk.Position.Column}
		if tk.Position.Line != line {
			line, entries = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return nil, at.errorf("anchors and aliases are not supported; write the value out")
		case token.TagType, token.DirectiveType:
			return nil, at.errorf("tags and directives are not supported")
		case token.DocumentEndType:
			return nil, at.errorf("a policy is one document")
		case token.InvalidType:
			return nil, at.errorf("%s", printable(tk.Error))
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			entries++
			if tk.Type != token.MappingValueType && at.Column > maxColumn {
				return nil, at.errorf("indented too far")
			}
		}
		if depth > maxDepth || entries > maxDepth && depth == 0 {
			return nil, at.errorf("nested deeper than %d", maxDepth)
		}
	}
	return tks, nil
}

// checkText refuses bytes that are no text.
func checkText(data []byte) error {
	line, start := 1, 0
	for i := 0; i < len(data); {
		r, size := rune(data[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[i:])
		}
		at := Pos{line, utf8.RuneCount(data[start:min(i, start+1000)]) + 1}
		switch {
		case r == utf8.RuneError && size == 1:
			return at.errorf("not UTF-8")
		case r == '\n':
			line, start = line+1, i+1
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f, r == 0xfeff && i > 0:
			return at.errorf("control character %U", r)
		}
		i += size
	}
	if n := bytes.Count(data, []byte("\n")); n > 50_000 {
		return Pos{}.errorf("more than 50000 lines")
	}
	return nil
}

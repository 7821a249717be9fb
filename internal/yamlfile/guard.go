package yamlfile

import (
	"bytes"
	"unicode/utf8"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Limits of a file. They are checked before parsing, since the parser is recursive and copies the
// content of aliases.
const (
	MaxFileBytes           = 256 << 10 // size of a file
	maxNestingDepth        = 16        // nesting of lists and mappings
	maxShieldFileKeyColumn = 64        // last column in which a key or list entry can start
	maxShieldFileTokens    = 50_000
	maxLines               = 20_000
)

// tokenizeFile splits a file into tokens and rejects YAML features that policies do not use.
func tokenizeFile(data []byte, what string) (token.Tokens, error) {
	if len(data) > MaxFileBytes {
		return nil, Pos{}.Errorf("the file is larger than %d KiB; shorten it", MaxFileBytes>>10)
	}
	if err := checkUTF8WithoutControlChars(data); err != nil {
		return nil, err
	}
	if tab := tabIndentationError(data, true); tab != nil {
		return nil, tab
	}
	var s scanner.Scanner
	s.Init(string(data))
	var all token.Tokens
	g := tokenChecker{fileKind: what}
	for {
		found, err := s.Scan()
		if err != nil { // Scan returns an error only at the end of the text; syntax errors are tokens
			return all, nil
		}
		for _, tk := range found {
			if err := g.checkSyntaxAndLimits(tk); err != nil {
				return nil, err
			}
		}
		all.Add(found...)
		if len(all) > maxShieldFileTokens {
			return nil, Pos{}.Errorf("the file has more than %d words; shorten it", maxShieldFileTokens)
		}
	}
}

// A tokenChecker checks tokens one by one, so that a hostile file is rejected before all of it is read.
type tokenChecker struct {
	fileKind           string // kind of file for error messages, such as "a policy"
	bracketDepth       int    // nesting of brackets
	line               int
	keysAndItemsInLine int // number of entries in this line
}

func (g *tokenChecker) checkSyntaxAndLimits(tk *token.Token) error {
	at := Pos{tk.Position.Line, tk.Position.Column}
	if at.Line != g.line {
		g.line, g.keysAndItemsInLine = at.Line, 0
	}
	switch tk.Type {
	case token.AnchorType, token.AliasType, token.MergeKeyType:
		return at.Errorf("anchors and aliases are not supported; write the value out")
	case token.TagType, token.DirectiveType:
		return at.Errorf("tags and directives are not supported; remove them")
	case token.DocumentEndType:
		return at.Errorf("%s must be one document; remove this line and the lines after it", g.fileKind)
	case token.InvalidType:
		return at.Errorf("%s", printableMessage(tk.Error))
	case token.SequenceStartType, token.MappingStartType:
		g.bracketDepth++
	case token.SequenceEndType, token.MappingEndType:
		g.bracketDepth--
	case token.SequenceEntryType, token.MappingKeyType:
		g.keysAndItemsInLine++
		if at.Column > maxShieldFileKeyColumn {
			return at.Errorf("the line is indented too far; remove spaces")
		}
	case token.MappingValueType:
		g.keysAndItemsInLine++
	default: // other tokens do not change the nesting
	}
	if g.bracketDepth > maxNestingDepth || g.keysAndItemsInLine > maxNestingDepth && g.bracketDepth == 0 {
		return at.Errorf("the YAML is nested deeper than %d levels; flatten it", maxNestingDepth)
	}
	return nil
}

// checkUTF8WithoutControlChars returns an error for bytes that are not text.
func checkUTF8WithoutControlChars(data []byte) error {
	line, start := 1, 0
	for i := 0; i < len(data); {
		r, size := rune(data[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[i:])
		}
		at := func() Pos { return Pos{line, utf8.RuneCount(data[start:min(i, start+1000)]) + 1} }
		switch {
		case r == utf8.RuneError && size == 1:
			return at().Errorf("the file is not UTF-8; convert it")
		case r == '\n':
			line, start = line+1, i+1
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f, r == 0xfeff && i > 0:
			return at().Errorf("the file contains the control character %U; remove it", r)
		}
		i += size
	}
	if bytes.Count(data, []byte("\n")) > maxLines {
		return Pos{}.Errorf("the file has more than %d lines; shorten it", maxLines)
	}
	return nil
}

// tabIndentationError returns an error for the first line indented by a tab; nil if there is none.
// The parser's own message for such a file is misleading. Block text can contain tabs after its
// indentation; if onlyFirstColumn is set, only tabs in the first column count.
func tabIndentationError(data []byte, onlyFirstColumn bool) error {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		body := bytes.TrimLeft(text, " \t")
		indent := text[:len(text)-len(body)]
		tab := bytes.IndexByte(indent, '\t')
		if tab < 0 || tab > 0 && onlyFirstColumn || len(bytes.TrimSpace(body)) == 0 || body[0] == '#' {
			continue
		}
		return Pos{line, tab + 1}.Errorf("the line is indented by a tab; use spaces")
	}
	return nil
}

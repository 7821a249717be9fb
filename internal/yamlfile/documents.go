package yamlfile

import (
	"errors"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Limits of third-party files, in which anchors, tags and several documents are common.
const (
	maxThirdPartyFileTokens    = 60_000
	maxBracketDepth            = 24  // nesting of brackets
	maxThirdPartyFileKeyColumn = 160 // column of a key or list entry
)

// ErrTooLarge is the error for a third-party file that exceeds a limit.
var ErrTooLarge = errors.New("the YAML is too large or nested too deeply; split it")

// Documents returns the top nodes of a third-party file. Aliases are not resolved: a caller that
// follows them must limit the number of nodes.
func Documents(data []byte) ([]ast.Node, error) {
	if len(data) > MaxFileBytes {
		return nil, ErrTooLarge
	}
	if err := checkUTF8WithoutControlChars(data); err != nil {
		return nil, err
	}
	var s scanner.Scanner
	s.Init(string(data))
	var all token.Tokens
	depth, line, entries := 0, 0, 0
	for {
		found, err := s.Scan()
		if err != nil {
			break
		}
		for _, tk := range found {
			if tk.Position.Line != line {
				line, entries = tk.Position.Line, 0
			}
			switch tk.Type {
			case token.SequenceStartType, token.MappingStartType:
				depth++
			case token.SequenceEndType, token.MappingEndType:
				depth--
			case token.SequenceEntryType, token.MappingKeyType:
				if entries++; tk.Position.Column > maxThirdPartyFileKeyColumn || entries > maxBracketDepth {
					return nil, ErrTooLarge
				}
			case token.AnchorType, token.TagType:
				if entries++; entries > 4*maxBracketDepth {
					return nil, ErrTooLarge
				}
			case token.InvalidType:
				return nil, Pos{line, tk.Position.Column}.Errorf("%s", printableMessage(tk.Error))
			default: // plain tokens
			}
			if depth > maxBracketDepth {
				return nil, ErrTooLarge
			}
		}
		if all.Add(found...); len(all) > maxThirdPartyFileTokens {
			return nil, ErrTooLarge
		}
	}
	file, err := parser.Parse(all, 0)
	if err != nil {
		return nil, Pos{}.Errorf("not YAML")
	}
	var out []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			out = append(out, doc.Body)
		}
	}
	return out, nil
}

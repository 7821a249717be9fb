package dialect

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// SameInZsh reports whether a line that an interactive zsh has read, such as the third argument
// of preexec, means the same to bash. There a comment is none: each # is a letter.
func SameInZsh(text string) bool {
	if parse.TooDeep(text) != "" {
		return false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	same := true
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment, *syntax.ExtGlob: // *(e:cmd:) runs a command
			same = false
		case *syntax.ParamExp: // arrays count from 1
			same = same && n.Index == nil && !strings.HasPrefix(text[n.End().Offset():], "[")
		case *syntax.Word:
			if lit, ok := n.Parts[0].(*syntax.Lit); ok && (strings.HasPrefix(lit.Value, "^") || strings.Contains(lit.Value, "/^")) {
				same = false // every file but
			}
		case *syntax.Redirect: // >! is >|
			same = same && (n.Word == nil || n.Word.Lit() != "!")
		}
		return same
	})
	return same
}

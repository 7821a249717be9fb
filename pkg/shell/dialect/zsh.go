package dialect

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// maxHashes is how many # of one text are made words.
const maxHashes = 64

// FromZsh returns text that this package reads as zsh means it, of a command
// that has no comments, such as the third argument of preexec: there each # is a
// letter. It is false where zsh could mean something else than the bash that
// the text looks like: then another person has to read it.
func FromZsh(text string) (string, bool) {
	for range maxHashes {
		if parse.TooDeep(text) != "" {
			return "", false
		}
		f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
		if err != nil {
			return "", false
		}
		hash, same := -1, true
		syntax.Walk(f, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Comment:
				hash = int(n.Hash.Offset())
			case *syntax.CmdSubst, *syntax.ProcSubst: // here # depends on options
				same = same && !hasComment(n)
			case *syntax.ExtGlob: // *(e:cmd:) runs a command
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
		if !same {
			return "", false
		}
		if hash < 0 {
			return text, true
		}
		text = text[:hash] + `\` + text[hash:]
	}
	return "", false
}

func hasComment(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		_, comment := n.(*syntax.Comment)
		found = found || comment
		return !found
	})
	return found
}

package dialect

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// maxEscapedHashSigns is the maximum number of # in one text that are escaped.
const maxEscapedHashSigns = 64

// ConvertZshToBash converts a zsh command in which every # is a literal character, such as the third
// argument of the zsh hook preexec, to text with the same meaning for package shell. It returns
// false if zsh and bash could interpret the text differently. The command must then be reviewed.
func ConvertZshToBash(text string) (string, bool) {
	for range maxEscapedHashSigns {
		if parse.ExceededLimitReason(text) != "" {
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
			case *syntax.CmdSubst, *syntax.ProcSubst: // zsh options decide whether # starts a comment inside a substitution
				same = same && !hasComment(n)
			case *syntax.ExtGlob: // *(e:cmd:) runs a command
				same = false
			case *syntax.ParamExp: // zsh arrays count from 1
				same = same && n.Index == nil && !strings.HasPrefix(text[n.End().Offset():], "[")
			case *syntax.Word:
				if lit, ok := n.Parts[0].(*syntax.Lit); ok && (strings.HasPrefix(lit.Value, "^") || strings.Contains(lit.Value, "/^")) {
					same = false // zsh: ^x matches every file but x
				}
			case *syntax.Redirect: // in zsh, >! means >|
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

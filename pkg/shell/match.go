package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// trim is ${x#p}, ${x##p}, ${x%p} and ${x%%p}: exact where both are written out.
func trim(v, pat abstract.Value, op syntax.ParExpOperator, show string) abstract.Value {
	switch {
	case v.Known() && pat.Known():
		if op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix {
			v.Text = strings.TrimPrefix(v.Text, pat.Text)
		} else {
			v.Text = strings.TrimSuffix(v.Text, pat.Text)
		}
		return v
	case op == syntax.RemLargePrefix && pat.AsPattern() == "*/": // a name without a folder
		short := vague(show, v)
		short.Text, short.Bare = "*", false
		return short
	}
	return vague(show, v)
}

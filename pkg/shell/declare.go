package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// declare walks declare, local, export, readonly, typeset and nameref.
func (s *state) declare(c *syntax.DeclClause) abstract.Value {
	kind := scalar
	if c.Variant.Value == "nameref" {
		kind = reference
	}
	argv := []abstract.Value{{Text: c.Variant.Value, From: s.spanOf(c.Variant)}}
	list := false
	for _, a := range c.Args {
		if a.Name == nil { // an option, or words known only at run time
			v := s.word(a.Value)
			argv = append(argv, v)
			if v.Known() && strings.HasPrefix(v.Text, "-") && c.Variant.Value != "export" {
				switch {
				case strings.Contains(v.Text, "n"):
					kind = reference
				case strings.Contains(v.Text, "u"):
					kind = upper
				case strings.Contains(v.Text, "l"):
					kind = lower
				case strings.Contains(v.Text, "i"):
					kind = integer
				}
			}
			list = list || v.Text == "-p" || v.Text == "-x"
			name, text, ok := strings.Cut(v.Text, "=")
			s.subscript(name)
			if ok && syntax.ValidName(name) {
				val := v
				val.Text = text
				s.assign(name, val)
				s.environmentCode(name, val, v.From)
			}
			continue
		}
		if a.Value != nil || a.Array != nil {
			argv = append(argv, abstract.Value{Text: a.Name.Value + "=…", From: s.spanOf(a)})
		} else {
			argv = append(argv, abstract.Value{Text: a.Name.Value, From: s.spanOf(a)})
		}
		s.declareOne(a, kind)
	}
	s.execute(argv, c.Variant.Value, effect.ReadOnly)
	if list && len(argv) < 3 || len(argv) == 1 {
		return abstract.Unknown("the environment", abstract.Dump)
	}
	return abstract.Value{}
}

func (s *state) declareOne(a *syntax.Assign, kind bindingKind) {
	if kind == scalar || a.Array != nil {
		s.assignment(a, true)
		return
	}
	v := abstract.Value{}
	if a.Value != nil {
		v = s.word(a.Value)
	}
	s.bind(binding{name: a.Name.Value, val: v, kind: kind})
	if kind != reference && a.Value != nil {
		s.assign(a.Name.Value, v)
	}
}

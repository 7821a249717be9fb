package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
)

// declare walks declare, local, export, readonly, typeset and nameref.
func (s *state) declare(c *syntax.DeclClause) value {
	kind := plain
	if c.Variant.Value == "nameref" {
		kind = reference
	}
	argv := []value{{text: c.Variant.Value, from: s.spanOf(c.Variant)}}
	list := false
	for _, a := range c.Args {
		if a.Name == nil { // an option, or words known only at run time
			v := s.word(a.Value)
			argv = append(argv, v)
			if v.known() && strings.HasPrefix(v.text, "-") && c.Variant.Value != "export" {
				switch {
				case strings.Contains(v.text, "n"):
					kind = reference
				case strings.Contains(v.text, "u"):
					kind = upper
				case strings.Contains(v.text, "l"):
					kind = lower
				case strings.Contains(v.text, "i"):
					kind = integer
				}
			}
			list = list || v.text == "-p" || v.text == "-x"
			if name, text, ok := strings.Cut(v.text, "="); ok && syntax.ValidName(name) {
				val := v
				val.text = text
				s.assign(name, val)
				s.environmentCode(name, val, v.from)
			}
			continue
		}
		if a.Value != nil || a.Array != nil {
			argv = append(argv, value{text: a.Name.Value + "=…", from: s.spanOf(a)})
		} else {
			argv = append(argv, value{text: a.Name.Value, from: s.spanOf(a)})
		}
		s.declareOne(a, kind)
	}
	s.execute(argv, c.Variant.Value, effect.ReadOnly)
	if list && len(argv) < 3 || len(argv) == 1 {
		return unknown("the environment", dump)
	}
	return value{}
}

func (s *state) declareOne(a *syntax.Assign, kind bindingKind) {
	if kind == plain || a.Array != nil {
		s.assignment(a, true)
		return
	}
	v := value{}
	if a.Value != nil {
		v = s.word(a.Value)
	}
	s.bind(binding{name: a.Name.Value, val: v, kind: kind})
	if kind != reference && a.Value != nil {
		s.assign(a.Name.Value, v)
	}
}

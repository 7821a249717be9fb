package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A declaration holds the attributes that declare, local, export and the like give to the names after it.
type declaration struct {
	local, global, export, constant bool
	odd, refers                     bool // attributes that change assigned values (-i, -u, …); nameref (-n)
	lists                           bool // the command lists variables
}

func declarationOf(variant string) declaration {
	return declaration{
		local: variant == "local" || variant == "declare" || variant == "typeset", export: variant == "export", constant: variant == "readonly",
		refers: variant == "nameref", odd: variant == "integer" || variant == "float",
	}
}

// option adds the attributes of an option such as -gx.
func (d *declaration) option(text string) {
	set := func(letters string) bool { return strings.ContainsAny(text, letters) }
	d.global = d.global || set("g")
	d.refers = d.refers || set("n") && !d.export
	d.export = d.export || set("x")
	d.constant = d.constant || set("r")
	d.odd = d.odd || text[0] == '+' || set("AEFLRTUZiluc0123456789")
	d.lists = d.lists || set("px")
}

// declare walks declare, local, export, readonly, typeset and nameref.
func (s *state) declare(c *syntax.DeclClause) abstract.Value {
	variant := c.Variant.Value
	d := declarationOf(variant)
	argv := []abstract.Value{{Text: variant, From: s.spanOf(c.Variant)}}
	var before []string // names that this command has assigned
	for _, a := range c.Args {
		if a.Name == nil { // an option, or a word that is known only after expansion
			for _, v := range s.fields(a.Value) {
				argv = append(argv, v)
				s.declareWord(v, &d)
				if strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "f") && strings.Contains(v.Text, "u") && s.asZsh() {
					s.differsHere("typeset -fu", v.From)
				}
			}
			continue
		}
		text := a.Name.Value
		if a.Value != nil || a.Array != nil {
			text += "=…"
		}
		argv = append(argv, abstract.Value{Text: text, From: s.spanOf(a)})
		s.declareOne(a, d, before)
		before = append(before, a.Name.Value)
	}
	s.execute(argv, variant, effect.ReadOnly)
	if d.lists && len(argv) < 3 || len(argv) == 1 {
		out := abstract.Unknown("the environment", abstract.Dump)
		s.show(out, variant, s.spanOf(c))
		return out
	}
	if d.lists && !d.export {
		return abstract.Unknown("…", 0).Of(abstract.FromCommand)
	}
	return abstract.Value{}
}

// declareWord handles a word that is an option, or that becomes an assignment only after expansion.
func (s *state) declareWord(v abstract.Value, d *declaration) {
	name, text, ok := strings.Cut(v.Text, "=")
	switch {
	case (strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+")) && len(v.Text) > 1:
		if v.Known() && !strings.HasPrefix(v.Text, "--") {
			d.option(v.Text)
		}
	case !v.Known() && (!ok || strings.ContainsAny(name, "*?[")):
		s.unknownName(v)
	case !ok && syntax.ValidName(name):
		s.declareName(name, *d)
		s.setAttributes(name, *d)
	case !ok:
		s.subscriptIn(v, false)
	case strings.HasPrefix(text, "("): // an array: parsed like NAME=(…) in the text
		s.runText("shell", v, "declare", v.From, nil)
		s.forget()
	default:
		val := v
		val.Text = text
		if _, shown, ok := strings.Cut(v.Show, "="); ok {
			val.Show = shown
		}
		if strings.HasPrefix(text, "*") {
			val.Lead = v.Origin
		}
		if syntax.ValidName(name) {
			s.declareName(name, *d)
		}
		s.assignTo(abstract.Lit(name), val)
		s.setAttributes(name, *d)
	}
}

// declareOne handles a name with or without a value. Bash expands all values before it assigns the first.
func (s *state) declareOne(a *syntax.Assign, d declaration, before []string) {
	name := a.Name.Value
	uses := func(n syntax.Node) bool {
		found := false
		syntax.Walk(n, func(n syntax.Node) bool {
			p, ok := n.(*syntax.ParamExp)
			found = found || ok && p.Param != nil && slices.Contains(before, p.Param.Value)
			return !found
		})
		return found
	}
	if a.Naked {
		s.declareName(name, d)
		s.setAttributes(name, d)
		return
	}
	if a.Value != nil && a.Index == nil && !a.Append {
		v := s.word(a.Value)
		v.From = s.spanOf(a)
		if uses(a.Value) {
			v = uncomputed("${…}", v)
		}
		s.declareName(name, d)
		if strings.HasPrefix(v.Text, "(") { // may be parsed as an array
			s.runText("shell", abstract.Concat(abstract.Lit(name+"="), v), "declare", s.spanOf(a), nil)
		}
		s.assign(name, v)
	} else {
		if s.declareName(name, d); d.local && !d.global && len(s.frames) > 0 { // the array members may be expanded before the name becomes local
			s.Shell.bind(name, s.frames[len(s.frames)-1].locals[name])
		}
		s.assignment(a)
	}
	s.setAttributes(name, d)
}

// declareName makes a name local and unset, or with the value of the outer scope: shells differ.
func (s *state) declareName(name string, d declaration) {
	switch {
	case d.local && d.global && s.isLocal(name): // a local and a global variable have this name
		s.forget()
	case d.local && !d.global && len(s.frames) > 0:
		old := s.vars.get(name)
		s.local(name)
		old.may = slices.Clip(old.may)
		old.odd, old.refers, old.constant = old.odd || d.odd, d.refers, false
		s.Shell.bind(name, variable{may: []content{{gone: true}, {}}}.or(old))
	}
}

// setAttributes gives a variable the attributes of a declaration.
func (s *state) setAttributes(name string, d declaration) {
	v := s.vars.get(name)
	v.exported, v.constant = v.exported || d.export, v.constant || d.constant
	v.odd, v.refers = v.odd || d.odd, v.refers || d.refers
	if d.odd || d.refers {
		s.subscriptIn(v.any("$"+name), true)
	}
	if d.export || d.constant || d.odd || d.refers {
		s.Shell.bind(name, v)
	}
	if d.export {
		s.checkExported(name, s.span(0, len(s.text)))
	}
}

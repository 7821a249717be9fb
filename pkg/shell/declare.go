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
	isLocal, isGlobal, isExported, isReadonly bool
	hasValueTransformingAttribute, isNameref  bool // attributes that change assigned values (-i, -u, …); nameref (-n)
	listsVariables                            bool // the command lists variables
}

func declarationOfKeyword(keyword string) declaration {
	return declaration{
		isLocal: keyword == "local" || keyword == "declare" || keyword == "typeset", isExported: keyword == "export", isReadonly: keyword == "readonly",
		isNameref: keyword == "nameref", hasValueTransformingAttribute: keyword == "integer" || keyword == "float",
	}
}

// addDeclareFlags adds the attributes of an option such as -gx.
func (d *declaration) addDeclareFlags(option string) {
	set := func(letters string) bool { return strings.ContainsAny(option, letters) }
	d.isGlobal = d.isGlobal || set("g")
	d.isNameref = d.isNameref || set("n") && !d.isExported
	d.isExported = d.isExported || set("x")
	d.isReadonly = d.isReadonly || set("r")
	d.hasValueTransformingAttribute = d.hasValueTransformingAttribute || option[0] == '+' || set("AEFLRTUZiluc0123456789")
	d.listsVariables = d.listsVariables || set("px")
}

// walkDeclaration walks declare, local, export, readonly, typeset and nameref.
func (s *analysisState) walkDeclaration(c *syntax.DeclClause) abstract.Value {
	variant := c.Variant.Value
	d := declarationOfKeyword(variant)
	argv := []abstract.Value{{Text: variant, SourceSpan: s.spanOf(c.Variant)}}
	var before []string // names that this command has assigned
	for _, a := range c.Args {
		if a.Name == nil { // an option, or a word that is known only after expansion
			for _, v := range s.expandFields(a.Value) {
				argv = append(argv, v)
				s.declareWord(v, &d)
				if strings.HasPrefix(v.Text, "-") && strings.Contains(v.Text, "f") && strings.Contains(v.Text, "u") && s.readsAsZsh() {
					s.recordDialectDifference("typeset -fu", v.SourceSpan)
				}
			}
			continue
		}
		text := a.Name.Value
		if a.Value != nil || a.Array != nil {
			text += "=…"
		}
		argv = append(argv, abstract.Value{Text: text, SourceSpan: s.spanOf(a)})
		s.declareAssignment(a, d, before)
		before = append(before, a.Name.Value)
	}
	s.recordExecuteEffect(argv, variant, effect.ReadOnly)
	if d.listsVariables && len(argv) < 3 || len(argv) == 1 {
		out := abstract.Unknown("the environment", abstract.TaintEnvironmentDump)
		s.recordShownCredentials(out, variant, s.spanOf(c))
		return out
	}
	if d.listsVariables && !d.isExported {
		return abstract.Unknown("…", 0).WithOrigin(abstract.OriginCommandOutput)
	}
	return abstract.Value{}
}

// declareWord handles a word that is an option, or that becomes an assignment only after expansion.
func (s *analysisState) declareWord(v abstract.Value, d *declaration) {
	name, text, ok := strings.Cut(v.Text, "=")
	switch {
	case (strings.HasPrefix(v.Text, "-") || strings.HasPrefix(v.Text, "+")) && len(v.Text) > 1:
		if v.IsLiteral() && !strings.HasPrefix(v.Text, "--") {
			d.addDeclareFlags(v.Text)
		}
	case !v.IsLiteral() && (!ok || strings.ContainsAny(name, "*?[")):
		s.assignUnknownName(v)
	case !ok && syntax.ValidName(name):
		s.declareName(name, *d)
		s.setAttributes(name, *d)
	case !ok:
		s.walkSubscripts(v, false)
	case strings.HasPrefix(text, "("): // an array: parsed like NAME=(…) in the text
		s.walkExecutedText("shell", v, "declare", v.SourceSpan, nil)
		s.forgetVariables()
	default:
		val := v
		val.Text = text
		if _, shown, ok := strings.Cut(v.Display, "="); ok {
			val.Display = shown
		}
		if strings.HasPrefix(text, "*") {
			val.FirstPartOrigin = v.Origin
		}
		if syntax.ValidName(name) {
			s.declareName(name, *d)
		}
		s.assignByNameWord(abstract.Lit(name), val)
		s.setAttributes(name, *d)
	}
}

// declareAssignment handles a name with or without a value. Bash expands all values before it assigns the first.
func (s *analysisState) declareAssignment(a *syntax.Assign, d declaration, earlierAssignedNames []string) {
	name := a.Name.Value
	uses := func(n syntax.Node) bool {
		found := false
		syntax.Walk(n, func(n syntax.Node) bool {
			p, ok := n.(*syntax.ParamExp)
			found = found || ok && p.Param != nil && slices.Contains(earlierAssignedNames, p.Param.Value)
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
		v := s.expandWord(a.Value)
		v.SourceSpan = s.spanOf(a)
		if uses(a.Value) {
			v = unknownValueWithTaintsOf("${…}", v)
		}
		s.declareName(name, d)
		if strings.HasPrefix(v.Text, "(") { // may be parsed as an array
			s.walkExecutedText("shell", abstract.Concat(abstract.Lit(name+"="), v), "declare", s.spanOf(a), nil)
		}
		s.assign(name, v)
	} else {
		if s.declareName(name, d); d.isLocal && !d.isGlobal && len(s.frames) > 0 { // the array members may be expanded before the name becomes local
			s.Shell.setVariable(name, s.frames[len(s.frames)-1].locals[name])
		}
		s.walkAssignment(a)
	}
	s.setAttributes(name, d)
}

// declareName makes a variable local if the declaration says so. The local variable is unset in
// some shells and keeps the value of the outer scope in others, so both are recorded as possible.
func (s *analysisState) declareName(name string, d declaration) {
	switch {
	case d.isLocal && d.isGlobal && s.isLocalVariable(name): // a local and a global variable have this name
		s.forgetVariables()
	case d.isLocal && !d.isGlobal && len(s.frames) > 0:
		old := s.vars.get(name)
		s.makeLocal(name)
		old.possibleContents = slices.Clip(old.possibleContents)
		old.canAttributesChangeValue, old.isNameref, old.mayBeReadonly = old.canAttributesChangeValue || d.hasValueTransformingAttribute, d.isNameref, false
		s.Shell.setVariable(name, variable{possibleContents: []variableContent{{isUnset: true}, {}}}.merge(old))
	}
}

// setAttributes gives a variable the attributes of a declaration.
func (s *analysisState) setAttributes(name string, d declaration) {
	v := s.vars.get(name)
	v.isExported, v.mayBeReadonly = v.isExported || d.isExported, v.mayBeReadonly || d.isReadonly
	v.canAttributesChangeValue, v.isNameref = v.canAttributesChangeValue || d.hasValueTransformingAttribute, v.isNameref || d.isNameref
	if d.hasValueTransformingAttribute || d.isNameref {
		s.walkSubscripts(v.valueCoveringPossibleContents("$"+name), true)
	}
	if d.isExported || d.isReadonly || d.hasValueTransformingAttribute || d.isNameref {
		s.Shell.setVariable(name, v)
	}
	if d.isExported {
		s.checkExportedVariableForAutostart(name, s.span(0, len(s.analyzedText)))
	}
}

package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A variable is the possible contents of a name, and its attributes.
type variable struct {
	possibleContents          []variableContent
	isExported                bool
	mayBeReadonly             bool           // it may be readonly: an assignment may fail, so the old content stays possible
	canAttributesChangeValue  bool           // an attribute may change assigned values: declare -i, -u, -A and the like
	isNameref                 bool           // declare -n: a nameref to another variable
	isPossiblyUndeclaredLocal bool           // a local variable that may not have been declared
	dotEnvFileReadEffect      *effect.Effect // the effect that reads the .env file that set the variable; nil if none did
}

// A variableContent is one possible content of a variable.
type variableContent struct {
	val                     abstract.Value
	members                 []abstract.Value // the members of an array, if they are known
	isArray                 bool             // the variable is an array; if members is nil, val represents any member
	isUnset                 bool             // the variable is unset
	mayBeUnset              bool             // unknown whether the variable is set
	isFromBeforeCommandText bool             // this content is the value from before the command; environmentValue returns what is known about it; val and members are empty
	isAssumedNonEmpty       bool             // the variable is set and not empty
}

// maxPossibleVariableValues is the number of possible contents above which a variable counts as unknown.
const maxPossibleVariableValues = 8

// maxVariables is the maximum number of variables that a text may assign.
const maxVariables = 1024

// positionalParametersName and dollarZeroName are the names under which the positional parameters (as an array) and $0 are stored.
const (
	positionalParametersName = "@"
	dollarZeroName           = "0"
)

// nonSystemPATHVariable is set if $PATH starts with a folder that is not a system folder: a program's name then does not
// tell which program runs.
const nonSystemPATHVariable = "\x00path"

func (c variableContent) equal(o variableContent) bool {
	return c.isArray == o.isArray && c.isUnset == o.isUnset && c.mayBeUnset == o.mayBeUnset && c.isFromBeforeCommandText == o.isFromBeforeCommandText && equalIgnoringSpan(c.val, o.val) && slices.EqualFunc(c.members, o.members, equalIgnoringSpan)
}

// equalIgnoringSpan reports whether two values are equal, apart from their spans.
func equalIgnoringSpan(v, o abstract.Value) bool {
	v.SourceSpan, o.SourceSpan = effect.CommandTextSpan{}, effect.CommandTextSpan{}
	return v == o
}

func (v variable) equal(o variable) bool {
	return v.isExported == o.isExported && v.mayBeReadonly == o.mayBeReadonly && v.canAttributesChangeValue == o.canAttributesChangeValue && v.isNameref == o.isNameref && v.isPossiblyUndeclaredLocal == o.isPossiblyUndeclaredLocal && slices.EqualFunc(v.possibleContents, o.possibleContents, variableContent.equal)
}

// merge merges two versions of a variable: the result may have the contents of either.
func (v variable) merge(o variable) variable {
	v.isExported, v.mayBeReadonly, v.canAttributesChangeValue, v.isNameref = v.isExported && o.isExported, v.mayBeReadonly || o.mayBeReadonly, v.canAttributesChangeValue || o.canAttributesChangeValue, v.isNameref || o.isNameref
	v.isPossiblyUndeclaredLocal = v.isPossiblyUndeclaredLocal || o.isPossiblyUndeclaredLocal
	if v.dotEnvFileReadEffect == nil {
		v.dotEnvFileReadEffect = o.dotEnvFileReadEffect
	}
	v.possibleContents = slices.Clip(v.possibleContents)
	for _, c := range o.possibleContents {
		if !slices.ContainsFunc(v.possibleContents, c.equal) {
			v.possibleContents = append(v.possibleContents, c)
		}
	}
	if len(v.possibleContents) > maxPossibleVariableValues {
		v.possibleContents = []variableContent{{val: v.valueCoveringPossibleContents("…"), mayBeUnset: true, isArray: slices.ContainsFunc(v.possibleContents, func(c variableContent) bool { return c.isArray })}}
	}
	return v
}

// valueCoveringPossibleContents returns one value that covers all possible contents of a variable.
func (v variable) valueCoveringPossibleContents(messageText string) abstract.Value {
	var all []abstract.Value
	for _, c := range v.possibleContents {
		if c.isFromBeforeCommandText {
			all = append(all, abstract.UnsetVariableValue(messageText, 0))
			continue
		}
		all = append(append(all, c.members...), c.val)
	}
	numbers, outside := true, false
	for _, one := range all {
		before := hasOnlyEnvironmentUnknowns(one) && one.FullyUnknown
		numbers = numbers && (one.IsNumber() || isDecimal(one) || before) && one.Taint == 0
		outside = outside || before
	}
	switch {
	case !numbers:
		return unknownValueWithTaintsOf(messageText, all...)
	case outside:
		return abstract.Unknown(messageText, 0).WithOrigin(abstract.OriginUnsetVariable | abstract.OriginArithmetic)
	}
	return abstract.UnknownNumber(messageText)
}

func isDecimal(v abstract.Value) bool {
	_, err := parseDecimal(v.Text)
	return v.IsLiteral() && err == nil
}

// parseDecimal parses a number that all shells read as decimal.
func parseDecimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && strconv.FormatInt(n, 10) != text {
		err = strconv.ErrSyntax
	}
	return n, err
}

// withUnknownContent returns a copy of the variable with unknown content. It is used if every
// iteration of a loop changes the variable.
func (v variable) withUnknownContent(name string) variable {
	c := variableContent{val: v.valueCoveringPossibleContents("$" + name), mayBeUnset: true, isArray: slices.ContainsFunc(v.possibleContents, func(c variableContent) bool { return c.isArray })}
	v.possibleContents = []variableContent{c}
	return v
}

// lookup returns a variable's content, and whether the analysed text sets it. If several contents are possible,
// the result is unknown; to walk code once for each of them, use analysisState.walkEachVariableValue.
func (s *analysisState) lookup(name string) (variableContent, bool) {
	v := s.vars.get(name)
	if len(v.possibleContents) > 1 {
		return variableContent{val: v.valueCoveringPossibleContents("$" + name), mayBeUnset: true, isArray: slices.ContainsFunc(v.possibleContents, func(c variableContent) bool { return c.isArray })}, true
	}
	if v.isNameref || v.canAttributesChangeValue && !v.possibleContents[0].isUnset && !v.possibleContents[0].isFromBeforeCommandText {
		return variableContent{val: v.valueCoveringPossibleContents("$" + name), mayBeUnset: true, isArray: v.possibleContents[0].isArray}, true
	}
	return v.possibleContents[0], !v.possibleContents[0].isFromBeforeCommandText
}

// mayCommandTextAssign reports whether the text may assign a variable.
func (s *analysisState) mayCommandTextAssign(name string) bool {
	_, ok := s.vars.byName[name]
	return ok || s.vars.hasAssignmentToUnknownName && syntax.ValidName(name)
}

// setVariableContent sets the only content of a variable.
func (s *analysisState) setVariableContent(name string, c variableContent) {
	v := s.vars.byName[name]
	v.dotEnvFileReadEffect = nil
	switch name {
	case "LINENO", "RANDOM", "SRANDOM", "SECONDS", "BASHPID", "EPOCHSECONDS", "HISTCMD": // reading them does not return the assigned value
		c = variableContent{val: abstract.UnknownNumber("$" + name)}
	case "BASH_COMMAND", "DIRSTACK", "FUNCNAME", "GROUPS", "PIPESTATUS", "_":
		c = variableContent{val: unknownValueWithTaintsOf("$"+name, c.val), mayBeUnset: true}
	}
	next := variable{possibleContents: []variableContent{c}, isExported: v.isExported, mayBeReadonly: v.mayBeReadonly, canAttributesChangeValue: v.canAttributesChangeValue, isNameref: v.isNameref}
	if v.mayBeReadonly || slices.Contains(s.trapCodeVariableNames, name) {
		next = next.merge(s.vars.get(name))
	}
	if v.canAttributesChangeValue && !isDecimal(c.val) { // the value may not be a valid number or key
		s.recordErrorAbortingLineOrShell()
	}
	if v.isNameref {
		s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "assigns through the nameref $"+name, c.val.SourceSpan)
		s.forgetVariables()
		return
	}
	if len(s.vars.byName) >= maxVariables {
		s.abortAnalysis("too many assignments")
		return
	}
	s.Shell.setVariable(name, next)
}

// assign assigns a variable, and walks code that runs because of its value.
func (s *analysisState) assign(name string, v abstract.Value) {
	s.assignWithoutCodeCheck(name, v)
	s.recordVariableAssignmentEffects(name, v, v.SourceSpan)
}

// assignWithoutCodeCheck assigns a variable without checking for code that programs run because of its name.
func (s *analysisState) assignWithoutCodeCheck(name string, v abstract.Value) {
	s.walkSubscripts(v, false)
	if commandLookupArrays[name] {
		s.recordCommandRenaming(name, v.SourceSpan)
	}
	if old, ok := s.lookup(name); ok && old.isArray { // an array: assigns its first member, or in zsh replaces it
		v = unknownValueWithTaintsOf("$"+name, append([]abstract.Value{v, old.val}, old.members...)...)
		s.setVariableContent(name, variableContent{val: v, isArray: true})
		return
	}
	s.setVariableContent(name, variableContent{val: v})
}

// possiblyAssignWithoutCodeCheck is [analysisState.assignWithoutCodeCheck] for an assignment that may not happen.
func (s *analysisState) possiblyAssignWithoutCodeCheck(name string, v abstract.Value) {
	s.walkCodeThatMayRun(func() { s.assignWithoutCodeCheck(name, v) })
}

// assignByNameWord assigns to the name in a word: a variable, or an array member. If the name is unknown, any variable may
// change.
func (s *analysisState) assignByNameWord(nameWord, v abstract.Value) {
	name, _, member := strings.Cut(nameWord.Text, "[")
	switch {
	case !nameWord.IsLiteral() || !syntax.ValidName(name):
		s.walkSubscripts(nameWord, true)
		s.assignUnknownName(nameWord)
	case member:
		s.walkSubscripts(nameWord, false)
		s.assignUnknownMemberOfArray(name, v)
	default:
		s.assign(name, v)
	}
}

// assignUnknownName handles an assignment to an unknown variable: all variables become unknown. A computed name may be a
// variable that makes programs run code.
func (s *analysisState) assignUnknownName(v abstract.Value) {
	if v.HasUnanalysedComputation() {
		s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "the name of the assigned variable is unknown: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
	}
	s.forgetVariables()
}

// assignUnknownMemberOfArray assigns v to a member of an array without evaluating the index. Afterwards the
// content of the whole array is unknown.
func (s *analysisState) assignUnknownMemberOfArray(arrayName string, v abstract.Value) {
	s.recordArrayMemberCodeEffects(arrayName, v)
	if commandLookupArrays[arrayName] {
		s.recordCommandRenaming(arrayName, v.SourceSpan)
	}
	old, _ := s.lookup(arrayName)
	all := append([]abstract.Value{v, old.val}, old.members...)
	if arrayName == "argv" { // zsh: argv holds the positional parameters
		s.setUnknownPositional(all...)
	}
	s.setVariableContent(arrayName, variableContent{val: unknownValueWithTaintsOf("$"+arrayName, all...), isArray: true})
}

// forgetVariables makes all variables unknown, because an unknown variable was assigned.
func (s *analysisState) forgetVariables() {
	kept := &variableTable{byName: map[string]variable{}, hasAssignmentToUnknownName: true}
	for name, v := range s.vars.byName {
		if syntax.ValidName(name) { // else an internal name, not a variable
			v.possibleContents = []variableContent{{val: abstract.UnsetVariableValue(name, abstract.TaintUnknownText).WithOrigin(abstract.OriginAssignmentToUnknownName), mayBeUnset: true}}
		}
		kept.set(name, v)
	}
	s.vars = kept
}

// walkAssignment binds a variable for NAME=VALUE.
func (s *analysisState) walkAssignment(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		if a.Value != nil {
			s.expandWord(a.Value)
		}
		return
	}
	name := a.Name.Value
	switch {
	case a.Array != nil && a.Index != nil: // zsh: assigns a slice of an array
		s.walkIndex(a.Index)
		s.assignUnknownMemberOfArray(name, unknownValueWithTaintsOf("$"+name, s.expandArrayMembers(a.Array)...))
		return
	case a.Array != nil:
		s.assignArray(name, a)
		return
	case a.Index != nil:
		s.walkIndex(a.Index)
		v := abstract.Value{}
		if a.Value != nil {
			v = s.expandWord(a.Value)
		}
		s.assignUnknownMemberOfArray(name, v)
		return
	}
	v := s.expandWord(a.Value)
	if a.Append {
		old, ok := s.lookup(name)
		switch {
		case old.isArray:
			s.assignUnknownMemberOfArray(name, v)
			return
		case ok:
			v = abstract.Concat(old.val, v)
		default:
			v = abstract.Concat(s.environmentValue(name)[0], v)
		}
	}
	v.SourceSpan = s.spanOf(a)
	s.assign(name, v)
}

// expandArrayMembers returns the words of an array literal.
func (s *analysisState) expandArrayMembers(a *syntax.ArrayExpr) (out []abstract.Value) {
	for _, e := range a.Elems {
		if e.Index != nil {
			s.walkIndex(e.Index)
		}
		if e.Value != nil {
			out = append(out, s.expandFields(e.Value)...)
		}
		if len(out) > abstract.MaxExpandedWords {
			s.abortAnalysis("an array is too long to analyse")
			break
		}
	}
	return out
}

// assignArray handles NAME=(…): the members are known if each is one literal word.
func (s *analysisState) assignArray(name string, a *syntax.Assign) {
	list := s.expandArrayMembers(a.Array)
	for _, v := range list {
		s.recordArrayMemberCodeEffects(name, v)
	}
	if commandLookupArrays[name] {
		s.recordCommandRenaming(name, s.spanOf(a))
	}
	old, bound := s.lookup(name)
	exact := !slices.ContainsFunc(a.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Index != nil }) &&
		!slices.ContainsFunc(list, func(v abstract.Value) bool { return v.IsGlobPattern && !v.IsSingleWord })
	if a.Append {
		exact = exact && bound && old.isArray && old.members != nil
		list = append(slices.Clip(old.members), list...)
	}
	c := variableContent{members: list, isArray: true}
	switch {
	case exact && list == nil:
		c.members = []abstract.Value{}
	case !exact && len(list) == 1 && list[0].HasPathPerLine && !a.Append:
		c = variableContent{val: list[0], isArray: true}
	case !exact:
		c = variableContent{val: unknownValueWithTaintsOf("$"+name, append(list, old.val)...), isArray: true}
	}
	if name == "argv" { // zsh: argv holds the positional parameters
		s.setUnknownPositional(list...)
	}
	if name == "path" && len(list) > 0 {
		s.recordPATHAssignment(list[0])
	}
	s.setVariableContent(name, c)
}

// walkIndex walks code that an array subscript runs.
func (s *analysisState) walkIndex(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok {
		s.walkSubscripts(s.expandWord(w), true)
		return
	}
	s.walkArithmetic(x)
}

// setPositional sets the positional parameters, from $1.
func (s *analysisState) setPositional(args []abstract.Value) {
	c := variableContent{isArray: true, members: []abstract.Value{}}
	for i, v := range args {
		if v.IsGlobPattern && !v.IsSingleWord { // may become any number of words
			c = variableContent{isArray: true, val: unknownValueWithTaintsOf("$@", args...)}
			if v.HasPathPerLine && len(args) == 1 && i == 0 {
				c.val = v
			}
			break
		}
		s.walkSubscripts(v, false)
		c.members = append(c.members, v)
	}
	s.Shell.setVariable(positionalParametersName, variable{possibleContents: []variableContent{c}})
}

// setUnknownPositional sets the positional parameters to an unknown selection of words.
func (s *analysisState) setUnknownPositional(possibleWords ...abstract.Value) {
	s.Shell.setVariable(positionalParametersName, variable{possibleContents: []variableContent{{isArray: true, val: unknownValueWithTaintsOf("$@", possibleWords...)}}})
}

// positionalContent returns the positional parameters, from $1; false if they are unknown.
func (s *analysisState) positionalContent() (variableContent, bool) {
	c, ok := s.lookup(positionalParametersName)
	if !ok {
		return variableContent{isArray: true, members: []abstract.Value{}}, true
	}
	return c, c.members != nil
}

// positionalAt returns a positional parameter and whether it is set; n counts from 1.
func (s *analysisState) positionalAt(n int) (v abstract.Value, set bool) {
	c, known := s.positionalContent()
	switch {
	case !known:
		return anyListedPathOrFallback(c.val, unknownValueWithTaintsOf("$"+strconv.Itoa(n), c.val)), false
	case n >= 1 && n <= len(c.members):
		return c.members[n-1], true
	}
	return abstract.Value{}, false
}

// positionalValues returns the values of $@.
func (s *analysisState) positionalValues() []abstract.Value {
	c, known := s.positionalContent()
	if !known {
		return []abstract.Value{anyListedPathOrFallback(c.val, unknownValueWithTaintsOf("$@", c.val))}
	}
	return c.members
}

// anyListedPathOrFallback returns a value that represents any path in newlineSeparatedPaths, a list with one
// path per line, with the display text and the taints of fallback. If newlineSeparatedPaths is not a list of
// this kind, it returns fallback.
func anyListedPathOrFallback(newlineSeparatedPaths, fallback abstract.Value) abstract.Value {
	if !newlineSeparatedPaths.HasPathPerLine {
		return fallback
	}
	newlineSeparatedPaths.Display, newlineSeparatedPaths.Taint = fallback.Display, fallback.Taint
	return newlineSeparatedPaths
}

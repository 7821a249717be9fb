package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// expandParameter returns the values of a parameter expansion: one, or one for each member of a list.
func (s *analysisState) expandParameter(p *syntax.ParamExp) []abstract.Value {
	if !s.spendSteps(1) || !s.enterNesting(s.span(0, 0)) {
		return nil
	}
	defer s.leaveNesting()
	show := s.parameterForMessage(p)
	if p.Param == nil || isZshExpansion(p) {
		return s.expandZshParameter(p, show)
	}
	if p.Names != 0 { // ${!prefix@}: the environment may have more such variables
		return []abstract.Value{abstract.UnsetVariableValue("{!"+p.Param.Value+"@}", 0)}
	}
	s.recordShownVariable(p.Param.Value)
	vals, set := s.parameterValue(p, show)
	if s.nounset && !set && len(vals) == 1 && vals[0].IsLiteral() && vals[0].Text == "" {
		s.recordPossibleExit()
	}
	if c, _ := s.lookup(p.Param.Value); s.nounset && p.Length && isListIndex(p) && !c.isArray { // with set -u, bash reports an error for ${#name[@]} if name is not an array
		s.recordErrorAbortingLineOrShell()
	}
	if p.Excl {
		vals, set = s.expandIndirect(p, vals, show), false
	}
	switch {
	case p.Length:
		return []abstract.Value{abstract.UnknownTextWithoutSlash("${#"+p.Param.Value+"}", abstract.OriginUnsetVariable)}
	case p.Slice != nil:
		return s.sliceParameter(p, vals, show)
	case p.Repl != nil:
		orig, with := s.expandWord(p.Repl.Orig), abstract.Value{}
		if p.Repl.With != nil {
			with = s.expandWord(p.Repl.With)
		}
		return mapValues(vals, func(v abstract.Value) abstract.Value { return s.replaceExpansion(v, orig, with, p.Repl.All, show) })
	case p.Exp != nil:
		return s.applyExpansion(p, vals, set, show)
	}
	return vals
}

// expandIndirect expands ${!name}: the value of the variable whose name is in name. It is computed only for a known name
// of a scalar variable.
func (s *analysisState) expandIndirect(p *syntax.ParamExp, vals []abstract.Value, messageText string) []abstract.Value {
	if len(vals) == 1 && vals[0].IsLiteral() && syntax.ValidName(vals[0].Text) && p.Index == nil {
		if c, ok := s.lookup(vals[0].Text); ok && !c.isArray {
			return []abstract.Value{c.val}
		} else if !ok {
			return s.environmentValue(vals[0].Text)
		}
	}
	for _, v := range vals {
		s.walkSubscripts(v, false)
	}
	s.recordErrorAbortingLineOrShell()
	return []abstract.Value{unknownValueWithTaintsOf(messageText, vals...)}
}

// isZshExpansion reports whether an expansion exists only in zsh or mksh.
func isZshExpansion(p *syntax.ParamExp) bool {
	return p.Flags != nil || p.IsSet || p.Width || p.Split != syntax.OptUnset || p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset || len(p.Modifiers) > 0
}

// parameterForMessage returns the text of an expansion for messages.
func (s *analysisState) parameterForMessage(p *syntax.ParamExp) string {
	if p.Param == nil {
		return "${…}"
	}
	if p.Short || p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl {
		return "$" + p.Param.Value
	}
	return "${" + p.Param.Value + "…}"
}

// unknownValueWithTaintsOf returns an unknown value for an expansion that is not computed, with the taint and origin of its
// operands.
//
//go:noinline
func unknownValueWithTaintsOf(messageText string, operands ...abstract.Value) abstract.Value {
	out := abstract.Unknown(messageText, 0)
	for _, v := range operands {
		out.Taint |= v.Taint
		out.Origin |= v.Origin
		out.HasUnknownPartWithoutOrigin = out.HasUnknownPartWithoutOrigin || v.HasUnknownPartWithoutOrigin || v.IsGlobPattern && v.Origin == 0
	}
	if out.Origin == 0 {
		out.Origin = abstract.OriginUnanalysedComputation
	}
	return out.WithOrigin(out.Origin)
}

func mapValues(vals []abstract.Value, f func(abstract.Value) abstract.Value) []abstract.Value {
	out := make([]abstract.Value, len(vals))
	for i, v := range vals {
		out[i] = f(v)
	}
	return out
}

// parameterValue returns the value of a parameter and whether the text sets it.
func (s *analysisState) parameterValue(p *syntax.ParamExp, messageText string) (vals []abstract.Value, isSet bool) {
	name := p.Param.Value
	switch name {
	case "@", "*":
		args := s.positionalValues()
		return args, len(args) > 0 && args[0].IsLiteral()
	case "#":
		args, ok := s.positionalContent()
		if !ok {
			return []abstract.Value{abstract.UnknownTextWithoutSlash("$#", abstract.OriginUnsetVariable)}, true
		}
		return []abstract.Value{abstract.Lit(strconv.Itoa(len(args.members)))}, true
	case dollarZeroName:
		if c, ok := s.lookup(dollarZeroName); ok {
			return []abstract.Value{c.val}, true
		}
		return []abstract.Value{abstract.UnknownTextWithoutSlash("$0", abstract.OriginUnsetVariable)}, true
	case "?", "$", "!", "-", "_", "RANDOM", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "UID", "EUID", "PPID", "SRANDOM":
		if c, ok := s.lookup(name); ok {
			return []abstract.Value{c.val}, true
		}
		from := abstract.OriginUnsetVariable
		if name == "!" {
			from |= abstract.OriginJobID
		}
		return []abstract.Value{abstract.UnknownTextWithoutSlash("$"+name, from)}, true
	}
	if n, err := strconv.Atoi(name); err == nil { // positional parameters other than $0
		v, set := s.positionalAt(n)
		return []abstract.Value{v}, set
	}
	if p.Index != nil && !isListIndex(p) {
		s.walkIndex(p.Index)
	}
	c, ok := s.lookup(name)
	switch {
	case !ok:
		return s.environmentValue(name), false
	case c.isUnset && isListIndex(p) && s.dialect.mayBePOSIX:
		return []abstract.Value{unknownValueWithTaintsOf(messageText)}, false
	case c.isUnset && isListIndex(p):
		return nil, false
	case c.isUnset:
		return []abstract.Value{{}}, false
	case !c.isArray && (p.Index == nil || isListIndex(p) && c.val.IsLiteral()):
		return []abstract.Value{c.val}, !c.mayBeUnset
	case !c.isArray:
		return []abstract.Value{unknownValueWithTaintsOf(messageText, c.val)}, false
	}
	return s.arrayMember(p, c, messageText)
}

// isListIndex reports whether an expansion refers to all members of an array ([@] or [*]).
func isListIndex(p *syntax.ParamExp) bool {
	w, ok := p.Index.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// arrayMember returns the member of an array at a subscript, or the value of the array without one. zsh counts
// members from 1 and expands an array without a subscript to all members.
func (s *analysisState) arrayMember(p *syntax.ParamExp, c variableContent, show string) ([]abstract.Value, bool) {
	if c.members == nil || s.dialect.zshOptionsChanged || p.Excl {
		if c.val.HasPathPerLine {
			return []abstract.Value{c.val}, false
		}
		return []abstract.Value{unknownValueWithTaintsOf(show, append(slices.Clip(c.members), c.val)...)}, false
	}
	at := 0
	switch {
	case isListIndex(p) || p.Index == nil && s.readsAsZsh():
		return c.members, len(c.members) > 0
	case p.Index != nil:
		n, ok := evalLiteralArithmetic(p.Index)
		if !ok || n > abstract.MaxExpandedWords || n < -abstract.MaxExpandedWords {
			return []abstract.Value{unknownValueWithTaintsOf(show, c.members...)}, false
		}
		if at = int(n); at < 0 {
			at += len(c.members)
		} else if s.readsAsZsh() {
			at--
		}
	}
	if at < 0 || at >= len(c.members) {
		return []abstract.Value{{}}, false
	}
	return c.members[at : at+1], true
}

// isTemporaryFolderWord reports whether a word is literally a folder below /tmp.
func isTemporaryFolderWord(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	text, ok := literalWord(w)
	return ok && strings.HasPrefix(text, "/tmp/") && path.Clean(text) == strings.TrimSuffix(text, "/")
}

// environmentValue returns what is known about a variable that the text does not set.
func (s *analysisState) environmentValue(name string) []abstract.Value {
	v := abstract.UnsetVariableValue(name, 0)
	switch name {
	case unknownParameterName:
		return []abstract.Value{unknownValueWithTaintsOf("…")}
	case "HOME":
		v = abstract.Lit("~")
		if s.initialPathContext.Home != "" {
			v = abstract.Lit(s.initialPathContext.Home)
		}
	case "PWD", "OLDPWD":
		if cwd := s.workingFolderContext().CWD; cwd != "" && name == "PWD" {
			v = abstract.Lit(cwd)
		}
	case "IFS":
		v = abstract.Lit(defaultIFS)
	case "SHELL", "BASH":
		v = abstract.Lit("/bin/bash")
	case "TMPDIR", "TMP", "TEMP":
		if !slices.ContainsFunc(s.prefixAssignmentsNotYetVisible, func(a *syntax.Assign) bool {
			return a.Name != nil && a.Name.Value == name && !isTemporaryFolderWord(a.Value)
		}) {
			v = abstract.Lit("/tmp") // assume /tmp, unless an assignment before the command sets the variable to a non-temporary folder
		}
	case "OSTYPE", "HOSTTYPE", "MACHTYPE", "USER", "LOGNAME", "USERNAME", "HOSTNAME", "SHLVL":
		v = abstract.UnknownTextWithoutSlash("$"+name, abstract.OriginUnsetVariable)
	}
	if knowledge.IsSecretVariableName(name) {
		v.Taint |= abstract.TaintCredentialVariable
		v.SecretDescription = "$" + name
	}
	return []abstract.Value{v}
}

// sliceParameter computes ${x:o:l} for literal numbers.
func (s *analysisState) sliceParameter(p *syntax.ParamExp, vals []abstract.Value, messageText string) []abstract.Value {
	from, ok := parseLiteralNumber(s.walkArithmetic(p.Slice.Offset))
	count, counted := int64(1<<31), true
	if p.Slice.Length != nil {
		count, counted = parseLiteralNumber(s.walkArithmetic(p.Slice.Length))
	}
	if !ok || !counted || s.dialect.zshOptionsChanged {
		return mapValues(vals, func(v abstract.Value) abstract.Value { return unknownValueWithTaintsOf(messageText, v) })
	}
	name := p.Param.Value
	if c, bound := s.lookup(name); name == "@" || name == "*" || bound && c.isArray {
		positional := name == "@" || name == "*"
		if positional && from <= 0 || !positional && !isListIndex(p) || from < 0 || slices.ContainsFunc(vals, func(v abstract.Value) bool { return !v.IsLiteral() }) { // offset 0 includes $0; negative offsets count from the end
			return []abstract.Value{unknownValueWithTaintsOf(messageText, vals...)}
		}
		if positional {
			from--
		}
		lo, hi := sliceBounds(from, count, len(vals))
		return vals[lo:hi]
	}
	if isListIndex(p) || from < 0 && len(vals) == 1 && int(-from) > utf8.RuneCountInString(vals[0].Text) {
		return []abstract.Value{unknownValueWithTaintsOf(messageText, vals...)}
	}
	return mapValues(vals, func(v abstract.Value) abstract.Value {
		if !v.IsLiteral() {
			// These values always start with a slash.
			if from == 0 && count == 1 && (name == "PATH" || name == "PWD" || name == "OLDPWD" || name == "HOME" || name == "SHELL") {
				return abstract.Lit("/")
			}
			return unknownValueWithTaintsOf(messageText, v)
		}
		text := v.Text
		if text == "~" && from == 0 && count == 1 {
			return abstract.Lit("/")
		}
		runes := []rune(text)
		lo, hi := sliceBounds(from, count, len(runes))
		v.Text = string(runes[lo:hi])
		return v
	})
}

func parseLiteralNumber(v abstract.Value) (int64, bool) {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	return n, err == nil && v.IsLiteral()
}

// sliceBounds converts offset and length of ${x:o:l} to bounds in a list or text of length n.
func sliceBounds(from, count int64, n int) (lo, hi int) {
	size := int64(n)
	if from < 0 {
		from = max(0, from+size)
	}
	from = min(from, size)
	end := from + count
	if count < 0 {
		end = size + count
	}
	return int(from), int(max(from, min(end, size)))
}

func (s *analysisState) applyExpansion(p *syntax.ParamExp, vals []abstract.Value, isSet bool, messageText string) []abstract.Value {
	e := p.Exp
	empty := len(vals) == 0 || len(vals) == 1 && vals[0].IsLiteral() && vals[0].Text == ""
	if c, ok := s.lookup(p.Param.Value); empty && (ok && c.isArray || len(vals) != 1) && (isListIndex(p) || p.Index == nil) && s.readsAsZsh() { // zsh treats an empty list as null only if it is quoted
		return []abstract.Value{unknownValueWithTaintsOf(messageText, s.expandWord(e.Word))}
	}
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return s.expandDefault(p, vals, isSet, empty, messageText)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return s.expandAlternate(p, vals, isSet, empty, messageText)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		s.expandWord(e.Word)
		if !isSet || empty || !vals[0].IsLiteral() {
			s.recordPossibleExit()
		}
		return vals
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		pat := s.expandWord(e.Word)
		return mapValues(vals, func(v abstract.Value) abstract.Value { return s.trimExpansion(v, pat, e.Op, messageText) })
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return mapValues(vals, func(v abstract.Value) abstract.Value {
			switch {
			case !v.IsLiteral():
				return unknownValueWithTaintsOf(messageText, v)
			case e.Op == syntax.UpperAll:
				v.Text = strings.ToUpper(v.Text)
			case e.Op == syntax.LowerAll:
				v.Text = strings.ToLower(v.Text)
			default:
				r, n := utf8.DecodeRuneInString(v.Text)
				first := strings.ToUpper(string(r))
				if e.Op == syntax.LowerFirst {
					first = strings.ToLower(string(r))
				}
				if n > 0 {
					v.Text = first + v.Text[n:]
				}
			}
			return v
		})
	case syntax.OtherParamOps:
		if s.expandWord(e.Word).Text == "P" { // ${x@P} expands x as a prompt, which runs the command substitutions in it
			for _, v := range vals {
				s.walkExpansionsInPlainText(v.Text, s.spanOf(p))
			}
		}
	}
	return mapValues(vals, func(v abstract.Value) abstract.Value { return unknownValueWithTaintsOf(messageText, v) })
}

// expansionOperand returns the value of the word in an expansion such as ${x:-word}. It is unknown if the word
// contains a list, or an expansion and white space: it may become several words.
func (s *analysisState) expansionOperand(w *syntax.Word) abstract.Value {
	v := s.expandWord(w)
	if w != nil && v.IsLiteral() && (s.containsListExpansion(w) || strings.ContainsAny(v.Text, defaultIFS) && hasExpansion(w)) {
		return unknownValueWithTaintsOf("${…}", v) // shells differ in how they split the word of ${x:-word}
	}
	return v
}

// containsListExpansion reports whether a word contains the members of an array or the positional parameters.
func (s *analysisState) containsListExpansion(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && !found {
			c, _ := s.lookup(p.Param.Value)
			found = p.Param.Value == "@" || p.Param.Value == "*" || c.isArray
		}
		return !found
	})
	return found
}

// expandDefault computes ${x-word}, ${x:-word}, ${x=word} and ${x:=word}.
func (s *analysisState) expandDefault(p *syntax.ParamExp, vals []abstract.Value, isSet, isEmpty bool, messageText string) []abstract.Value {
	e, envVar := p.Exp, !isSet && !isEmpty // an environment variable: may be set or unset
	assigns := e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull
	orNull := e.Op == syntax.DefaultUnsetOrNull || e.Op == syntax.AssignUnsetOrNull
	to := abstract.Lit(p.Param.Value)
	if p.Index != nil || p.Excl {
		if to.Text += "["; assigns {
			s.recordErrorAbortingLineOrShell()
		}
	}
	if isSet && !(isEmpty && orNull) {
		if !orNull || len(vals) != 1 || vals[0].IsLiteral() {
			return vals
		}
	} else if envVar && vals[0].IsLiteral() {
		return vals
	} else if !envVar {
		word := s.expansionOperand(e.Word)
		if assigns {
			s.assignByNameWord(to, word)
		}
		return []abstract.Value{word}
	}
	// The variable may be set or unset.
	_, bound := s.vars.byName[p.Param.Value]
	var word abstract.Value
	s.walkCodeThatMayRun(func() {
		if word = s.expansionOperand(e.Word); assigns {
			s.assignByNameWord(to, word)
		}
	})
	if !isSet && !bound {
		word.Taint |= vals[0].Taint
		return []abstract.Value{word} // assume that the variable is unset: if the environment sets it, the value is the user's choice, not the agent's
	}
	return []abstract.Value{unknownValueWithTaintsOf(messageText, vals[0], word)}
}

// isVariableAssumedNonEmpty reports whether a variable is assumed to be set and not empty: see state.ambiguousVariables.
func (s *analysisState) isVariableAssumedNonEmpty(variableName string) bool {
	may := s.vars.get(variableName).possibleContents
	return len(may) == 1 && may[0].isAssumedNonEmpty
}

// expandAlternate computes ${x+word} and ${x:+word}.
func (s *analysisState) expandAlternate(p *syntax.ParamExp, vals []abstract.Value, isSet, isEmpty bool, messageText string) []abstract.Value {
	var word abstract.Value
	s.walkCodeThatMayRun(func() { word = s.expansionOperand(p.Exp.Word) })
	null := p.Exp.Op == syntax.AlternateUnsetOrNull
	known := len(vals) > 0 && (vals[0].IsLiteral() || len(vals) > 1)
	switch {
	case s.isVariableAssumedNonEmpty(p.Param.Value), isSet && !isEmpty && known || isSet && !null && len(vals) > 0 || !isSet && !isEmpty && known:
		return []abstract.Value{word}
	case isEmpty && (!isSet || null):
		return []abstract.Value{{}}
	}
	return []abstract.Value{unknownValueWithTaintsOf(messageText, word)}
}

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A shellDialect says which shell's syntax is used to read a text.
type shellDialect struct {
	isReadAsZsh       bool // read the text as zsh does
	isKnown           bool // the shell is known, because a command names it
	mayBePOSIX        bool // the shell may be a minimal POSIX shell such as dash
	isFish            bool // the shell is fish
	zshOptionsChanged bool // zsh options may change how zsh reads the text
}

// readsAsZsh reports whether the command is walked with the meaning that it has in zsh. If the shell is not
// known, analysisState.walkAgainAsZsh walks the command a second time as zsh.
func (s *analysisState) readsAsZsh() bool {
	s.isReadDifferentlyByZsh = s.isReadDifferentlyByZsh || !s.dialect.isKnown && !s.dialect.isReadAsZsh
	return s.dialect.isReadAsZsh
}

// recordDialectDifference records that shells parse the described syntax differently and that the
// analysis does not follow all meanings.
func (s *analysisState) recordDialectDifference(syntaxDescription string, at effect.CommandTextSpan) {
	s.emitUnknownEffect(effect.CauseShellDialectDifference, "shells parse this differently: "+syntaxDescription, at)
}

// zshOnlyCommands are commands that only zsh has and that assign variables. Where the value is true, they may also run
// code, load it from a file or redefine names; these effects are not analysed.
var zshOnlyCommands = map[string]bool{
	"autoload": true, "functions": true, "getln": false, "sched": true, "strftime": false, "sysopen": true, "sysread": false,
	"sysseek": false, "syserror": false, "vared": true, "zargs": true, "zcalc": true, "zcp": true, "zcurses": false,
	"zformat": false, "zln": true, "zmodload": true, "zmv": true, "zparseopts": false, "zpty": true, "zregexparse": true, "zselect": false,
	"zsocket": true, "zstat": false, "zstyle": false, "zsystem": false, "ztcp": true, "ztie": true,
}

// walkZshCommand walks a command that only zsh has.
func (s *analysisState) walkZshCommand(argv []abstract.Value, io abstract.Streams) abstract.Value {
	name, first := argv[0].Text, argv[min(1, len(argv)-1)]
	runs := zshOnlyCommands[name]
	switch option := strings.HasPrefix(first.Text, "-"); name {
	case "functions":
		runs = option
	case "zmodload":
		runs = len(argv) > 1 && !strings.HasPrefix(first.Text, "zsh/") && !strings.HasPrefix(first.Text, "-") && !strings.Contains(first.Text, ":") || slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.Contains(v.Text, "..") || !v.IsLiteral() }) || s.mayCommandTextAssign("module_path") || s.mayCommandTextAssign("MODULE_PATH")
	case "zstyle":
		runs = first.Text == "-e"
	case "autoload": // without changes of $fpath, it loads only functions that the user installed
		runs = len(s.writtenFiles) > 0 || s.mayCommandTextAssign("fpath") || s.mayCommandTextAssign("FPATH") || slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.Contains(v.Text, "/") || !v.IsLiteral() })
	}
	if argv[0].Text == "ztcp" {
		e := effect.Effect{Kind: effect.Connect, PathIsPattern: true, Span: wordsSpan(argv)}
		for _, v := range argv[1:] {
			if v.IsLiteral() && !strings.HasPrefix(v.Text, "-") {
				e.Host, e.PathIsPattern = effect.CanonicalHost(v.Text), false
				break
			}
		}
		s.emitOnce(e)
	}
	if runs {
		s.recordDialectDifference(name, wordsSpan(argv))
		s.walkCommandOfUnknownWrapper(argv[1:], io)
	}
	for _, v := range argv[1:] {
		s.recordPathOrURL(v)
		s.walkSubscripts(v, true)
	}
	if s.forgetVariables(); argv[0].Text == "ztcp" {
		s.openDescriptor("ztcp", abstract.Unknown("what a connection sends", abstract.TaintNetwork|abstract.TaintSocket), &abstract.OutputTarget{IsSocket: true})
		s.setVariableContent("REPLY", variableContent{val: abstract.Lit("ztcp")})
	}
	return abstract.Unknown("$("+argv[0].Text+")", abstract.TaintUnknownText).WithOrigin(abstract.OriginCommandOutput)
}

// A zshWordForm is a form of a word that zsh expands differently from other shells.
type zshWordForm struct {
	isGlob                   bool                                                        // the word form is a glob
	isExpandedInDoubleQuotes bool                                                        // zsh expands the word form inside double quotes, too
	matchesPartAt            func(s *analysisState, parts []syntax.WordPart, i int) bool // reports whether the word form begins at parts[i] of a word
	mayRunCode               bool                                                        // in zsh, a word of this form may run code, or name a command to run
	name                     string
}

// wordFormsZshExpandsDifferently are the word forms that zsh expands differently. Their value in zsh is unknown.
var wordFormsZshExpandsDifferently = [...]zshWordForm{
	{name: "$name[…]", isExpandedInDoubleQuotes: true, matchesPartAt: func(_ *analysisState, parts []syntax.WordPart, i int) bool {
		p, l, ok := parameterAndLiteral(parts, i)
		return ok && p.Index == nil && strings.HasPrefix(l.Value, "[")
	}},
	{name: "$#name", isExpandedInDoubleQuotes: true, matchesPartAt: func(_ *analysisState, parts []syntax.WordPart, i int) bool {
		p, l, ok := parameterAndLiteral(parts, i)
		return ok && p.Param.Value == "#" && l.Value != "" && (l.Value[0] == '_' || syntax.ValidName(l.Value[:1]))
	}},
	{name: "$name:h", isExpandedInDoubleQuotes: true, matchesPartAt: func(s *analysisState, parts []syntax.WordPart, i int) bool {
		p, l, ok := parameterAndLiteral(parts, i)
		return ok && len(l.Value) > 1 && l.Value[0] == ':' && strings.IndexByte("aAceghlpPqQrstuwWx&", l.Value[1]) >= 0 && s.zshModifierChangesKnownValue(p.Param.Value)
	}},
	{name: "$=name", matchesPartAt: func(_ *analysisState, parts []syntax.WordPart, i int) bool {
		if i+1 == len(parts) {
			return false
		}
		sign, ok := parts[i].(*syntax.Lit)
		name, also := parts[i+1].(*syntax.Lit)
		return ok && also && sign.Value == "$" && len(name.Value) > 1 && strings.IndexByte("=~^+", name.Value[0]) >= 0
	}},
	{name: "${name-{…}}", isExpandedInDoubleQuotes: true, matchesPartAt: func(_ *analysisState, parts []syntax.WordPart, i int) bool {
		p, ok := parts[i].(*syntax.ParamExp)
		return ok && p.Exp != nil && hasBrace(p.Exp.Word)
	}},
	{name: "~name", matchesPartAt: func(s *analysisState, parts []syntax.WordPart, i int) bool {
		l, ok := parts[i].(*syntax.Lit)
		if !ok || i > 0 || !strings.HasPrefix(l.Value, "~") {
			return false
		}
		name, _, _ := strings.Cut(l.Value[1:], "/")
		return syntax.ValidName(name) && s.mayCommandTextAssign(name)
	}},
	{name: "a glob that runs code", mayRunCode: true, isGlob: true, matchesPartAt: func(_ *analysisState, parts []syntax.WordPart, i int) bool {
		return globQualifierRunsCode(globQualifier(parts[i]))
	}},
	{name: "a glob with qualifiers", isGlob: true, matchesPartAt: func(_ *analysisState, parts []syntax.WordPart, i int) bool {
		in := globQualifier(parts[i])
		return in != "" && globQualifiersPattern().MatchString(in)
	}},
}

// globQualifier returns the text in parentheses after a glob.
func globQualifier(part syntax.WordPart) string {
	switch p := part.(type) {
	case *syntax.ExtGlob:
		return p.Pattern.Value
	case *syntax.Lit:
		if before, in, ok := strings.Cut(p.Value, "("); ok && !strings.HasSuffix(before, `\`) {
			return in
		}
	}
	return ""
}

// parameterAndLiteral returns a parameter without braces and the text directly after it.
func parameterAndLiteral(parts []syntax.WordPart, i int) (*syntax.ParamExp, *syntax.Lit, bool) {
	p, ok := parts[i].(*syntax.ParamExp)
	if !ok || !p.Short || p.Param == nil || i+1 == len(parts) {
		return nil, nil, false
	}
	l, ok := parts[i+1].(*syntax.Lit)
	return p, l, ok
}

// zshModifierChangesKnownValue reports whether a zsh modifier, as in $name:h, can change a known value. It
// returns false for most environment variables, because their values are unknown with and without
// the modifier.
func (s *analysisState) zshModifierChangesKnownValue(variableName string) bool {
	switch variableName {
	case "PWD", "OLDPWD", "HOME", "SHELL", "TMPDIR", "0", "@", "*":
		return true
	}
	return s.mayCommandTextAssign(variableName) || variableName != "" && strings.Trim(variableName, "0123456789") == "" && s.mayCommandTextAssign(positionalParametersName)
}

// rewritePartsForDialect returns the parts of a word as the current shell dialect reads them. In zsh, the
// first part that zsh expands differently from bash makes the rest of the word unknown.
func (s *analysisState) rewritePartsForDialect(parts []syntax.WordPart, isQuoted bool) []syntax.WordPart {
	for i := range parts {
		for _, form := range wordFormsZshExpandsDifferently {
			if isQuoted && !form.isExpandedInDoubleQuotes || !form.matchesPartAt(s, parts, i) || !s.readsAsZsh() {
				continue
			}
			var vals []abstract.Value
			for _, p := range parts[i:] {
				vals = append(vals, s.expandPart(p))
			}
			if form.mayRunCode {
				s.recordDialectDifference(form.name, s.spanOf(parts[i]))
			}
			switch {
			case form.isGlob:
				return append(slices.Clone(parts[:i]), &syntax.BraceExp{})
			case hasOnlyEnvironmentUnknowns(vals[0]): // a value from the environment is unknown anyway
				return parts[:i+1]
			}
			return append(slices.Clone(parts[:i]), newUnknownWordPart())
		}
	}
	if isQuoted {
		return parts
	}
	return s.expandTilde(parts)
}

// interpretZshSpecialWords handles words that only zsh reads specially: =name is the path of a program, a closing brace always
// ends a command, and some words begin a loop.
func (s *analysisState) interpretZshSpecialWords(words []*syntax.Word, argv []abstract.Value) []abstract.Value {
	for i, w := range words {
		switch text := w.Lit(); {
		case (text == "}" || i == 0 && (text == "foreach" || text == "repeat" && len(words) > 1)) && s.readsAsZsh():
			s.emitUnknownEffect(effect.CauseUnparseableText, "zsh parses this as the end of a command or as a loop: "+text, s.spanOf(w))
		case len(text) > 1 && text[0] == '=' && text[1] != '=' && i < len(argv) && len(argv) == len(words) && argv[i].Text == text && s.readsAsZsh():
			if i == 0 {
				argv[i].Text = text[1:]
				continue
			}
			argv[i] = abstract.Value{Text: "*/" + effect.QuoteGlobMeta(text[1:]), Display: text, IsGlobPattern: true, SourceSpan: argv[i].SourceSpan}
		}
	}
	return argv
}

// expandZshParameter walks an expansion that only zsh has. Its value is unknown, and some of its flags run code in the
// value.
func (s *analysisState) expandZshParameter(p *syntax.ParamExp, messageText string) []abstract.Value {
	var vals []abstract.Value
	syntax.Walk(p, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Param != nil && n.Flags == nil && n != p {
				vals = append(vals, s.expandParameter(n)...)
				return false
			}
			if n.Param != nil {
				one, _ := s.parameterValue(n, messageText)
				vals = append(vals, one...)
			}
		case *syntax.Word:
			vals = append(vals, s.expandWord(n))
			return false
		}
		return true
	})
	if p.Flags != nil && strings.ContainsAny(p.Flags.Value, "eP%") {
		s.recordDialectDifference("a zsh expansion with the flag e, P or % expands the value of the variable again", s.spanOf(p))
	}
	for _, v := range vals {
		s.walkSubscripts(v, true)
	}
	return []abstract.Value{unknownValueWithTaintsOf(messageText, vals...)}
}

// recordZshOption records that an option of zsh is set, or may be.
func (s *analysisState) recordZshOption(v abstract.Value) {
	if s.dialect.zshOptionsChanged = true; s.readsAsZsh() && (!v.IsLiteral() || strings.Contains(strings.ToLower(strings.ReplaceAll(v.Text, "_", "")), "extendedglob")) {
		s.recordDialectDifference("extended globs", v.SourceSpan)
	}
}

// optionsSharedByAllShells are the options that all shells have and that do not change how words are read.
var optionsSharedByAllShells = map[string]bool{
	"allexport": true, "errexit": true, "errtrace": true, "functrace": true, "monitor": true, "noclobber": true, "noexec": true, "noglob": true,
	"nounset": true, "pipefail": true, "posix": true, "vi": true, "emacs": true, "verbose": true, "xtrace": true, "braceexpand": true,
	"keyword": true, "hashall": true, "histexpand": true, "history": true, "ignoreeof": true, "nolog": true, "notify": true, "onecmd": true,
	"physical": true, "privileged": true, "interactive-comments": true,
}

// changesZshParsing reports whether zsh is started with an option that changes how it reads words.
func changesZshParsing(argv []abstract.Value) bool {
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		switch {
		case !v.IsLiteral():
			return true
		case len(v.Text) < 2 || v.Text[0] != '-' && v.Text[0] != '+' || v.Text == "--":
			return false
		case strings.HasPrefix(v.Text, "--"):
			return v.Text != "--login" && v.Text != "--no-rcs" && v.Text != "--interactive"
		case strings.HasSuffix(v.Text, "o") && i+1 < len(argv):
			if i++; !optionsSharedByAllShells[argv[i].Text] {
				return true
			}
		case strings.Trim(v.Text[1:], "cdefilnpsuvxo") != "":
			return true
		}
	}
	return false
}

// mayBeZsh reports whether zsh may read the text; used for syntax with a different meaning in zsh.
func (s *analysisState) mayBeZsh() bool { return s.dialect.isReadAsZsh || !s.dialect.isKnown }

// walkZshMultipleInputs walks a statement with each input that only zsh uses: zsh reads all input redirections and the pipe
// before them, other shells only the last.
func (s *analysisState) walkZshMultipleInputs(st *syntax.Stmt, in abstract.Value, hasPipedInput bool) {
	if len(st.Redirs) == 0 || len(st.Redirs) == 1 && !hasPipedInput || !s.mayBeZsh() {
		return
	}
	var inputs []*syntax.Redirect
	for _, r := range st.Redirs {
		if (r.N == nil || r.N.Value == "0") && (r.Op == syntax.RdrIn || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc) {
			inputs = append(inputs, r)
		}
	}
	if len(inputs) == 0 || !hasPipedInput && len(inputs) == 1 || len(inputs) > 16 {
		return
	}
	others := inputs[:len(inputs)-1]
	if hasPipedInput {
		others = append([]*syntax.Redirect{nil}, others...)
	}
	for _, other := range others {
		one := *st
		one.Redirs = slices.DeleteFunc(slices.Clone(st.Redirs), func(r *syntax.Redirect) bool { return slices.Contains(inputs, r) && r != other })
		mark := len(s.effects)
		s.walkCodeThatMayRun(func() { s.walkStmt(&one, in) })
		s.dropRepeatedEffects(mark)
	}
}

// commandLookupArrays are the arrays of bash and zsh whose members change how the shell reads names: commands,
// aliases, functions, named folders, options and, with mapfile, files. In other shells, zsh's are ordinary
// arrays.
var commandLookupArrays = map[string]bool{
	"BASH_ALIASES": true, "BASH_CMDS": true, "aliases": true, "commands": true, "functions": true, "galiases": true, "saliases": true,
	"dis_aliases": true, "dis_functions": true, "dis_galiases": true, "dis_saliases": true, "mapfile": true, "nameddirs": true, "options": true,
}

// recordCommandRenaming records a change of an array of commandLookupArrays.
func (s *analysisState) recordCommandRenaming(array string, at effect.CommandTextSpan) {
	if strings.HasPrefix(array, "BASH_") || s.readsAsZsh() {
		s.recordDialectDifference("$"+array+" changes how the shell reads names", at)
	}
}

// expandTilde returns the parts of a word that begins with ~, after tilde expansion where the result is known.
func (s *analysisState) expandTilde(parts []syntax.WordPart) []syntax.WordPart {
	if len(parts) == 0 {
		return nil
	}
	l, ok := parts[0].(*syntax.Lit)
	if !ok || l.Value == "" || l.Value[0] != '~' {
		return parts
	}
	name, rest, cut := strings.Cut(l.Value[1:], "/")
	own := map[string]string{"": "HOME", "+": "PWD", "-": "OLDPWD"}[name]
	if own == "" || !cut && len(parts) > 1 || !s.mayCommandTextAssign(own) {
		return parts
	}
	if cut {
		rest = "/" + rest
	}
	dir := &syntax.ParamExp{Short: true, Param: &syntax.Lit{ValuePos: l.ValuePos, Value: own}}
	behind := &syntax.Lit{ValuePos: l.ValuePos, Value: rest}
	return slices.Concat([]syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{dir}}, behind}, parts[1:])
}

// unknownParameterName is a parameter that represents an unknown part of a word.
const unknownParameterName = "\x00unknown"

func newUnknownWordPart() *syntax.ParamExp {
	return &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: unknownParameterName}}
}

// hasBrace reports whether a word holds a brace that is not quoted.
func hasBrace(w *syntax.Word) bool {
	return w != nil && slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.Contains(l.Value, "{")
	})
}

// codeRunningGlobQualifierPattern matches the glob qualifiers of zsh that run code: e with code between two delimiters, and + with a
// function's name.
var codeRunningGlobQualifierPattern = prefilter.LazyRegexp(`^(?:#q)?[-/F.@=p*%rwxAIERWXsStUG^MTNDnoO,]*(?:e[^a-zA-Z0-9_|]|\+[a-zA-Z_])`)

// globQualifierRunsCode reports whether the text in parentheses after a glob runs code in zsh.
func globQualifierRunsCode(text string) bool {
	return !strings.Contains(text, "|") && codeRunningGlobQualifierPattern().MatchString(text)
}

// globQualifiersPattern matches a list of zsh glob qualifiers, up to its end or up to a qualifier
// with a text argument. It does not match the argument lists of function calls such as add(3,4) and
// f(key), which also occur in file names.
var globQualifiersPattern = prefilter.LazyRegexp(`^(?:#q)?(?:[-/F.@=p*%rwxAIERWXsStUG^MTNDn,]|[dl][-+]?\d+|[amcL][hMwsmkKpPgGtT]?[-+]?\d+|[oO][nLlamcdN])*(?:\)|$|[f:[YPug#+]|[oO+]\w|[oO]?e[^\w\s])`)

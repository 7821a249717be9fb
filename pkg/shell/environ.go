package shell

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// recordProxies records that a program sends its requests through a proxy or another server that is not on a local
// network.
func (s *analysisState) recordProxies(base string, argv []abstract.Value, use command.Interpretation) {
	for _, w := range use.ProxiesAndServersReplacingHosts {
		v := wordValue(w, argv)
		if v.FullyUnknown || w.Text == "" || !v.IsGlobPattern && !command.IsPublicHost(w.Text) {
			continue
		}
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "server", RemoteOperationVerb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, Program: base, Span: v.SourceSpan,
			Reason: base + " sends its requests through " + abstract.ClipForMessage(v.String()) + ", not to the host that the URL names"})
	}
}

// recordVariableAssignmentEffects checks an assignment to a variable whose value programs run as code, or use as a search path for
// code.
func (s *analysisState) recordVariableAssignmentEffects(name string, v abstract.Value, at effect.CommandTextSpan) {
	if strings.HasPrefix(name, shieldVariablePrefix) {
		s.recordShieldTampering(name, "changes which settings shield reads", at)
		return
	}
	switch name {
	case "HISTFILE":
		if v.IsLiteral() && (v.Text == "" || v.Text == "/dev/null") {
			s.emit(effect.Effect{Kind: effect.DestroyData, Program: name, Cause: effect.CauseCommandHistoryTampering, Reason: "disables the command history", Span: at})
		}
		return
	case "HISTSIZE", "HISTFILESIZE", "HISTIGNORE":
		if v.IsLiteral() && v.Text == historyOffValues[name] {
			s.emit(effect.Effect{Kind: effect.DestroyData, Program: name, Cause: effect.CauseCommandHistoryTampering, Reason: "disables the command history", Span: at})
		}
		return
	case "PATH":
		s.recordPATHAssignment(v)
		return
	case "PS4", "PROMPT_COMMAND":
		// The shell runs the command substitutions in prompts.
		text := v.Text
		if !v.IsLiteral() && isOnlyOldValueUnknown(name, v) { // text is appended to the variable's own value
			text = strings.Trim(fillUnknownParts(v.Text, ""), " \t\n;")
		} else if !v.IsLiteral() {
			s.walkExecutedText("shell", v, "$"+name, at, nil)
			text = ""
		}
		if text != "" {
			if name == "PS4" {
				text = "echo \"" + strings.ReplaceAll(text, `"`, `\"`) + "\""
			}
			s.walkNestedShellText(text, at)
		}
		return
	}
	if v.IsLiteral() && strings.TrimSpace(v.Text) == "" {
		return
	}
	setting := name + "=" + v.Text
	n, ok := command.CodeRunByEnvVariable(command.Word{Text: setting, IsGlobPattern: v.IsGlobPattern, Span: at})
	if !ok {
		if name != strings.ToLower(name) || s.vars.get(name).isExported { // a lower-case name is only a shell variable until it is exported
			s.recordWritesToAutostartFiles(v, at)
		}
		return
	}
	v.SourceSpan = at
	if !v.IsLiteral() {
		if n.Language == "home" && v.Origin&(abstract.OriginUnanalysedComputation|abstract.OriginAssignmentToUnknownName|abstract.OriginStdin) != 0 && s.remoteOrContainerDepth == 0 {
			s.emitUnknownEffect(effect.CauseFileLoadedViaVariable, "$"+name+" makes programs load settings from an unknown folder: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
			return
		}
		// Only the literal part is checked: in PYTHONPATH=.:$PYTHONPATH the rest comes from the
		// environment.
		fixed := strings.ReplaceAll(v.Text, "*", "")
		_, runs := command.CodeRunByEnvVariable(command.Word{Text: name + "=" + fixed})
		if isCommandOutput(v) {
			_, runs = command.CodeRunByEnvVariable(command.Word{Text: name + "=x"})
		} else if v.FullyUnknown || !runs {
			runs = command.VariableMayRunCode(name) && hasWordWithUnknownStart(name, v)
		}
		if !runs && (v.FullyUnknown || v.HasOnlyTaintsHarmlessToRun()) {
			return
		}
	}
	if v.IsLiteral() {
		s.walkCommandOrCodeInVariable(n, abstract.Value{Text: n.Words[0].Text, SourceSpan: at, Taint: v.Taint})
		return
	}
	s.walkVariableOfUnknownValue(n, v)
}

// autostartPersistenceClassNames are the persistence classes of files that run automatically. A variable of
// unknown meaning that names a file of these classes counts as a write to the file. Other classes are left out,
// because variables often name programs and settings.
var autostartPersistenceClassNames = map[string]bool{"loader": true, "privilege": true, "ssh": true, "shell_startup": true, "schedule": true, "service": true, "autostart": true, "git_hook": true, "agent_config": true}

// checkExportedVariableForAutostart checks a shell variable that becomes visible to programs because it is exported.
func (s *analysisState) checkExportedVariableForAutostart(variableName string, at effect.CommandTextSpan) {
	if v, ok := s.lookup(variableName); ok && variableName == strings.ToLower(variableName) {
		s.recordWritesToAutostartFiles(v.val, at)
	}
}

// recordWritesToAutostartFiles records a write to each file that runs later and is named by a variable of unknown meaning: a
// program that reads the variable may write the file.
func (s *analysisState) recordWritesToAutostartFiles(variableValue abstract.Value, at effect.CommandTextSpan) {
	if variableValue.FullyUnknown || strings.IndexByte(variableValue.Text, '/') < 0 {
		return
	}
	for word := range strings.FieldsFuncSeq(variableValue.Text, func(r rune) bool { return r == ' ' || r == '=' || r == ',' }) {
		if word[0] != '/' && word[0] != '~' {
			continue
		}
		if !s.spendSteps(1) {
			return
		}
		one := variableValue
		one.Text, one.SourceSpan = word, at
		if p, pattern := s.workingFolderContext().CanonicalPath(word, variableValue.IsGlobPattern); !pattern && autostartPersistenceClassNames[s.initialPathContext.PersistenceClassName(p, false, false)] {
			s.emitPathEffect(effect.WriteFile, one, false)
		}
	}
}

// historyOffValues holds the values of variables that disable the command history.
var historyOffValues = map[string]string{"HISTSIZE": "0", "HISTFILESIZE": "0", "HISTIGNORE": "*"}

// isOnlyOldValueUnknown reports whether the only unknown part of a variable's new value is its old value from the environment,
// as in PAGER="${PAGER}".
func isOnlyOldValueUnknown(variableName string, newValue abstract.Value) bool {
	return hasOnlyEnvironmentUnknowns(newValue) && !newValue.HasUnknownPartWithoutOrigin && fillUnknownParts(newValue.Text, "$"+variableName) == newValue.Display
}

// hasWordWithUnknownStart reports whether a word of a variable's new value begins with an unknown part other than the
// variable's own value. An unknown part after an option's name is only the option's value and does not count.
func hasWordWithUnknownStart(variableName string, newValue abstract.Value) bool {
	words, shown := strings.Fields(newValue.Text), strings.Fields(newValue.Display)
	same := hasOnlyEnvironmentUnknowns(newValue) && !newValue.HasUnknownPartWithoutOrigin && len(words) == len(shown)
	for i, word := range words {
		if strings.HasPrefix(word, "*") && (!same || fillUnknownParts(word, "$"+variableName) != shown[i]) {
			return true
		}
	}
	return false
}

// fillUnknownParts returns a pattern as text, with replacement in place of each unknown part.
func fillUnknownParts(pattern, replacement string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			b.WriteByte(pattern[i])
		case strings.HasPrefix(pattern[i:], "**"):
			i++
			b.WriteString(replacement)
		default:
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}

// walkVariableOfUnknownValue records the effects of setting an environment variable that programs
// use, such as PAGER or PYTHONPATH, to an unknown value.
func (s *analysisState) walkVariableOfUnknownValue(n command.NestedCommandOrCode, v abstract.Value) {
	switch n.Language {
	case "output":
		s.emitPathEffect(effect.WriteFile, v, false)
	case "source":
		s.recordPackageSources(n.VariableHoldingCode, v)
	case "place", "tools":
		s.recordUntrustedPathsInVariable(n.VariableHoldingCode, v)
	case "build":
		if !strings.HasPrefix(v.Text, "*") {
			s.recordPathWithUnknownUse("$"+n.VariableHoldingCode, v, true)
		}
	case "check", "options", "server", "home":
	default:
		if s.remoteOrContainerDepth == 0 && runsUnknownCommand(n, v) {
			s.emitUnknownEffect(effect.CauseFileLoadedViaVariable, "$"+n.VariableHoldingCode+" makes programs run code from a file that the command does not name: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
		}
		s.walkExecutedText(n.Language, v, "$"+n.VariableHoldingCode, v.SourceSpan, nil)
	}
}

// runsUnknownCommand reports whether the command that a variable makes programs run is unknown, and not only an argument
// of a known command.
func runsUnknownCommand(n command.NestedCommandOrCode, v abstract.Value) bool {
	if !command.VariableMayRunCode(n.VariableHoldingCode) || isOnlyOldValueUnknown(n.VariableHoldingCode, v) {
		return false
	}
	return n.Language != "shell" && hasWordWithUnknownStart(n.VariableHoldingCode, v) || strings.HasPrefix(v.Text, "*")
}

// recordUntrustedPathsInVariable checks the files and folders, separated by ":", in a variable. It skips an entry
// that begins with a variable of unknown value, as in KUBECONFIG=$KUBECONFIG:a: such an entry was
// already in the environment.
func (s *analysisState) recordUntrustedPathsInVariable(variableName string, v abstract.Value) {
	for part := range strings.SplitSeq(v.Text, ":") {
		if part == "" || v.IsGlobPattern && strings.HasPrefix(part, "**") && v.HasOnlyTaintsHarmlessToRun() && v.Origin == abstract.OriginUnsetVariable {
			continue
		}
		one := v
		one.Text = part
		if p, pattern := s.workingFolderContext().CanonicalPath(part, v.IsGlobPattern); s.fileTaint(p) != 0 || !s.isOwnedByUser(p, pattern) {
			s.recordCodeLoadFromVariablePath(variableName, one)
		}
	}
}

// isCommandOutput reports whether an unknown value begins with the output of a command, and not with a variable's
// earlier value.
func isCommandOutput(v abstract.Value) bool {
	return !v.IsLiteral() && v.FirstPartOrigin&abstract.OriginCommandOutput != 0
}

// walkCommandOrCodeInVariable walks the command or code in a variable's value.
func (s *analysisState) walkCommandOrCodeInVariable(n command.NestedCommandOrCode, variableValue abstract.Value) {
	switch n.Language {
	case "file":
		if n.ScriptFileLanguage != "" {
			s.runFile(variableValue, n.ScriptFileLanguage, nil, abstract.Streams{}, variableValue.SourceSpan)
			return
		}
		s.emitPathEffect(effect.ReadFile, variableValue, false)
		s.recordCodeLoadFromVariablePath(n.VariableHoldingCode, variableValue)
	case "place", "tools":
		s.recordUntrustedPathsInVariable(n.VariableHoldingCode, variableValue)
	case "home":
		s.recordSettingsLoadFromFolder(n.VariableHoldingCode, variableValue)
	case "source":
		s.recordPackageSources(n.VariableHoldingCode, variableValue)
	case "output":
		s.emitPathEffect(effect.WriteFile, variableValue, false)
	case "build":
		s.recordPathWithUnknownUse("$"+n.VariableHoldingCode, variableValue, true)
	case "options":
		s.walkNestedShellText(n.ScriptFileLanguage+" "+variableValue.Text, variableValue.SourceSpan)
	case "server":
		s.emit(effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: "server", RemoteOperationVerb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, Program: n.VariableHoldingCode, Span: variableValue.SourceSpan,
			Reason: "$" + n.VariableHoldingCode + " makes programs use the server " + abstract.ClipForMessage(variableValue.Text)})
	case "check":
		s.emit(effect.Effect{Kind: effect.ChangeSystem, Program: n.VariableHoldingCode, Harms: []effect.Harm{effect.WeakensSecurityControls}, Reason: "disables a security check", Span: variableValue.SourceSpan})
	case "code":
		// Options and settings that name code to run, in a syntax that is not parsed.
		s.recordCodeLoadFromVariablePath(n.VariableHoldingCode, variableValue)
	case "argv":
		s.resolveAndWalkArgv([]abstract.Value{variableValue}, abstract.Streams{})
	default:
		s.walkExecutedText(n.Language, variableValue, "$"+n.VariableHoldingCode, variableValue.SourceSpan, nil)
	}
}

// recordCodeLoadFromVariablePath records that programs load code or settings from the path in a variable.
func (s *analysisState) recordCodeLoadFromVariablePath(variableName string, v abstract.Value) {
	if s.remoteOrContainerDepth > 0 {
		return
	}
	if variableName = "$" + variableName; variableName == "$-" {
		variableName = "an option"
	}
	if p, _ := s.workingFolderContext().CanonicalPath(v.Text, false); (v.Taint|s.fileTaint(p))&abstract.TaintNetwork != 0 {
		s.recordCodeRun(effect.LabelFromNetwork, "programs load code from the downloaded file in "+variableName, v.SourceSpan)
	}
	s.emitUnknownEffect(effect.CauseFileLoadedViaVariable, variableName+" makes programs load code from: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
}

// fileTaint returns the taint of the content that the analysed text wrote to a file.
func (s *analysisState) fileTaint(p string) (t abstract.Taint) {
	for _, v := range s.writtenFileContents(p, false) {
		t |= v.Taint
	}
	return t
}

// isOwnedByUser reports whether a path is in the workspace, the home folder or a system folder, where only the
// user or the administrator creates files.
func (s *analysisState) isOwnedByUser(p string, pattern bool) bool {
	place := s.workingFolderContext()
	own := *place
	if own.WorkspaceRoots = nil; own.Home != "" {
		own.WorkspaceRoots = []string{own.Home}
	}
	if isStreamDevice(p) || place.IsInsideRoots(p, pattern, false) || own.IsInsideRoots(p, pattern, false) {
		return true
	}
	globs, err := systemFolders()
	if err != nil {
		return false
	}
	_, ok := globs.FirstCoveringGlob(p, pattern, false, false)
	return ok
}

var systemFolders = sync.OnceValues(func() (*effect.Globs, error) {
	list, _ := knowledge.GlobsOfPathList("system_folders")
	return effect.NewGlobs(list, nil)
})

// recordPATHAssignment records that the first folder of $PATH is not a system folder, so that a
// program name no longer tells which program runs. It also records an unknown $PATH, and a first
// folder in a shared temporary folder.
func (s *analysisState) recordPATHAssignment(v abstract.Value) {
	first, _, _ := strings.Cut(v.Text, ":")
	if v.HasUnanalysedComputation() {
		s.emitUnknownEffect(effect.CauseFileLoadedViaVariable, "the folders of programs ($PATH) are unknown: "+abstract.ClipForMessage(v.String())+"; instead: do not change PATH", v.SourceSpan)
	}
	if !v.IsLiteral() && (v.FullyUnknown || first == "**") || v.IsLiteral() && isSystemFolder(first+"/") {
		return
	}
	s.setVariableContent(nonSystemPATHVariable, variableContent{val: abstract.Lit(first)})
	if effect.IsInSharedTemporaryFolder(first+"/") && !strings.Contains(first, "*") {
		s.recordUntrustedPathsInVariable("PATH", abstract.Value{Text: first, SourceSpan: v.SourceSpan})
	}
}

// remoteTargetsFromEnvironment returns the remote targets of a program, such as hosts, that environment
// variables set. For a command on another machine it returns none, because the variables can have
// other values there.
func (s *analysisState) remoteTargetsFromEnvironment(base string) []command.Word {
	if s.remoteOrContainerDepth > 0 {
		return nil
	}
	var out []command.Word
	for _, name := range command.EnvVariablesNamingTargets(base) {
		if c, ok := s.lookup(name); ok && !c.isArray && !c.isUnset {
			out = append(out, command.Word{Text: c.val.Text, IsGlobPattern: c.val.IsGlobPattern, Span: c.val.SourceSpan})
		}
	}
	return out
}

// withOptionsFromEnvironment returns a program's arguments with the options that an environment variable adds to them.
func (s *analysisState) withOptionsFromEnvironment(base string, argv []abstract.Value) []abstract.Value {
	for _, name := range command.EnvVariablesAddingOptions(base) {
		c, ok := s.lookup(name)
		if !ok || c.isArray || c.isUnset || !c.val.IsLiteral() || !s.vars.get(name).isExported {
			continue // the assignment has already been judged
		}
		sub := name[strings.LastIndexByte(name, '_')+1:]
		if sub == strings.ToLower(sub) && !slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == sub || !v.IsLiteral() }) {
			continue
		}
		var added []abstract.Value
		for word := range strings.FieldsSeq(c.val.Text) {
			v := c.val
			v.Text = word
			added = append(added, v)
		}
		at := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.Text == "--" && v.IsLiteral() })
		switch {
		case tarPrograms[base] && len(argv) > 1 && strings.HasPrefix(argv[1].Text, "-"):
			at = 1
		case at < 0:
			at = len(argv) // append the options, since tar's bundled letters and subcommands must come first
		}
		argv = slices.Concat(argv[:at], added, argv[at:])
	}
	return argv
}

const (
	maxResponseFiles          = 64   // response files (@FILE) read for one command
	maxWordsWithResponseFiles = 4096 // words of a program, including those from response files
)

// expandResponseFiles returns the arguments of a compiler, or of jar, with each response file (@FILE) replaced by
// the words in it. Response files can be nested.
func (s *analysisState) expandResponseFiles(base string, argv []abstract.Value) []abstract.Value {
	if !command.Compilers[base] && base != "jar" || s.remoteOrContainerDepth > 0 {
		return argv
	}
	read := 0
	for i := 1; i < len(argv); i++ {
		name, ok := strings.CutPrefix(argv[i].Text, "@")
		if !ok || name == "" || !argv[i].IsLiteral() || !s.spendSteps(1) {
			continue
		}
		p, _ := s.workingFolderContext().CanonicalPath(name, false)
		text, found := s.scriptText(p, argv[i].SourceSpan)
		if !found && base == "jar" { // an unknown file could hold all options of jar
			s.emitUnknownEffect(effect.CauseUnparsedWord, "the arguments of jar in "+abstract.ClipForMessage(name)+" are unknown; instead: write the arguments in the command", argv[i].SourceSpan)
		}
		if !found {
			continue
		}
		words := splitResponseFileWords(text, argv[i].SourceSpan)
		if read++; read > maxResponseFiles || len(argv)+len(words) > maxWordsWithResponseFiles {
			s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, abstract.ClipForMessage(name)+" gives "+base+" more words than shield reads", argv[i].SourceSpan)
			return argv
		}
		argv = slices.Concat(argv[:i], words, argv[i+1:])
		i-- // the first inserted word may itself be a response file
	}
	return argv
}

// splitResponseFileWords splits the text of a response file as compilers do: a backslash escapes the next character, also
// in quotes.
func splitResponseFileWords(text string, from effect.CommandTextSpan) []abstract.Value {
	var words []abstract.Value
	var b strings.Builder
	var quote byte
	in := false
	end := func() {
		if in {
			words = append(words, abstract.Value{Text: b.String(), SourceSpan: from})
		}
		b.Reset()
		in = false
	}
	for i := 0; i < len(text) && len(words) < maxWordsWithResponseFiles; i++ {
		switch c := text[i]; {
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			end()
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
			in = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		default:
			b.WriteByte(c)
			in = true
		}
	}
	end()
	return words
}

// importFunction defines a function that bash imports from the environment.
func (s *analysisState) importFunction(name, text string, v abstract.Value) {
	if !v.IsLiteral() {
		s.emitUnknownEffect(v.CauseOfUnknownParts(), "unknown function: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
		return
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "BASH_FUNC_"), "%%")
	s.walkNestedShellText(strings.TrimSuffix(name, "()")+" "+text, v.SourceSpan)
}

// setEnvironmentFromArguments binds the NAME=VALUE arguments of a program such as env for the command that it runs.
func (s *analysisState) setEnvironmentFromArguments(base string, argv []abstract.Value, use command.Interpretation) {
	for _, w := range use.NestedCommandEnvAssignments {
		v := wordValue(w, argv)
		name, text, ok := strings.Cut(v.Text, "=")
		switch {
		case ok && strings.HasPrefix(name, "BASH_FUNC_"): // bash imports such a variable as a function
			s.importFunction(name, text, v)
		case ok && syntax.ValidName(name):
			v.Text = text
			if v.IsGlobPattern {
				v = unknownValueWithTaintsOf("$"+name, v)
			}
			next := variable{possibleContents: []variableContent{{val: v}}, isExported: true}
			if base != "env" {
				next = next.merge(s.vars.get(name))
			}
			s.Shell.setVariable(name, next)
			if _, known := command.CodeRunByEnvVariable(command.Word{Text: name + "=x"}); !known {
				s.recordWritesToAutostartFiles(v, v.SourceSpan)
			}
		case v.IsGlobPattern:
			s.forgetVariables()
		}
	}
}

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
func (s *state) recordProxies(base string, argv []abstract.Value, use command.Interpretation) {
	for _, w := range use.Servers {
		v := wordValue(w, argv)
		if v.FullyUnknown || w.Text == "" || !v.IsPattern && !command.IsPublicHost(w.Text) {
			continue
		}
		s.emitOnce(effect.Effect{Kind: effect.ChangeRemote, Service: "server", Verb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, Program: base, Span: v.From,
			Reason: base + " sends its requests through " + abstract.Clip(v.String()) + ", not to the host that the URL names"})
	}
}

// checkEnvironmentCode checks an assignment to a variable whose value programs run as code, or use as a search path for
// code.
func (s *state) checkEnvironmentCode(name string, v abstract.Value, at effect.Span) {
	if strings.HasPrefix(name, guardVariablePrefix) {
		s.recordGuardChange(name, "changes which settings shield reads", at)
		return
	}
	switch name {
	case "HISTFILE":
		if v.Known() && (v.Text == "" || v.Text == "/dev/null") {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: name, Cause: effect.CauseCommandHistory, Reason: "disables the command history", Span: at})
		}
		return
	case "HISTSIZE", "HISTFILESIZE", "HISTIGNORE":
		if v.Known() && v.Text == historyOffValues[name] {
			s.emit(effect.Effect{Kind: effect.Destroy, Program: name, Cause: effect.CauseCommandHistory, Reason: "disables the command history", Span: at})
		}
		return
	case "PATH":
		s.checkSearchPath(v)
		return
	case "PS4", "PROMPT_COMMAND":
		// The shell runs the command substitutions in prompts.
		text := v.Text
		if !v.Known() && onlyOldValueUnknown(name, v) { // text is appended to the variable's own value
			text = strings.Trim(fillUnknownParts(v.Text, ""), " \t\n;")
		} else if !v.Known() {
			s.runText("shell", v, "$"+name, at, nil)
			text = ""
		}
		if text != "" {
			if name == "PS4" {
				text = "echo \"" + strings.ReplaceAll(text, `"`, `\"`) + "\""
			}
			s.walkNested(text, at)
		}
		return
	}
	if v.Known() && strings.TrimSpace(v.Text) == "" {
		return
	}
	setting := name + "=" + v.Text
	n, ok := command.VariableCode(command.Word{Text: setting, Pattern: v.IsPattern, Span: at})
	if !ok {
		if name != strings.ToLower(name) || s.vars.get(name).isExported { // a lower-case name is only a shell variable until it is exported
			s.recordAutostartWrites(v, at)
		}
		return
	}
	v.From = at
	if !v.Known() {
		if n.Language == "home" && v.Origin&(abstract.FromText|abstract.FromUnknownAssignment|abstract.FromInput) != 0 && s.remoteDepth == 0 {
			s.emitDynamic(effect.CauseLoadedFile, "$"+name+" makes programs load settings from an unknown folder: "+abstract.Clip(v.String()), v.From)
			return
		}
		// Only the literal part is checked: in PYTHONPATH=.:$PYTHONPATH the rest comes from the
		// environment.
		fixed := strings.ReplaceAll(v.Text, "*", "")
		_, runs := command.VariableCode(command.Word{Text: name + "=" + fixed})
		if isCommandOutput(v) {
			_, runs = command.VariableCode(command.Word{Text: name + "=x"})
		} else if v.FullyUnknown || !runs {
			runs = command.VariableMayRunCode(name) && hasUnknownWordStart(name, v)
		}
		if !runs && (v.FullyUnknown || v.HasHarmlessTaint()) {
			return
		}
	}
	if v.Known() {
		s.walkVariableCode(n, abstract.Value{Text: n.Words[0].Text, From: at, Taint: v.Taint})
		return
	}
	s.walkUnknownVariable(n, v)
}

// autostartClasses are the classes of files that run automatically. Files of other classes are programs and settings,
// which variables often name.
var autostartClasses = map[string]bool{"loader": true, "privilege": true, "ssh": true, "shell_startup": true, "schedule": true, "service": true, "autostart": true, "git_hook": true, "agent_config": true}

// checkExported checks a shell variable that becomes visible to programs because it is exported.
func (s *state) checkExported(name string, at effect.Span) {
	if v, ok := s.lookup(name); ok && name == strings.ToLower(name) {
		s.recordAutostartWrites(v.val, at)
	}
}

// recordAutostartWrites records a write to each file that runs later and is named by a variable of unknown meaning: a
// program that reads the variable may write the file.
func (s *state) recordAutostartWrites(v abstract.Value, at effect.Span) {
	if v.FullyUnknown || strings.IndexByte(v.Text, '/') < 0 {
		return
	}
	for word := range strings.FieldsFuncSeq(v.Text, func(r rune) bool { return r == ' ' || r == '=' || r == ',' }) {
		if word[0] != '/' && word[0] != '~' {
			continue
		}
		if !s.spendSteps(1) {
			return
		}
		one := v
		one.Text, one.From = word, at
		if p, pattern := s.place().Path(word, v.IsPattern); !pattern && autostartClasses[s.startPlace.PersistenceClass(p, false, false)] {
			s.emitPath(effect.WriteFile, one, false)
		}
	}
}

// historyOffValues holds the values of variables that disable the command history.
var historyOffValues = map[string]string{"HISTSIZE": "0", "HISTFILESIZE": "0", "HISTIGNORE": "*"}

// onlyOldValueUnknown reports whether the only unknown part of a variable's new value is its old value from the environment,
// as in PAGER="${PAGER}".
func onlyOldValueUnknown(name string, v abstract.Value) bool {
	return isEnvironmentOnly(v) && !v.OriginIncomplete && fillUnknownParts(v.Text, "$"+name) == v.Display
}

// hasUnknownWordStart reports whether a word of a variable's new value begins with an unknown part other than the
// variable's own value. An unknown part after an option's name is only the option's value and does not count.
func hasUnknownWordStart(name string, v abstract.Value) bool {
	words, shown := strings.Fields(v.Text), strings.Fields(v.Display)
	same := isEnvironmentOnly(v) && !v.OriginIncomplete && len(words) == len(shown)
	for i, word := range words {
		if strings.HasPrefix(word, "*") && (!same || fillUnknownParts(word, "$"+name) != shown[i]) {
			return true
		}
	}
	return false
}

// fillUnknownParts returns a pattern as text, with part in place of each unknown part.
func fillUnknownParts(pattern, part string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			b.WriteByte(pattern[i])
		case strings.HasPrefix(pattern[i:], "**"):
			i++
			b.WriteString(part)
		default:
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}

// walkUnknownVariable walks a variable of which the value is not known.
func (s *state) walkUnknownVariable(n command.Nested, v abstract.Value) {
	switch n.Language {
	case "output":
		s.emitPath(effect.WriteFile, v, false)
	case "source":
		s.recordPackageSources(n.Variable, v)
	case "place", "tools":
		s.checkPathList(n.Variable, v)
	case "build":
		if !strings.HasPrefix(v.Text, "*") {
			s.recordUnknownPathUse("$"+n.Variable, v, true)
		}
	case "check", "options", "server", "home":
	default:
		if s.remoteDepth == 0 && runsUnknownCommand(n, v) {
			s.emitDynamic(effect.CauseLoadedFile, "$"+n.Variable+" makes programs run code from a file that the command does not name: "+abstract.Clip(v.String()), v.From)
		}
		s.runText(n.Language, v, "$"+n.Variable, v.From, nil)
	}
}

// runsUnknownCommand reports whether the command that a variable makes programs run is unknown, and not only an argument
// of a known command.
func runsUnknownCommand(n command.Nested, v abstract.Value) bool {
	if !command.VariableMayRunCode(n.Variable) || onlyOldValueUnknown(n.Variable, v) {
		return false
	}
	return n.Language != "shell" && hasUnknownWordStart(n.Variable, v) || strings.HasPrefix(v.Text, "*")
}

// checkPathList checks the files and folders, separated by ":", in a variable. It skips an entry
// that begins with a variable of unknown value, as in KUBECONFIG=$KUBECONFIG:a: such an entry was
// already in the environment.
func (s *state) checkPathList(name string, v abstract.Value) {
	for part := range strings.SplitSeq(v.Text, ":") {
		if part == "" || v.IsPattern && strings.HasPrefix(part, "**") && v.HasHarmlessTaint() && v.Origin == abstract.FromVariable {
			continue
		}
		one := v
		one.Text = part
		if p, pattern := s.place().Path(part, v.IsPattern); s.fileTaint(p) != 0 || !s.isOwnedByUser(p, pattern) {
			s.recordLoadedPath(name, one)
		}
	}
}

// isCommandOutput reports whether an unknown value begins with the output of a command, and not with a variable's
// earlier value.
func isCommandOutput(v abstract.Value) bool {
	return !v.Known() && v.FirstOrigin&abstract.FromCommand != 0
}

// walkVariableCode walks the command or code in a variable's value.
func (s *state) walkVariableCode(n command.Nested, v abstract.Value) {
	switch n.Language {
	case "file":
		if n.FileLanguage != "" {
			s.runFile(v, n.FileLanguage, nil, abstract.Streams{}, v.From)
			return
		}
		s.emitPath(effect.ReadFile, v, false)
		s.recordLoadedPath(n.Variable, v)
	case "place", "tools":
		s.checkPathList(n.Variable, v)
	case "home":
		s.checkSettingsFolder(n.Variable, v)
	case "source":
		s.recordPackageSources(n.Variable, v)
	case "output":
		s.emitPath(effect.WriteFile, v, false)
	case "build":
		s.recordUnknownPathUse("$"+n.Variable, v, true)
	case "options":
		s.walkNested(n.FileLanguage+" "+v.Text, v.From)
	case "server":
		s.emit(effect.Effect{Kind: effect.ChangeRemote, Service: "server", Verb: "redirect", Harms: []effect.Harm{effect.RedirectsTraffic}, Program: n.Variable, Span: v.From,
			Reason: "$" + n.Variable + " makes programs use the server " + abstract.Clip(v.Text)})
	case "check":
		s.emit(effect.Effect{Kind: effect.ChangeSystem, Program: n.Variable, Harms: []effect.Harm{effect.WeakensProtection}, Reason: "disables a security check", Span: v.From})
	case "code":
		// Options and settings that name code to run, in a syntax that is not parsed.
		s.recordLoadedPath(n.Variable, v)
	case "argv":
		s.invoke([]abstract.Value{v}, abstract.Streams{})
	default:
		s.runText(n.Language, v, "$"+n.Variable, v.From, nil)
	}
}

// recordLoadedPath records that programs load code or settings from the path in a variable.
func (s *state) recordLoadedPath(name string, v abstract.Value) {
	if s.remoteDepth > 0 {
		return
	}
	if name = "$" + name; name == "$-" {
		name = "an option"
	}
	if p, _ := s.place().Path(v.Text, false); (v.Taint|s.fileTaint(p))&abstract.Network != 0 {
		s.recordCodeRun(effect.LabelNetwork, "programs load code from the downloaded file in "+name, v.From)
	}
	s.emitDynamic(effect.CauseLoadedFile, name+" makes programs load code from: "+abstract.Clip(v.String()), v.From)
}

// fileTaint returns the taint of the content that the analysed text wrote to a file.
func (s *state) fileTaint(p string) (t abstract.Taint) {
	for _, v := range s.fileValues(p, false) {
		t |= v.Taint
	}
	return t
}

// isOwnedByUser reports whether a path is in the workspace, the home folder or a system folder, where only the
// user or the administrator creates files.
func (s *state) isOwnedByUser(p string, pattern bool) bool {
	place := s.place()
	own := *place
	if own.Roots = nil; own.Home != "" {
		own.Roots = []string{own.Home}
	}
	if isStreamDevice(p) || place.Inside(p, pattern, false) || own.Inside(p, pattern, false) {
		return true
	}
	globs, err := systemFolders()
	if err != nil {
		return false
	}
	_, ok := globs.Covers(p, pattern, false, false)
	return ok
}

var systemFolders = sync.OnceValues(func() (*effect.Globs, error) {
	list, _ := knowledge.Paths("system_folders")
	return effect.NewGlobs(list, nil)
})

// checkSearchPath checks the first folder of $PATH, which wins over the others. A system folder there has no effect.
func (s *state) checkSearchPath(v abstract.Value) {
	first, _, _ := strings.Cut(v.Text, ":")
	if v.IsComputed() {
		s.emitDynamic(effect.CauseLoadedFile, "the folders of programs ($PATH) are unknown: "+abstract.Clip(v.String()), v.From)
	}
	if !v.Known() && (v.FullyUnknown || first == "**") || v.Known() && isSystemFolder(first+"/") {
		return
	}
	s.setVariableContent(changedPathName, variableContent{val: abstract.Lit(first)})
	if effect.IsInSharedFolder(first+"/") && !strings.Contains(first, "*") {
		s.checkPathList("PATH", abstract.Value{Text: first, From: v.From})
	}
}

// environmentPlaces returns the remote targets of a program, such as hosts, that environment
// variables set. For a command on another machine it returns none, because the variables can have
// other values there.
func (s *state) environmentPlaces(base string) []command.Word {
	if s.remoteDepth > 0 {
		return nil
	}
	var out []command.Word
	for _, name := range command.TargetVariables(base) {
		if c, ok := s.lookup(name); ok && !c.isArray && !c.isUnset {
			out = append(out, command.Word{Text: c.val.Text, Pattern: c.val.IsPattern, Span: c.val.From})
		}
	}
	return out
}

// withAddedOptions returns a program's arguments with the options that an environment variable adds to them.
func (s *state) withAddedOptions(base string, argv []abstract.Value) []abstract.Value {
	for _, name := range command.OptionVariables(base) {
		c, ok := s.lookup(name)
		if !ok || c.isArray || c.isUnset || !c.val.Known() || !s.vars.get(name).isExported {
			continue // the assignment has already been judged
		}
		sub := name[strings.LastIndexByte(name, '_')+1:]
		if sub == strings.ToLower(sub) && !slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == sub || !v.Known() }) {
			continue
		}
		var added []abstract.Value
		for word := range strings.FieldsSeq(c.val.Text) {
			v := c.val
			v.Text = word
			added = append(added, v)
		}
		at := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.Text == "--" && v.Known() })
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
	maxResponses     = 64   // response files (@FILE) read for one command
	maxResponseWords = 4096 // words of a program, including those from response files
)

// expandResponseFiles returns the arguments of a compiler, or of jar, with each response file (@FILE) replaced by
// the words in it. Response files can be nested.
func (s *state) expandResponseFiles(base string, argv []abstract.Value) []abstract.Value {
	if !command.Compilers[base] && base != "jar" || s.remoteDepth > 0 {
		return argv
	}
	read := 0
	for i := 1; i < len(argv); i++ {
		name, ok := strings.CutPrefix(argv[i].Text, "@")
		if !ok || name == "" || !argv[i].Known() || !s.spendSteps(1) {
			continue
		}
		p, _ := s.place().Path(name, false)
		text, found := s.scriptText(p, argv[i].From)
		if !found && base == "jar" { // an unknown file could hold all options of jar
			s.emitDynamic(effect.CauseUnparsedWord, "the arguments of jar in "+abstract.Clip(name)+" are unknown; instead: write the arguments in the command", argv[i].From)
		}
		if !found {
			continue
		}
		words := responseWords(text, argv[i].From)
		if read++; read > maxResponses || len(argv)+len(words) > maxResponseWords {
			s.emitDynamic(effect.CauseLimit, abstract.Clip(name)+" gives "+base+" more words than shield reads", argv[i].From)
			return argv
		}
		argv = slices.Concat(argv[:i], words, argv[i+1:])
		i-- // the first inserted word may itself be a response file
	}
	return argv
}

// responseWords splits the text of a response file as compilers do: a backslash escapes the next character, also
// in quotes.
func responseWords(text string, from effect.Span) []abstract.Value {
	var words []abstract.Value
	var b strings.Builder
	var quote byte
	in := false
	end := func() {
		if in {
			words = append(words, abstract.Value{Text: b.String(), From: from})
		}
		b.Reset()
		in = false
	}
	for i := 0; i < len(text) && len(words) < maxResponseWords; i++ {
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
func (s *state) importFunction(name, text string, v abstract.Value) {
	if !v.Known() {
		s.emitDynamic(v.Cause(), "unknown function: "+abstract.Clip(v.String()), v.From)
		return
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "BASH_FUNC_"), "%%")
	s.walkNested(strings.TrimSuffix(name, "()")+" "+text, v.From)
}

// bindSettings binds the NAME=VALUE arguments of a program such as env for the command that it runs.
func (s *state) bindSettings(base string, argv []abstract.Value, use command.Interpretation) {
	for _, w := range use.Env {
		v := wordValue(w, argv)
		name, text, ok := strings.Cut(v.Text, "=")
		switch {
		case ok && strings.HasPrefix(name, "BASH_FUNC_"): // bash imports such a variable as a function
			s.importFunction(name, text, v)
		case ok && syntax.ValidName(name):
			v.Text = text
			if v.IsPattern {
				v = uncomputed("$"+name, v)
			}
			next := variable{contents: []variableContent{{val: v}}, isExported: true}
			if base != "env" {
				next = next.merge(s.vars.get(name))
			}
			s.Shell.setVariable(name, next)
			if _, known := command.VariableCode(command.Word{Text: name + "=x"}); !known {
				s.recordAutostartWrites(v, v.From)
			}
		case v.IsPattern:
			s.forgetVariables()
		}
	}
}

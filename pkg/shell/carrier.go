package shell

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// walkCodeInArgumentsAndStdin walks the commands and code in a program's arguments, and the code that the program reads from
// standard input.
func (s *analysisState) walkCodeInArgumentsAndStdin(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Value {
	blind := s.unanalyzedTextCount
	if len(use.NestedCommandsAndCode) > 0 || use.Stdin == command.StreamExecutedCode {
		var out abstract.Value
		s.walkChildProcess(base, argv, func() {
			s.setEnvironmentFromArguments(base, argv, use)
			s.walkStartupFiles(base, argv)
			out = s.walkCommandAndCodeArguments(base, argv, use, io, f)
		})
		s.recordRemoteSQL(base, argv, use, blind)
		return out
	}
	out := s.walkCommandAndCodeArguments(base, argv, use, io, f)
	s.recordRemoteSQL(base, argv, use, blind)
	return out
}

// walkCommandAndCodeArguments walks the commands and code in a program's arguments, or in its standard input.
func (s *analysisState) walkCommandAndCodeArguments(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Value {
	var b abstract.Builder
	attached, given := io.HasSocket, io
	if command.Feeders[base] {
		io.Stdin = f.readContent
		if f.readFileCount == 0 {
			io.Stdin = abstract.UnknownOutput(base, abstract.TaintLocalMachineData)
		}
	}
	s.replaceStdinByArgumentListFile(base, argv, use, &io, &f)
	if len(use.NestedCommandsAndCode) == 0 && command.Relays[base] {
		s.walkSocatProgram(base, argv)
	}
	if f.opensConnection && command.Relays[base] && len(use.NestedCommandsAndCode) > 0 {
		attached = true
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "connects a program to the network", Span: wordsSpan(argv)})
	}
	for _, n := range use.NestedCommandsAndCode {
		if s.isAnalysisAborted || len(n.Words) == 0 {
			break
		}
		inner := io
		inner.HasSocket = attached
		if base == "env" && n.Language == "shell" && n.VariableHoldingCode == "" {
			b.Add(s.walkEnvSplitString(wordValue(n.Words[0], argv), argv, inner))
			continue
		}
		if n.Remote && !remoteRunnerTargetsThisMachine(base, argv, use) {
			b.Add(s.walkInRemoteScope(base, argv, func() abstract.Value { return s.walkCommandOrCodeArgument(base, argv, n, inner, f) }))
			continue
		}
		b.Add(s.walkCommandOrCodeArgument(base, argv, n, inner, f))
	}
	switch {
	case use.Stdin == command.StreamExecutedCode && use.RunsStdinRemotely && !remoteRunnerTargetsThisMachine(base, argv, use):
		b.Add(s.walkInRemoteScope(base, argv, func() abstract.Value { return s.runStdin(base, argv, "shell", given) }))
	case use.Stdin == command.StreamExecutedCode:
		b.Add(s.runStdin(base, argv, use.StdinCodeLanguage, given))
	case !use.IsStdinUseKnown && len(use.NestedCommandsAndCode) == 0 && s.remoteOrContainerDepth == 0:
		s.recordSuspiciousStdinLine(base, io.Stdin, wordsSpan(argv))
	}
	return b.Value()
}

// walkInRemoteScope walks commands that run on another machine or in a container.
func (s *analysisState) walkInRemoteScope(base string, argv []abstract.Value, walkRemoteCode func() abstract.Value) (out abstract.Value) {
	s.walkInNestedTextScope(func() {
		if command.Machines[base] {
			s.remoteMachineDepth++
		} else if slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return command.Entering[v.Text] }) || mountsNamedVolume(argv) || runsComposeService(base, argv) {
			s.persistentDataContainerDepth++
		}
		s.remoteOrContainerDepth++
		s.bindMounts = parseBindMounts(argv)
		out = walkRemoteCode()
	})
	return out
}

// runsComposeService reports whether a container belongs to a docker compose service and so has the volumes of that
// service.
func runsComposeService(base string, argv []abstract.Value) bool {
	named := func(word string) bool {
		return slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return v.Text == word })
	}
	return named("run") && (strings.HasSuffix(base, "-compose") || named("compose"))
}

// A bindMount is a folder of this machine, hostPath, that is mounted in a container at
// containerPath.
type bindMount struct{ hostPath, containerPath string }

// parseBindMounts returns the bind mounts of a container, without those of -v that are read-only.
// If the container's working folder is in one of them, the last entry has the host path of the
// working folder and the containerPath "". A -w of the command in the container is not told from one
// of the container, so the first folder that is in a bind mount counts.
func parseBindMounts(argv []abstract.Value) (out []bindMount) {
	var folders []string
	for i := 1; i < len(argv); i++ {
		switch option, value := containerOption(argv[i:]); option {
		case "-v", "--volume":
			if parts := strings.Split(value, ":"); len(parts) > 1 && strings.HasPrefix(parts[1], "/") && strings.ContainsAny(parts[0], "/.~") && (len(parts) < 3 || !strings.Contains(parts[2], "ro")) {
				out = append(out, bindMount{parts[0], path.Clean(parts[1])})
			}
		case "--mount":
			var b bindMount
			for part := range strings.SplitSeq(value, ",") {
				switch key, v, _ := strings.Cut(part, "="); key {
				case "source", "src":
					b.hostPath = v
				case "target", "destination", "dst":
					b.containerPath = path.Clean(v)
				}
			}
			if strings.ContainsAny(b.hostPath, "/.~") && b.containerPath != "" && b.containerPath[0] == '/' {
				out = append(out, b)
			}
		case "-w", "--workdir":
			folders = append(folders, path.Clean(value))
		}
	}
	for _, folder := range folders {
		if here, ok := hostPathOf(out, folder); ok {
			return append(out, bindMount{here, ""})
		}
	}
	return out
}

// containerFlags are the one-letter options of container engines that have no value, so that other letters can
// follow them in the same word.
const containerFlags = "DPTdiqt"

// containerOption returns the option in the first of some arguments of a container engine, and its value, which may
// be the next argument. One-letter options can be grouped, and a value attached: -itv VALUE, -itvVALUE, -itv=VALUE.
func containerOption(args []abstract.Value) (name, value string) {
	name, value, attached := strings.Cut(args[0].Text, "=")
	if len(name) > 1 && name[0] == '-' && name[1] != '-' {
		letters := strings.TrimLeft(args[0].Text[1:], containerFlags)
		if letters == "" || letters[0] == '=' {
			return "", ""
		}
		name, value = "-"+letters[:1], letters[1:]
		attached = value != ""
		value = strings.TrimPrefix(value, "=")
	}
	if !attached && len(args) > 1 {
		value = args[1].Text
	}
	return name, value
}

// hostPathOf returns the path on this machine of a path in a container.
func hostPathOf(binds []bindMount, p string) (here string, ok bool) {
	if p == "" {
		return "", false
	}
	for _, b := range binds {
		rest, under := strings.CutPrefix(p, b.containerPath)
		switch {
		case b.containerPath == "" && p[0] != '/' && p[0] != '~':
			return strings.TrimSuffix(b.hostPath, "/") + "/" + p, true
		case b.containerPath == "" || !under:
		case b.containerPath == "/" || rest == "" || rest[0] == '/':
			return strings.TrimSuffix(b.hostPath, "/") + "/" + strings.TrimPrefix(rest, "/"), true
		}
	}
	return "", false
}

// mountsNamedVolume reports whether a container mounts a named volume of the container engine.
func mountsNamedVolume(argv []abstract.Value) bool {
	for i := 1; i < len(argv); i++ {
		switch option, value := containerOption(argv[i:]); option {
		case "--volumes-from":
			return true
		case "-v", "--volume":
			if name, _, ok := strings.Cut(value, ":"); ok && name != "" && !strings.ContainsAny(name, "/~.$*\\") {
				return true
			}
		case "--mount":
			if strings.HasPrefix(value, "type=volume") && strings.Contains(value, "src=") || strings.Contains(value, "type=volume,source=") {
				return true
			}
		}
	}
	return false
}

// walkSocatProgram walks the program that a socat address starts (EXEC:, SYSTEM:).
func (s *analysisState) walkSocatProgram(base string, argv []abstract.Value) {
	for _, v := range argv[1:] {
		kind, rest, ok := strings.Cut(v.Text, ":")
		kind = strings.ToLower(kind)
		switch {
		case ok && (kind == "exec" || kind == "system" || kind == "shell"):
			s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "connects a program to the network", Span: wordsSpan(argv)})
			code, _, _ := strings.Cut(strings.Trim(rest, `"'`), ",")
			s.walkNestedShellText(code, v.SourceSpan)
		case ok && strings.HasPrefix(kind, "tcp") && !strings.Contains(kind, "listen"):
			host, _, _ := strings.Cut(rest, ":")
			s.emitOnce(effect.Effect{Kind: effect.Connect, Host: effect.CanonicalHost(host), Span: v.SourceSpan})
		}
	}
}

// remoteRunnerTargetsThisMachine reports whether a program that runs commands on other machines, such as ssh, is told to run them on
// this machine.
func remoteRunnerTargetsThisMachine(base string, argv []abstract.Value, use command.Interpretation) bool {
	if !command.Machines[base] {
		return false
	}
	return slices.ContainsFunc(use.OperandEffects, func(t command.OperandEffect) bool {
		return t.Kind == effect.Connect && effect.MayBeThisMachine(effect.CanonicalHost(t.Word.Text))
	}) || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return namesThisMachine(v.Text) })
}

// namesThisMachine reports whether a word names this machine: as a host, or in an option such as
// -oHostName=localhost. A host that consists only of digits does not count.
func namesThisMachine(word string) bool {
	host := word[strings.LastIndexByte(word, '@')+1:]
	if strings.HasPrefix(host, "-") || len(host) > 8 && strings.EqualFold(host[:8], "HostName") {
		host = host[strings.LastIndexAny(host, "= ")+1:]
	}
	for host := range strings.SplitSeq(host, ",") {
		if strings.Trim(host, "0123456789") != "" && effect.MayBeThisMachine(effect.CanonicalHost(host)) {
			return true
		}
	}
	return false
}

func (s *analysisState) walkCommandOrCodeArgument(base string, argv []abstract.Value, n command.NestedCommandOrCode, io abstract.Streams, f programIO) abstract.Value {
	first := wordValue(n.Words[0], argv)
	if n.VariableHoldingCode != "" {
		if first.IsLiteral() {
			s.walkCommandOrCodeInVariable(n, first)
		} else {
			s.walkVariableOfUnknownValue(n, first)
		}
		return abstract.Value{}
	}
	switch n.Language {
	case "encoded":
		if !first.IsLiteral() && first.HasOnlyTaintsHarmlessToRun() {
			s.emitUnknownEffect(effect.CauseUnanalysedCode, base+" runs an encoded command that cannot be decoded", first.SourceSpan)
			return abstract.Unknown("…", abstract.TaintUnknownText)
		}
	case "powershell", "cmd":
		var words []abstract.Value
		for _, w := range n.Words {
			words = append(words, wordValue(w, argv))
		}
		first = abstract.JoinWithSpaces(words)
		return s.walkExecutedText(n.Language, first, base, wordsSpan(words), nil)
	case "argv":
		return s.walkNestedArgv(base, argv, n, io, f)
	case "file":
		language := n.ScriptFileLanguage
		rest := make([]abstract.Value, 0, len(n.Words))
		for _, w := range n.Words[1:] {
			rest = append(rest, wordValue(w, argv))
		}
		if len(rest) == 0 {
			rest = argumentsAfter(argv, first)
		}
		return s.runFile(first, language, rest, io, first.SourceSpan)
	}
	if lines := stdinLinesForArgSubstitution(base, argv, io.Stdin, f); len(lines) > 1 && n.Language == "shell" {
		var b abstract.Builder
		for _, line := range lines {
			one := io
			one.Stdin = line
			b.Add(s.walkCommandOrCodeArgument(base, argv, n, one, f))
		}
		return b.Value()
	}
	args := argumentsAfter(argv, first)
	if n.ArgsFromStdin {
		args = append(args, s.stdinWords(io, argv)...)
	}
	if command.Placers[base] {
		for i, v := range args {
			if v.Text == "{}" {
				args[i] = s.fillPlaceholder(base, v, io.Stdin, f)
			}
		}
	}
	if n.Language == "shell" && len(args) > 0 { // the first argument is $0
		s.setVariableContent(dollarZeroName, variableContent{val: args[0]})
		if !args[0].IsGlobPattern || args[0].IsSingleWord { // an unknown word without quotes may become several words
			args = args[1:]
		}
	}
	if !first.IsLiteral() || first.Taint&(abstract.TaintNetwork|abstract.TaintDecoded|abstract.TaintSocket) != 0 {
		if strings.Contains(first.Text, "{}") {
			first.Taint |= io.Stdin.Taint
		}
		return s.walkExecutedText(n.Language, first, base, first.SourceSpan, args)
	}
	if strings.Contains(first.Text, "{}") && command.Placers[base] {
		v := s.fillPlaceholder(base, first, io.Stdin, f)
		return s.walkExecutedText(n.Language, v, base, first.SourceSpan, args)
	}
	if n.Language == "shell" {
		s.setPositional(args)
		return s.translateFishAndWalk(first.Text, first.SourceSpan, func(text string) abstract.Value { return s.walkNestedWithInput(text, first.SourceSpan, io) })
	}
	return s.walkCode(n.Language, first.Text, first.SourceSpan, args)
}

// maxPatchFiles is the maximum number of files that are checked for patches if an earlier filter in
// a pipe reads them and sends its output to patch.
const maxPatchFiles = 64

// maxStdinLinesForArgSubstitution is the number of input lines that are substituted into a command one by one.
const maxStdinLinesForArgSubstitution = 16

// stdinLinesForArgSubstitution returns the input lines that a program such as xargs -I substitutes into its command one after
// another; nil if they are unknown or more than maxStdinLinesForArgSubstitution.
func stdinLinesForArgSubstitution(base string, argv []abstract.Value, stdin abstract.Value, f programIO) []abstract.Value {
	if !command.Placers[base] || command.Finders[base] || len(f.listedFolders) > 0 || !stdin.IsLiteral() || strings.ContainsAny(stdin.Text, "\"'\\") ||
		!slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.Contains(v.Text, "{}") }) {
		return nil
	}
	var out []abstract.Value
	for line := range strings.Lines(stdin.Text) {
		if len(out) == maxStdinLinesForArgSubstitution {
			return nil
		}
		if strings.TrimSpace(line) != "" {
			one := stdin
			one.Text = line
			out = append(out, one)
		}
	}
	return out
}

// walkNestedArgv analyses the command that a program such as env or xargs executes, given as words.
func (s *analysisState) walkNestedArgv(base string, argv []abstract.Value, n command.NestedCommandOrCode, io abstract.Streams, f programIO) abstract.Value {
	if lines := stdinLinesForArgSubstitution(base, argv, io.Stdin, f); len(lines) > 1 {
		var b abstract.Builder
		for _, line := range lines {
			one := io
			one.Stdin = line
			b.Add(s.walkNestedArgv(base, argv, n, one, f))
		}
		return b.Value()
	}
	first := wordValue(n.Words[0], argv)
	if len(n.Words) == 1 && first.IsLiteral() && isMultiWordCommandLine(first.Text) {
		if command.Placers[base] && strings.Contains(first.Text, "{}") {
			first = s.fillPlaceholder(base, first, io.Stdin, f)
		}
		return s.walkExecutedText("shell", first, base, first.SourceSpan, nil)
	}
	words := make([]abstract.Value, 0, len(n.Words)+1)
	replaced := false
	for _, w := range n.Words {
		v := wordValue(w, argv)
		v.HasPathPerLine = v.HasPathPerLine || v.IsGlobPattern && command.Finders[base]
		if strings.Contains(v.Text, "{}") && v.IsLiteral() {
			v = s.fillPlaceholder(base, v, io.Stdin, f)
			replaced = true
		}
		words = append(words, v)
	}
	if n.ArgsFromStdin && !replaced {
		words = append(words, s.stdinWords(io, argv)...)
		io.Stdin = abstract.Value{}
	}
	if given := f.streamsBesideArgumentListFile; given != nil {
		io.Stdin, io.ExistingInputFile = given.Stdin, given.ExistingInputFile
	}
	return s.resolveAndWalkArgv(words, io)
}

// isMultiWordCommandLine reports whether a word in the position of a program's name is a whole command line: some programs
// pass such a word to a shell, and no program has such a name.
func isMultiWordCommandLine(word string) bool {
	name, rest, blank := strings.Cut(strings.TrimSpace(word), " ")
	return blank && rest != "" && !strings.Contains(name, "/")
}

// argumentsAfter returns the arguments after the argument that holds the code: they are the code's own arguments.
func argumentsAfter(argv []abstract.Value, code abstract.Value) []abstract.Value {
	for i, v := range argv {
		if i > 0 && v.Text == code.Text && v.SourceSpan == code.SourceSpan {
			return slices.Clone(argv[i+1:])
		}
	}
	return nil
}

// fillPlaceholder replaces {} in a word: with a path below the folders that find searches, or with a line of the input.
func (s *analysisState) fillPlaceholder(base string, v, in abstract.Value, f programIO) abstract.Value {
	fill := abstract.Unknown("{}", in.Taint|abstract.TaintUnknownText).WithOrigin(abstract.OriginStdin)
	switch {
	case len(f.listedFolders) > 1: // a path in any of the folders
	case command.Finders[base]:
		fill = abstract.Value{Text: "./**", Display: "{}", IsGlobPattern: true, HasPathPerLine: true}
		if len(f.listedFolders) > 0 && !f.listedFolders[0].FullyUnknown {
			fill.Text = strings.TrimSuffix(f.listedFolders[0].AsPattern(), "/") + "/**"
		}
	case in.IsLiteral() && strings.TrimSpace(in.Text) != "" && !strings.ContainsAny(strings.TrimSuffix(in.Text, "\n"), "\n\"'\\"):
		fill = abstract.Value{Text: strings.TrimLeft(strings.TrimSuffix(in.Text, "\n"), " \t"), Taint: in.Taint}
	case !in.IsLiteral() && !in.FullyUnknown:
		fill = in
	}
	var b abstract.Builder
	for i, part := range strings.Split(v.Text, "{}") {
		if i > 0 {
			b.Add(fill)
		}
		b.AddLiteral(part)
	}
	out := b.Value()
	out.SourceSpan = v.SourceSpan
	return out
}

// runStdin walks the program text that an interpreter reads from standard input.
func (s *analysisState) runStdin(base string, argv []abstract.Value, language string, io abstract.Streams) abstract.Value {
	at := wordsSpan(argv)
	in := io.Stdin
	switch {
	case io.HasSocket:
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "connects " + base + " to the network", Span: at})
		return abstract.Unknown("…", abstract.TaintNetwork|abstract.TaintSocket)
	case base == "sed": // sed may also read a file
		return s.walkExecutedText("shell", abstract.Unknown("sed's output", in.Taint|abstract.TaintUnknownText).WithOrigin(abstract.OriginStdin), base, at, nil)
	case in.IsLiteral() && in.Text == "" && in.HasOnlyTaintsHarmlessToRun():
		return abstract.Value{} // standard input is the terminal: there is no text to walk
	}
	if text, ok := s.stdinFileText(io, at); ok {
		in = abstract.Lit(text)
	}
	if command.HasOnlyFileWriteEffects(language) && !in.IsLiteral() && io.ExistingInputFile == "" {
		read := 0
		for i := len(s.effects) - 1; i >= 0; i-- { // the files that an earlier filter in the pipe read
			e := s.effects[i]
			if e.Kind != effect.ReadFile || e.PathIsPattern || e.Recursive || !s.spendSteps(1) {
				continue
			}
			if read++; read > maxPatchFiles {
				s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, base+" applies more files than shield reads", at)
				break
			}
			if text, ok := s.scriptText(e.Path, at); ok && len(patch.FindPatchedFiles(text)) > 0 {
				s.walkCode(language, text, at, nil)
			}
		}
	}
	if command.HasOnlyFileWriteEffects(language) && !in.IsLiteral() && in.Taint&(abstract.TaintNetwork|abstract.TaintSocket) != 0 {
		s.emitUnknownEffect(effect.CauseDownload, base+" applies a patch from another machine, which can change any file; instead: save the patch, and read it first", at)
	}
	if command.IsQueryLanguage(language) && !in.IsLiteral() && !command.CanRunShellCommands(language) {
		if in.Taint&(abstract.TaintNetwork|abstract.TaintDecoded|abstract.TaintSocket) == 0 || command.HasOnlyFileWriteEffects(language) || s.recordDownloadedSQLFileRun(base, at) {
			s.unanalyzedTextCount++
			return abstract.Value{} // the input is rows or statements from a file or another database
		}
	}
	var args []abstract.Value
	if i := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.Text == "-s" || v.Text == "/dev/stdin" || v.Text == "/dev/fd/0" }); i > 0 && i+1 < len(argv) {
		if args = argv[i+1:]; len(args) > 0 && (args[0].Text == "-" || args[0].Text == "--") {
			args = args[1:]
		}
	}
	if io.IsStdinHeredoc && in.IsLiteral() {
		return s.walkCode(language, in.Text, in.SourceSpan, args)
	}
	return s.walkExecutedText(language, in, base, at, args)
}

// runProgramGivenByPath runs a program given by a path outside the system folders: only the file's content shows what it
// does.
func (s *analysisState) runProgramGivenByPath(argv []abstract.Value, io abstract.Streams) abstract.Value {
	base := programName(strings.ReplaceAll(argv[0].Text, "\\", "/"))
	at, read := len(s.effects), s.walkedScriptCount
	words := commandWords(argv)
	words[0].Text = base
	s.recordExecuteEffect(argv, base, effect.UnknownClass, command.Interpret(words).Harms...)
	s.recordShieldRunByPath(argv)
	for _, v := range argv[1:] {
		s.recordPathOrURL(v)
	}
	s.walkCommandOfUnknownWrapper(argv[1:], io)
	var out abstract.Value
	s.walkChildProcess(base, argv, func() { out = s.runFile(argv[0], "", argv[1:], io, argv[0].SourceSpan) })
	if s.walkedScriptCount > read && at < len(s.effects) {
		s.effects[at].Class = effect.LocalWrite // the effects of the script itself are recorded separately
	} else {
		s.recordPossibleUpload(abstract.JoinWithSpaces(argv[1:]), base, wordsSpan(argv))
	}
	out.Taint |= io.Stdin.Taint
	return out
}

// runFile walks a script that is executed: with the content that the command wrote, or the content on disk.
func (s *analysisState) runFile(f abstract.Value, language string, args []abstract.Value, io abstract.Streams, at effect.CommandTextSpan) abstract.Value {
	s.recordWebFrameworkScriptEffects(f, args)
	if !f.IsLiteral() && f.FullyUnknown {
		if s.unknownProgramNameCause(f) == effect.CauseVariableNotSetByCommand && hasOnlyEnvironmentUnknowns(f) && !f.HasUnknownPartWithoutOrigin {
			s.unknownExecutedTextCount++
			s.emitUnknownEffect(effect.CauseVariableNotSetByCommand, "runs a script whose path is in a variable: "+abstract.ClipForMessage(f.String()), at)
			return abstract.Unknown("…", abstract.TaintUnknownText)
		}
		return s.walkExecutedText(languageOrShell(language), f, "a script", at, args)
	}
	if f.IsLiteral() && (isStreamDevice(f.Text) || f.Text == "") {
		return s.walkExecutedText(languageOrShell(language), io.Stdin, f.Text, at, args)
	}
	if f.IsLiteral() && strings.HasPrefix(f.Text, "/dev/fd/") {
		if vals := s.writtenFileContents(f.Text, false); len(vals) > 0 {
			return s.walkExecutedText(languageOrShell(language), vals[0], "a process substitution", at, args)
		}
	}
	if _, _, ok := s.openNetworkDevice(f); ok {
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Reason: "runs code from a network connection", Span: at})
		return abstract.Unknown("…", abstract.TaintNetwork|abstract.TaintSocket)
	}
	if data, ok := f.DecodeDataURL(); ok && f.IsLiteral() {
		data.SourceSpan = at
		return s.walkExecutedText(languageOrShell(language), data, "a data: address", at, args)
	}
	if plain.IsURL(f.Text) {
		s.emitURLEffect(effect.HTTPRequest, f)
		s.recordCodeRun(effect.LabelFromNetwork, "runs code straight from "+abstract.ClipForMessage(f.String()), at)
		return abstract.Unknown("…", abstract.TaintNetwork)
	}
	p, pattern := s.emitPathEffect(effect.ReadFile, f, false)
	if s.remoteOrContainerDepth > 0 {
		s.recordMountedScriptRun(f, at)
		return abstract.Unknown("…", 0)
	}
	if !pattern && language == "" && s.recordBuiltProgramRun(programName(p), p, at) {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	run := func(v abstract.Value) abstract.Value {
		return s.walkExecutedFileText(language, v, f, args, io, at)
	}
	earlier := s.contentsInEarlierWorkingFolders(f)
	if vals := s.writtenFileContents(p, pattern); len(vals) > 0 {
		if language == "" && s.isCompilerOutput(p) {
			language = "code"
		}
		if languageOrShell(language) == "shell" && vals[0].IsLiteral() {
			s.walkedScriptCount++
		}
		s.recordReadAfterWrite(p)
		sure := s.isWrittenContentCertain(p, pattern) && len(earlier) == 0 && !s.canPathWordNameOtherFile(p, f) && !slices.Contains(s.enclosingCommandOutputPaths, p)
		written := len(s.writtenFiles)
		out := s.walkWrittenFileVersions(append(vals, earlier...), sure, run)
		return s.rewalkIfInputChanged(abstract.Streams{InputFileWrittenByAnalyzedText: p}, written, out, func(io abstract.Streams) abstract.Value { return run(io.Stdin) })
	}
	s.walkWrittenFileVersions(earlier, len(earlier) == 0, run)
	if f.Taint&abstract.TaintNetwork != 0 {
		s.recordCodeRun(effect.LabelFromNetwork, "runs a downloaded file", at)
	}
	if !pattern {
		s.recordDownloadedScriptRun(f, p, at)
		if name := programName(p); len(command.CodeFileLoaders(name, nil)) > 0 { // a project's own wrapper, such as ./gradlew
			s.recordRunsOfWrittenOrDownloadedFiles(name, append([]abstract.Value{f}, args...), command.CodeFileLoaders(name, nil), s.workingFolderContext().CWD, nil)
		}
	}
	if command.IsQueryLanguage(language) && (pattern || s.initialPathContext.ReadScript == nil) {
		s.unanalyzedTextCount++
		return abstract.Value{}
	}
	if !pattern && (strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/")) { // a path that exists only in the new process
		s.emitUnknownEffect(effect.CauseUnreadScript, "the script "+abstract.ClipForMessage(f.String())+" is a file descriptor of the new process; instead: run the commands of the script directly", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	if pattern || s.initialPathContext.ReadScript == nil {
		cause := effect.CauseUnreadScript
		if !f.IsLiteral() {
			cause = f.CauseOfUnknownParts()
		}
		s.emitUnknownEffect(cause, "unknown script "+abstract.ClipForMessage(f.String()), at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	return s.readAndWalkScriptFile(f, p, language, args, at)
}

// readAndWalkScriptFile reads the script at a canonical path and walks it.
func (s *analysisState) readAndWalkScriptFile(f abstract.Value, canonicalPath, language string, args []abstract.Value, at effect.CommandTextSpan) abstract.Value {
	data, err := s.initialPathContext.ReadScript(canonicalPath)
	switch {
	case errors.Is(err, fs.ErrNotExist) && language == "shell" && s.isUnwrittenShellSetupFile(canonicalPath):
		return abstract.Value{} // a setup script (.env, bin/activate) that does not exist has no effect
	case err != nil && command.IsQueryLanguage(language):
		s.unanalyzedTextCount++
		return abstract.Value{}
	case errors.Is(err, fs.ErrNotExist) && (s.isScriptPossiblyCreatedBeforeRun(f) || isTemporaryPath(canonicalPath) || language == "shell" && s.isInUserHome(canonicalPath)):
		s.emitUnknownEffect(effect.CauseUnreadScript, "the script "+abstract.ClipForMessage(f.String())+" does not exist yet, and another command may write the script first; instead: write the script in a separate command", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	case errors.Is(err, fs.ErrNotExist):
		s.emitUnknownEffect(effect.CauseMissingScript, "the script "+abstract.ClipForMessage(f.String())+" does not exist", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	case errors.Is(err, effect.ErrScriptTooLarge):
		s.emitUnknownEffect(effect.CauseUnreadScript, "the script "+abstract.ClipForMessage(f.String())+" is larger than 64 KiB, which shield does not read; instead: ask the user to run it", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	case err != nil:
		s.emitUnknownEffect(effect.CauseUnreadScript, "cannot read the script "+abstract.ClipForMessage(f.String()), at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	if isBinary(data) {
		s.unanalyzedTextCount++
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	if language == "" {
		if words, _ := parseShebang(string(data[:min(len(data), 256)])); len(words) > 0 {
			return s.resolveAndWalkArgv(append(append(valuesWithSpan(words, at), f), args...), abstract.Streams{})
		}
		language = scriptLanguage(canonicalPath, data)
	}
	if language == "shell" {
		s.walkedScriptCount++
	}
	s.scriptFileNestingDepth++
	defer func() { s.scriptFileNestingDepth-- }()
	return s.walkCode(language, string(data), at, nonNilArguments(args))
}

func nonNilArguments(args []abstract.Value) []abstract.Value {
	if args == nil {
		return []abstract.Value{}
	}
	return args
}

// isBinary reports whether a file is machine code, which is not analysed.
func isBinary(data []byte) bool {
	for _, magic := range [...]string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\x00asm"} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return true
		}
	}
	return bytes.IndexByte(data[:min(len(data), 512)], 0) >= 0
}

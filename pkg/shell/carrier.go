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

// walkArgumentCode walks the commands and code in a program's arguments, and the code that the program reads from
// standard input.
func (s *state) walkArgumentCode(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Value {
	blind := s.unanalyzedTextCount
	if len(use.Nested) > 0 || use.Stdin == command.Code {
		var out abstract.Value
		s.walkChildProcess(base, argv, func() {
			s.bindSettings(base, argv, use)
			s.walkStartupFiles(base, argv)
			out = s.walkNestedUses(base, argv, use, io, f)
		})
		s.recordRemoteSQL(base, argv, use, blind)
		return out
	}
	out := s.walkNestedUses(base, argv, use, io, f)
	s.recordRemoteSQL(base, argv, use, blind)
	return out
}

// walkNestedUses walks the commands and code in a program's arguments, or in its standard input.
func (s *state) walkNestedUses(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Value {
	var b abstract.Builder
	attached, given := io.HasSocket, io
	if command.Feeders[base] {
		io.In = f.readContent
		if f.readCount == 0 {
			io.In = abstract.UnknownOutput(base, abstract.Local)
		}
	}
	if len(use.Nested) == 0 && command.Relays[base] {
		s.walkSocatProgram(base, argv)
	}
	if f.opensConnection && command.Relays[base] && len(use.Nested) > 0 {
		attached = true
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "connects a program to the network", Span: wordsSpan(argv)})
	}
	for _, n := range use.Nested {
		if s.gaveUp || len(n.Words) == 0 {
			break
		}
		inner := io
		inner.HasSocket = attached
		if base == "env" && n.Language == "shell" && n.Variable == "" {
			b.Add(s.walkEnvSplitString(wordValue(n.Words[0], argv), argv, inner))
			continue
		}
		if n.Remote && !runsLocally(base, argv, use) {
			b.Add(s.walkRemotely(base, argv, func() abstract.Value { return s.walkNestedUse(base, argv, n, inner, f) }))
			continue
		}
		b.Add(s.walkNestedUse(base, argv, n, inner, f))
	}
	switch {
	case use.Stdin == command.Code && use.RunsStdinRemotely && !runsLocally(base, argv, use):
		b.Add(s.walkRemotely(base, argv, func() abstract.Value { return s.runStdin(base, argv, "shell", given) }))
	case use.Stdin == command.Code:
		b.Add(s.runStdin(base, argv, use.Language, given))
	case !use.StdinKnown && len(use.Nested) == 0 && s.remoteDepth == 0:
		s.checkUnreadInput(base, io.In, wordsSpan(argv))
	}
	return b.Value()
}

// walkRemotely walks commands that run on another machine or in a container.
func (s *state) walkRemotely(base string, argv []abstract.Value, walk func() abstract.Value) (out abstract.Value) {
	s.walkInScope(func() {
		if command.Machines[base] {
			s.remoteHostDepth++
		} else if slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return command.Entering[v.Text] }) || mountsNamedVolume(argv) || runsComposeService(base, argv) {
			s.persistentContainerDepth++
		}
		s.remoteDepth++
		s.bindMounts = parseBindMounts(argv)
		out = walk()
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

// parseBindMounts returns the bind mounts of a container, without those of -v that are read-only. If its working folder is
// in one of them, the last entry is that folder, with the path "".
func parseBindMounts(argv []abstract.Value) (out []bindMount) {
	folder := ""
	for i := 1; i < len(argv); i++ {
		option, value, attached := strings.Cut(argv[i].Text, "=")
		if !attached && i+1 < len(argv) {
			value = argv[i+1].Text
		}
		switch option {
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
			folder = path.Clean(value)
		}
	}
	if here, ok := hostPathOf(out, folder); ok {
		out = append(out, bindMount{here, ""})
	}
	return out
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
	for i, v := range argv[1:] {
		if option, _, _ := strings.Cut(v.Text, "="); option == "--volumes-from" {
			return true
		}
		value, attached := strings.CutPrefix(v.Text, "--volume=")
		if !attached && (v.Text == "-v" || v.Text == "--volume") && i+2 < len(argv) {
			value = argv[i+2].Text
		} else if !attached {
			if strings.HasPrefix(v.Text, "type=volume") && strings.Contains(v.Text, "src=") || strings.Contains(v.Text, "type=volume,source=") {
				return true
			}
			continue
		}
		if name, _, ok := strings.Cut(value, ":"); ok && name != "" && !strings.ContainsAny(name, "/~.$*\\") {
			return true
		}
	}
	return false
}

// walkSocatProgram walks the program that a socat address starts (EXEC:, SYSTEM:).
func (s *state) walkSocatProgram(base string, argv []abstract.Value) {
	for _, v := range argv[1:] {
		kind, rest, ok := strings.Cut(v.Text, ":")
		kind = strings.ToLower(kind)
		switch {
		case ok && (kind == "exec" || kind == "system" || kind == "shell"):
			s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "connects a program to the network", Span: wordsSpan(argv)})
			code, _, _ := strings.Cut(strings.Trim(rest, `"'`), ",")
			s.walkNested(code, v.From)
		case ok && strings.HasPrefix(kind, "tcp") && !strings.Contains(kind, "listen"):
			host, _, _ := strings.Cut(rest, ":")
			s.emitOnce(effect.Effect{Kind: effect.Connect, Host: effect.Host(host), Span: v.From})
		}
	}
}

// runsLocally reports whether a program that runs commands on other machines, such as ssh, is told to run them on
// this machine.
func runsLocally(base string, argv []abstract.Value, use command.Interpretation) bool {
	if !command.Machines[base] {
		return false
	}
	return slices.ContainsFunc(use.OperandEffects, func(t command.OperandEffect) bool {
		return t.Kind == effect.Connect && effect.ThisMachine(effect.Host(t.Word.Text))
	}) || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return namesThisMachine(v.Text) })
}

// namesThisMachine reports whether a word names this machine: as a host, or in an option such as -oHostName=localhost.
// Numbers are not addresses.
func namesThisMachine(word string) bool {
	host := word[strings.LastIndexByte(word, '@')+1:]
	if strings.HasPrefix(host, "-") || len(host) > 8 && strings.EqualFold(host[:8], "HostName") {
		host = host[strings.LastIndexAny(host, "= ")+1:]
	}
	for host := range strings.SplitSeq(host, ",") {
		if strings.Trim(host, "0123456789") != "" && effect.ThisMachine(effect.Host(host)) {
			return true
		}
	}
	return false
}

func (s *state) walkNestedUse(base string, argv []abstract.Value, n command.Nested, io abstract.Streams, f programIO) abstract.Value {
	first := wordValue(n.Words[0], argv)
	if n.Variable != "" {
		if first.Known() {
			s.walkVariableCode(n, first)
		} else {
			s.walkUnknownVariable(n, first)
		}
		return abstract.Value{}
	}
	switch n.Language {
	case "encoded":
		if !first.Known() && first.HasHarmlessTaint() {
			s.emitDynamic(effect.CauseUnanalysedCode, base+" runs an encoded command that cannot be decoded", first.From)
			return abstract.Unknown("…", abstract.UnknownText)
		}
	case "powershell", "cmd":
		var words []abstract.Value
		for _, w := range n.Words {
			words = append(words, wordValue(w, argv))
		}
		first = abstract.JoinValues(words)
		return s.runText(n.Language, first, base, wordsSpan(words), nil)
	case "argv":
		return s.walkNestedArgv(base, argv, n, io, f)
	case "file":
		language := n.FileLanguage
		rest := make([]abstract.Value, 0, len(n.Words))
		for _, w := range n.Words[1:] {
			rest = append(rest, wordValue(w, argv))
		}
		if len(rest) == 0 {
			rest = argumentsAfter(argv, first)
		}
		return s.runFile(first, language, rest, io, first.From)
	}
	if lines := substitutedLines(base, argv, io.In, f); len(lines) > 1 && n.Language == "shell" {
		var b abstract.Builder
		for _, line := range lines {
			one := io
			one.In = line
			b.Add(s.walkNestedUse(base, argv, n, one, f))
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
				args[i] = s.fillPlaceholder(base, v, io.In, f)
			}
		}
	}
	if n.Language == "shell" && len(args) > 0 { // the first argument is $0
		s.setVariableContent(zeroName, variableContent{val: args[0]})
		if !args[0].IsPattern || args[0].IsSingleWord { // an unknown word without quotes may become several words
			args = args[1:]
		}
	}
	if !first.Known() || first.Taint&(abstract.Network|abstract.Decoded|abstract.Socket) != 0 {
		if strings.Contains(first.Text, "{}") {
			first.Taint |= io.In.Taint
		}
		return s.runText(n.Language, first, base, first.From, args)
	}
	if strings.Contains(first.Text, "{}") && command.Placers[base] {
		v := s.fillPlaceholder(base, first, io.In, f)
		return s.runText(n.Language, v, base, first.From, args)
	}
	if n.Language == "shell" {
		s.setPositional(args)
		return s.walkTranslated(first.Text, first.From, func(text string) abstract.Value { return s.walkNestedWithInput(text, first.From, io) })
	}
	return s.walkCode(n.Language, first.Text, first.From, args)
}

// maxPatchFiles is the maximum number of files that are checked for patches if an earlier filter in
// a pipe reads them and sends its output to patch.
const maxPatchFiles = 64

// maxSubstitutedLines is the number of input lines that are substituted into a command one by one.
const maxSubstitutedLines = 16

// substitutedLines returns the input lines that a program such as xargs -I substitutes into its command one after
// another; nil if they are unknown or more than maxSubstitutedLines.
func substitutedLines(base string, argv []abstract.Value, in abstract.Value, f programIO) []abstract.Value {
	if !command.Placers[base] || command.Finders[base] || len(f.listedFolders) > 0 || !in.Known() || strings.ContainsAny(in.Text, "\"'\\") ||
		!slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.Contains(v.Text, "{}") }) {
		return nil
	}
	var out []abstract.Value
	for line := range strings.Lines(in.Text) {
		if len(out) == maxSubstitutedLines {
			return nil
		}
		if strings.TrimSpace(line) != "" {
			one := in
			one.Text = line
			out = append(out, one)
		}
	}
	return out
}

// walkNestedArgv runs the argument vector that a program such as env or xargs executes.
func (s *state) walkNestedArgv(base string, argv []abstract.Value, n command.Nested, io abstract.Streams, f programIO) abstract.Value {
	if lines := substitutedLines(base, argv, io.In, f); len(lines) > 1 {
		var b abstract.Builder
		for _, line := range lines {
			one := io
			one.In = line
			b.Add(s.walkNestedArgv(base, argv, n, one, f))
		}
		return b.Value()
	}
	first := wordValue(n.Words[0], argv)
	if len(n.Words) == 1 && first.Known() && isCommandLine(first.Text) {
		if command.Placers[base] && strings.Contains(first.Text, "{}") {
			first = s.fillPlaceholder(base, first, io.In, f)
		}
		return s.runText("shell", first, base, first.From, nil)
	}
	words := make([]abstract.Value, 0, len(n.Words)+1)
	replaced := false
	for _, w := range n.Words {
		v := wordValue(w, argv)
		v.IsPathList = v.IsPathList || v.IsPattern && command.Finders[base]
		if strings.Contains(v.Text, "{}") && v.Known() {
			v = s.fillPlaceholder(base, v, io.In, f)
			replaced = true
		}
		words = append(words, v)
	}
	if n.ArgsFromStdin && !replaced {
		words = append(words, s.stdinWords(io, argv)...)
		io.In = abstract.Value{}
	}
	return s.invoke(words, io)
}

// isCommandLine reports whether a word in the position of a program's name is a whole command line: some programs
// pass such a word to a shell, and no program has such a name.
func isCommandLine(word string) bool {
	name, rest, blank := strings.Cut(strings.TrimSpace(word), " ")
	return blank && rest != "" && !strings.Contains(name, "/")
}

// argumentsAfter returns the arguments after the argument that holds the code: they are the code's own arguments.
func argumentsAfter(argv []abstract.Value, code abstract.Value) []abstract.Value {
	for i, v := range argv {
		if i > 0 && v.Text == code.Text && v.From == code.From {
			return slices.Clone(argv[i+1:])
		}
	}
	return nil
}

// fillPlaceholder replaces {} in a word: with a path below the folders that find searches, or with a line of the input.
func (s *state) fillPlaceholder(base string, v, in abstract.Value, f programIO) abstract.Value {
	fill := abstract.Unknown("{}", in.Taint|abstract.UnknownText).WithOrigin(abstract.FromInput)
	switch {
	case len(f.listedFolders) > 1: // a path in any of the folders
	case command.Finders[base]:
		fill = abstract.Value{Text: "./**", Display: "{}", IsPattern: true, IsPathList: true}
		if len(f.listedFolders) > 0 && !f.listedFolders[0].FullyUnknown {
			fill.Text = strings.TrimSuffix(f.listedFolders[0].AsPattern(), "/") + "/**"
		}
	case in.Known() && strings.TrimSpace(in.Text) != "" && !strings.ContainsAny(strings.TrimSuffix(in.Text, "\n"), "\n\"'\\"):
		fill = abstract.Value{Text: strings.TrimLeft(strings.TrimSuffix(in.Text, "\n"), " \t"), Taint: in.Taint}
	case !in.Known() && !in.FullyUnknown:
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
	out.From = v.From
	return out
}

// runStdin walks the program text that an interpreter reads from standard input.
func (s *state) runStdin(base string, argv []abstract.Value, language string, io abstract.Streams) abstract.Value {
	at := wordsSpan(argv)
	in := io.In
	switch {
	case io.HasSocket:
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "connects " + base + " to the network", Span: at})
		return abstract.Unknown("…", abstract.Network|abstract.Socket)
	case base == "sed": // sed may also read a file
		return s.runText("shell", abstract.Unknown("sed's output", in.Taint|abstract.UnknownText).WithOrigin(abstract.FromInput), base, at, nil)
	case in.Known() && in.Text == "" && in.HasHarmlessTaint():
		return abstract.Value{} // standard input is the terminal: there is no text to walk
	}
	if text, ok := s.fileInput(io, at); ok {
		in = abstract.Lit(text)
	}
	if command.OnlyWritesFiles(language) && !in.Known() && io.ExistingInputFile == "" {
		read := 0
		for i := len(s.effects) - 1; i >= 0; i-- { // the files that an earlier filter in the pipe read
			e := s.effects[i]
			if e.Kind != effect.ReadFile || e.Pattern || e.Recursive || !s.spendSteps(1) {
				continue
			}
			if read++; read > maxPatchFiles {
				s.emitDynamic(effect.CauseLimit, base+" applies more files than shield reads", at)
				break
			}
			if text, ok := s.scriptText(e.Path, at); ok && len(patch.Files(text)) > 0 {
				s.walkCode(language, text, at, nil)
			}
		}
	}
	if command.OnlyWritesFiles(language) && !in.Known() && in.Taint&(abstract.Network|abstract.Socket) != 0 {
		s.emitDynamic(effect.CauseDownload, base+" applies a patch from another machine, which can change any file; instead: save the patch, and read it first", at)
	}
	if command.IsQuery(language) && !in.Known() && !command.RunsCommands(language) {
		if in.Taint&(abstract.Network|abstract.Decoded|abstract.Socket) == 0 || command.OnlyWritesFiles(language) || s.recordImportedSQL(base, at) {
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
	if io.IsHeredoc && in.Known() {
		return s.walkCode(language, in.Text, in.From, args)
	}
	return s.runText(language, in, base, at, args)
}

// runLocalProgram runs a program given by a path outside the system folders: only the file's content shows what it
// does.
func (s *state) runLocalProgram(argv []abstract.Value, io abstract.Streams) abstract.Value {
	base := programName(strings.ReplaceAll(argv[0].Text, "\\", "/"))
	at, read := len(s.effects), s.walkedScriptCount
	words := commandWords(argv)
	words[0].Text = base
	s.execute(argv, base, effect.UnknownClass, command.Interpret(words).Harms...)
	s.recordGuardRun(argv)
	for _, v := range argv[1:] {
		s.recordSuspectWord(v)
	}
	s.walkWrappedCommand(argv[1:], io)
	var out abstract.Value
	s.walkChildProcess(base, argv, func() { out = s.runFile(argv[0], "", argv[1:], io, argv[0].From) })
	if s.walkedScriptCount > read && at < len(s.effects) {
		s.effects[at].Class = effect.LocalWrite // the effects of the script itself are recorded separately
	} else {
		s.recordPossibleUpload(abstract.JoinValues(argv[1:]), base, wordsSpan(argv))
	}
	out.Taint |= io.In.Taint
	return out
}

// runFile walks a script that is executed: with the content that the command wrote, or the content on disk.
func (s *state) runFile(f abstract.Value, language string, args []abstract.Value, io abstract.Streams, at effect.Span) abstract.Value {
	s.recordFrameworkEffects(f, args)
	if !f.Known() && f.FullyUnknown {
		if s.nameCause(f) == effect.CauseVariable && isEnvironmentOnly(f) && !f.OriginIncomplete {
			s.unknownCodeCount++
			s.emitDynamic(effect.CauseVariable, "runs a script whose path is in a variable: "+abstract.Clip(f.String()), at)
			return abstract.Unknown("…", abstract.UnknownText)
		}
		return s.runText(languageOrShell(language), f, "a script", at, args)
	}
	if f.Known() && (isStreamDevice(f.Text) || f.Text == "") {
		return s.runText(languageOrShell(language), io.In, f.Text, at, args)
	}
	if f.Known() && strings.HasPrefix(f.Text, "/dev/fd/") {
		if vals := s.fileValues(f.Text, false); len(vals) > 0 {
			return s.runText(languageOrShell(language), vals[0], "a process substitution", at, args)
		}
	}
	if _, _, ok := s.openNetworkDevice(f); ok {
		s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Reason: "runs code from a network connection", Span: at})
		return abstract.Unknown("…", abstract.Network|abstract.Socket)
	}
	if data, ok := f.DataURL(); ok && f.Known() {
		data.From = at
		return s.runText(languageOrShell(language), data, "a data: address", at, args)
	}
	if plain.IsURL(f.Text) {
		s.emitURL(effect.HTTPRequest, f)
		s.recordCodeRun(effect.LabelNetwork, "runs code straight from "+abstract.Clip(f.String()), at)
		return abstract.Unknown("…", abstract.Network)
	}
	p, pattern := s.emitPath(effect.ReadFile, f, false)
	if s.remoteDepth > 0 {
		s.recordMountedScriptRun(f, at)
		return abstract.Unknown("…", 0)
	}
	if !pattern && language == "" && s.recordBuiltProgramRun(programName(p), p, at) {
		return abstract.Unknown("…", abstract.UnknownText)
	}
	run := func(v abstract.Value) abstract.Value {
		return s.runFileText(language, v, f, args, io, at)
	}
	earlier := s.earlierContents(f)
	if vals := s.fileValues(p, pattern); len(vals) > 0 {
		if language == "" && s.isCompilerOutput(p) {
			language = "code"
		}
		if languageOrShell(language) == "shell" && vals[0].Known() {
			s.walkedScriptCount++
		}
		s.noteReadBack(p)
		sure := s.isContentCertain(p, pattern) && len(earlier) == 0 && !s.mayBeOtherFile(p, f) && !slices.Contains(s.enclosingOutputs, p)
		written := len(s.files)
		out := s.runFileVersions(append(vals, earlier...), sure, run)
		return s.rewalkIfInputChanged(abstract.Streams{WrittenInputFile: p}, written, out, func(io abstract.Streams) abstract.Value { return run(io.In) })
	}
	s.runFileVersions(earlier, len(earlier) == 0, run)
	if f.Taint&abstract.Network != 0 {
		s.recordCodeRun(effect.LabelNetwork, "runs a downloaded file", at)
	}
	if !pattern {
		s.recordDownloadedScriptRun(f, p, at)
		if name := programName(p); len(command.Loaders(name, nil)) > 0 { // a project's own wrapper, such as ./gradlew
			s.checkLoadedFiles(name, append([]abstract.Value{f}, args...), command.Loaders(name, nil), s.place().CWD, nil)
		}
	}
	if command.IsQuery(language) && (pattern || s.startPlace.ReadScript == nil) {
		s.unanalyzedTextCount++
		return abstract.Value{}
	}
	if !pattern && (strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/")) { // a path that exists only in the new process
		s.emitDynamic(effect.CauseUnreadScript, "the script "+abstract.Clip(f.String())+" is a file descriptor of the new process; instead: run the commands of the script directly", at)
		return abstract.Unknown("…", abstract.UnknownText)
	}
	if pattern || s.startPlace.ReadScript == nil {
		cause := effect.CauseUnreadScript
		if !f.Known() {
			cause = f.Cause()
		}
		s.emitDynamic(cause, "unknown script "+abstract.Clip(f.String()), at)
		return abstract.Unknown("…", abstract.UnknownText)
	}
	return s.runScript(f, p, language, args, at)
}

// runScript reads the script at a canonical path and walks it.
func (s *state) runScript(f abstract.Value, p, language string, args []abstract.Value, at effect.Span) abstract.Value {
	data, err := s.startPlace.ReadScript(p)
	switch {
	case errors.Is(err, fs.ErrNotExist) && language == "shell" && s.isShellSetupScript(p):
		return abstract.Value{} // a setup script (.env, bin/activate) that does not exist has no effect
	case err != nil && command.IsQuery(language):
		s.unanalyzedTextCount++
		return abstract.Value{}
	case errors.Is(err, fs.ErrNotExist) && (s.isAwaited(f) || isTemporaryPath(p) || language == "shell" && s.isInUserHome(p)):
		s.emitDynamic(effect.CauseUnreadScript, "the script "+abstract.Clip(f.String())+" does not exist yet, and another command may write the script first; instead: write the script in a separate command", at)
		return abstract.Unknown("…", abstract.UnknownText)
	case errors.Is(err, fs.ErrNotExist):
		s.emitDynamic(effect.CauseMissingScript, "the script "+abstract.Clip(f.String())+" does not exist", at)
		return abstract.Unknown("…", abstract.UnknownText)
	case err != nil:
		s.emitDynamic(effect.CauseUnreadScript, "cannot read the script "+abstract.Clip(f.String()), at)
		return abstract.Unknown("…", abstract.UnknownText)
	}
	if isBinary(data) {
		s.unanalyzedTextCount++
		return abstract.Unknown("…", abstract.UnknownText)
	}
	if language == "" {
		if words, _ := parseShebang(string(data[:min(len(data), 256)])); len(words) > 0 {
			return s.invoke(append(append(valuesWithSpan(words, at), f), args...), abstract.Streams{})
		}
		language = scriptLanguage(p, data)
	}
	if language == "shell" {
		s.walkedScriptCount++
	}
	s.diskScriptDepth++
	defer func() { s.diskScriptDepth-- }()
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

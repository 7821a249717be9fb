package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkNonBuiltinCommand analyzes a command that is not a shell builtin, and returns the value of its output.
func (s *analysisState) walkNonBuiltinCommand(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if first, _, _ := strings.Cut(argv[0].Text, " "); argv[0].IsLiteral() && isMultiWordCommandLine(argv[0].Text) && command.IsProgramWithKnownSyntax(first) {
		s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "the program's name is a whole command line: "+abstract.ClipForMessage(argv[0].Text)+"; instead: write the program and its arguments as separate words", argv[0].SourceSpan)
	}
	name := strings.ReplaceAll(argv[0].Text, "\\", "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !isSystemFolder(name[:i+1]) {
		return s.runProgramGivenByPath(argv, io)
	}
	base := programName(name)
	argv = s.expandResponseFiles(base, s.withOptionsFromEnvironment(base, normalizeXargsPlaceholder(base, argv)))
	s.recordUnanalyzedArgument(base, argv)
	words := commandWords(argv)
	words[0].Text = base
	s.recordInstalledProgramRun(base, argv[0].SourceSpan)
	return s.walkProgramWithKnownSyntax(base, words, argv, io)
}

// recordUnanalyzedArgument records that an argument of a program is computed in a way that is not analysed: it may be a
// subcommand or an option. Programs that only print their arguments are skipped.
func (s *analysisState) recordUnanalyzedArgument(base string, argv []abstract.Value) {
	if programsHarmlessWithAnyArgument[base] {
		return
	}
	for _, v := range argv[1:] {
		if v.HasUnanalysedComputation() {
			s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "an argument of "+base+" is unknown: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
			return
		}
	}
}

// programsHarmlessWithAnyArgument are programs that only print or compare their arguments, or wait.
var programsHarmlessWithAnyArgument = map[string]bool{"echo": true, "printf": true, "test": true, "[": true, "expr": true, "sleep": true, "true": true, "false": true, ":": true}

// walkProgramWithKnownSyntax runs a program according to its entry in package command; words begins with the program's name.
func (s *analysisState) walkProgramWithKnownSyntax(base string, words []command.Word, argv []abstract.Value, io abstract.Streams) abstract.Value {
	use := command.Interpret(words)
	if listed := s.readOperandLists(use, io); listed != nil {
		use = command.Interpret(words, listed...)
	}
	use.AddRemoteChangeTargets(s.remoteTargetsFromEnvironment(base)...)
	class := use.Class
	if runsCode(use) || !use.Understood && (class == effect.ReadOnly || class == effect.LocalWrite) {
		class = effect.UnknownClass
	}
	if class == effect.ReadOnly || class == effect.LocalWrite {
		if s.mayCommandTextAssign(nonSystemPATHVariable) {
			class = effect.UnknownClass
		}
	}
	at, read := len(s.effects), s.walkedScriptCount
	s.recordExecuteEffect(argv, base, class, use.Harms...)
	s.markProgramDataLosses(use)
	out := s.recordProgramEffects(base, argv, use, io)
	s.markNonPrintingFileReads(base, argv, use, at)
	if s.walkedScriptCount > read && at < len(s.effects) && runsShellFile(use) {
		s.effects[at].Class = effect.LocalWrite // the effects of the script are recorded separately
	}
	return out
}

// runsShellFile reports whether the only code that a program runs is a shell script.
func runsShellFile(use command.Interpretation) bool {
	return use.Stdin != command.StreamExecutedCode && len(use.NestedCommandsAndCode) == 1 && use.NestedCommandsAndCode[0].Language == "file" && use.NestedCommandsAndCode[0].ScriptFileLanguage == "shell"
}

// commandWords converts words to those of package command.
//
//go:noinline
func commandWords(argv []abstract.Value) []command.Word {
	words := make([]command.Word, len(argv))
	for i, v := range argv {
		words[i] = command.Word{Text: v.Text, IsGlobPattern: v.IsGlobPattern, DoubleStarExcludesDotDot: v.DoubleStarExcludesDotDot, IsJobID: v.IsJobID(), Span: v.SourceSpan}
	}
	return words
}

// runsCode reports whether a program runs code that may have other effects than those found: code on standard
// input, a script file, or code of a language that is only partly analysed.
func runsCode(use command.Interpretation) bool {
	if use.Stdin == command.StreamExecutedCode && !command.IsQueryLanguage(use.StdinCodeLanguage) {
		return true
	}
	for _, n := range use.NestedCommandsAndCode {
		if command.IsQueryLanguage(n.ScriptFileLanguage) {
			continue
		}
		switch n.Language {
		case "argv", "shell", "awk", "cmd", "powershell", "encoded":
		case "place", "tools", "home", "output", "source", "server", "options", "build", "check": // not code: the text is a variable's value, which is judged separately
		default:
			return true
		}
	}
	return false
}

// programName returns a program's base name without .exe.
func programName(p string) string {
	base := path.Base(p)
	if n := len(base) - len(".exe"); n > 0 && strings.EqualFold(base[n:], ".exe") {
		return strings.ToLower(base[:n])
	}
	return base
}

// isSystemFolder reports whether a folder, given with its final slash, is a system folder or one in which
// package managers install programs: a program there is the one that its name suggests.
func isSystemFolder(dir string) bool {
	if command.IsSystemProgramFolder(strings.TrimSuffix(dir, "/")) {
		return true
	}
	lower := strings.ToLower(dir)
	if len(lower) > 2 && lower[1] == ':' && (strings.Contains(lower, "/windows/system32/") || strings.Contains(lower, "/windows/syswow64/") || strings.HasSuffix(lower, "/git/bin/") || strings.HasSuffix(lower, "/git/usr/bin/")) {
		return true
	}
	if strings.Contains(dir, "/../") || strings.Contains(dir, "/./") || strings.Contains(dir, "//") {
		if clean := strings.TrimSuffix(path.Clean(dir), "/") + "/"; clean != dir {
			return isSystemFolder(clean) // one level of recursion: a clean path does not change
		}
	}
	// Folders for programs that package managers install for a project or a user.
	for _, tail := range [...]string{"node_modules/.bin/", ".venv/bin/", "venv/bin/", "env/bin/", "vendor/bin/", ".cargo/bin/", "go/bin/", ".local/bin/", "miniconda3/bin/", "anaconda3/bin/", ".pyenv/shims/", ".rbenv/shims/", ".venv/scripts/", "venv/scripts/"} {
		if strings.HasSuffix(lower, tail) && !effect.IsInSharedTemporaryFolder(dir) {
			return true
		}
	}
	return false
}

// recordProgramEffects records the effects of a program's arguments and returns its output.
func (s *analysisState) recordProgramEffects(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams) abstract.Value {
	at := wordsSpan(argv)
	why := ""
	if use.EffectsDescription != "" {
		why = base + " " + use.EffectsDescription
	}
	s.gitRemotes = append(s.gitRemotes, use.GitRemotes...)
	f := s.recordOperandEffects(base, argv, use, io)
	s.emitProgramEffect(use, f, effect.Effect{Program: base, Reason: why, Span: at})
	s.recordShieldStop(base, argv, use)
	s.recordSignalsToShieldOrHost(base, argv, use)
	s.recordProxies(base, argv, use)
	s.recordPossiblyTyposquattedPackages(use)
	s.recordUnrecognizedArguments(base, argv, use)
	s.recordShieldRunByGoRun(argv, use)
	s.recordProgramInstalls(base, argv)
	s.recordUnpackedMembers(base, argv, use)
	for _, k := range use.RegistryKeys {
		f.readsSecretKey = s.recordRegistryAccess(base, argv, k) || f.readsSecretKey
	}
	if command.Compilers[base] && io.Stdin.Taint&externalOrDecodedTaints != 0 && hasStdinArgument(argv) {
		s.walkExecutedText("code", io.Stdin, base, at, nil)
	}
	if len(s.writtenFiles) > 0 {
		for _, v := range sourceCodeFileArguments(base, argv[1:]) {
			p, pattern := s.workingFolderContext().CanonicalPath(v.Text, v.IsGlobPattern)
			for _, src := range s.writtenFileContents(p, pattern) {
				// A workspace file that was only edited is still the project's own code.
				if src.IsLiteral() || src.Taint&(abstract.TaintNetwork|abstract.TaintDecoded|abstract.TaintSocket) != 0 {
					s.walkExecutedText("code", src, base, at, nil)
				}
			}
		}
	}
	switch base {
	case "sed", "gsed", "perl":
		s.recordInPlaceFileEdits(argv, use)
	}
	s.recordEffectsOfLoadedFiles(base, argv, use, io)
	if len(s.writtenFiles) > 0 {
		s.walkDownloadedQueryFile(base, argv, use)
	}
	if use.Class == effect.UnknownClass {
		for _, v := range argv[1:] {
			if !use.IsWindowsProgram || !strings.HasPrefix(v.Text, "/") {
				f.readContent.Taint |= s.recordPathOrURL(v)
			}
		}
		if len(use.NestedCommandsAndCode) == 0 && !use.IsWindowsProgram {
			s.walkCommandOfUnknownWrapper(argv[1:], io)
		}
	}
	if use.Class != effect.UnknownClass && len(use.NestedCommandsAndCode) == 0 {
		s.walkCommandValuedOptions(argv[1:])
	}
	contacts := f.usesNetwork || use.Class == effect.Network || use.Stdin == command.StreamUpload
	if contacts {
		s.recordSentData(base, argv, use, f, io)
	}
	s.recordDatabaseCopy(base, argv, io.Stdin)
	s.recordCredentialInput(base, use, io.Stdin, at)
	nested := s.walkCodeInArgumentsAndStdin(base, argv, use, io, f)
	if s.dumpsLocalDatabase(argv, use) {
		use.Stdout = command.StreamDatabaseRows
	}
	out := s.programOutput(base, argv, use, io, f)
	if use.Stdout == command.StreamCredentials && out.SecretDescription == "" {
		out.SecretDescription = "$(" + abstract.ClipForMessage(commandForMessage(base, argv[1:])) + ")"
	}
	if len(use.NestedCommandsAndCode) > 0 {
		// The output of a program that runs a command is that of the command.
		if out.FullyUnknown || out.IsLiteral() && out.Text == "" {
			t := out.Taint
			out = nested
			out.Taint |= t
		}
	}
	return out
}

// commandForMessage returns a command as text for messages.
func commandForMessage(base string, args []abstract.Value) string {
	words := []string{base}
	for _, v := range args[:min(len(args), 8)] {
		words = append(words, v.String())
	}
	return strings.Join(words, " ")
}

// markProgramDataLosses adds, to the Execute effect that was recorded last, the data that the program
// deletes besides its operands.
func (s *analysisState) markProgramDataLosses(use command.Interpretation) {
	if n := len(s.effects); use.NonOperandDataLosses != 0 && n > 0 && s.effectSuppressionDepth == 0 && s.remoteOrContainerDepth == 0 && s.effects[n-1].Kind == effect.Execute {
		e := &s.effects[n-1]
		e.Losses |= use.NonOperandDataLosses
		if p, pattern := s.workingFolderContext().CanonicalPath(use.FolderLosingFiles.Text, false); !pattern {
			e.FolderLosingFiles = p
		}
	}
}

// addDataLosses adds a kind of loss to all effects from a given index to the end of the list.
func (s *analysisState) addDataLosses(firstEffect int, loss effect.FileLossSet) {
	for i := min(firstEffect, len(s.effects)); i < len(s.effects); i++ {
		s.effects[i].Losses |= loss
	}
}

// emitProgramEffect records the effects that a program always has, whatever its operands are.
func (s *analysisState) emitProgramEffect(use command.Interpretation, f programIO, e effect.Effect) {
	for _, k := range use.Effects {
		e, by := effect.EffectOfPolicyKind(k), e
		e.Program, e.Reason, e.Span = by.Program, by.Reason, by.Span
		switch {
		case k == effect.ChangeRemoteSystem:
			setRemoteChangeDetails(&e, use.RemoteServiceChange)
			s.emitOnce(e)
		case k == effect.SendData:
			e.RemoteServiceName = "registry"
			s.emitForEachContactedHost(e, f.networkContactEffects)
		case k == effect.ChangeSystem && use.InstallsPackagesByNameOnly:
			e.Cause = effect.CausePackageInstall
			s.emitOnce(e)
		case k == effect.ReadSecret && use.Stdout == command.StreamCredentials && s.isOutputCaptured():
		default:
			s.emitOnce(e)
		}
	}
}

// setRemoteChangeDetails fills in the details of a change on another machine.
func setRemoteChangeDetails(e *effect.Effect, r command.RemoteServiceChange) {
	e.RemoteServiceName, e.RemoteOperationVerb, e.RemoteTargetName = r.Service, r.Verb, r.Target
	if !r.IsTestTarget {
		e.Harms = effect.HarmsOfRemoteOperation(r.Verb)
	}
}

// sourceCodeFileArguments returns the arguments that may name source files which a program compiles or runs.
func sourceCodeFileArguments(programBaseName string, args []abstract.Value) []abstract.Value {
	switch programBaseName {
	case "make", "gmake":
		for i, v := range args[:max(0, len(args)-1)] {
			if v.Text == "-f" || v.Text == "--file" || v.Text == "--makefile" {
				return args[i+1 : i+2]
			}
		}
		return []abstract.Value{abstract.Lit("GNUmakefile"), abstract.Lit("makefile"), abstract.Lit("Makefile")}
	}
	if command.Compilers[programBaseName] {
		return args
	}
	return nil
}

// A programIO describes the files that a program reads and writes and the network hosts that it
// contacts, according to its operands.
type programIO struct {
	readContent           abstract.Value // content of the files that the program reads
	readFileCount         int
	writeTargets          []abstract.OutputTarget
	usesNetwork           bool            // the program contacts a network peer
	opensConnection       bool            // the program connects, listens or sends a message, other than by an HTTP request
	networkContactEffects []effect.Effect // requests and connections of the program
	sentFiles             []sentFile
	listedFolders         []abstract.Value

	streamsBesideArgumentListFile *abstract.Streams // streams of a program that reads arguments from a file instead of standard input (xargs -a); nil for others

	readsSecretKey bool // it reads a registry key that holds credentials
}

// recordOperandEffects records the effects of a program on its operands.
func (s *analysisState) recordOperandEffects(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams) programIO {
	var f programIO
	var b abstract.Builder
	var sources []abstract.Value
	var moved []effect.Effect
	for _, t := range use.OperandEffects {
		if !s.spendSteps(1) {
			break
		}
		v := wordValue(t.Word, argv)
		if use.IsWindowsProgram {
			v = abstract.PatternFromWindowsGlob(v)
		}
		switch t.Kind {
		case effect.HTTPRequest:
			f.usesNetwork = true
			f.networkContactEffects = append(f.networkContactEffects, s.emitURLEffect(t.Kind, v))
		case effect.Connect, effect.Listen, effect.SendMessage:
			f.usesNetwork, f.opensConnection = true, true
			e := s.emitHostEffect(t.Kind, v)
			if t.Kind == effect.SendMessage {
				e.Host, e.RemoteTargetName = "", v.String()
			}
			if t.Kind != effect.Listen {
				f.networkContactEffects = append(f.networkContactEffects, e)
			}
		case effect.SendData:
			f.usesNetwork = true
			s.recordPushOrPublish(base, v)
		case effect.ChangeRemoteSystem:
			s.recordPackageSources(base, v)
		case effect.ReadFile, effect.ListDirectory:
			if t.Kind == effect.ListDirectory || t.Recursive {
				f.listedFolders = append(f.listedFolders, v)
			}
			content := s.recordReadOfOperandPath(t, v)
			sources = append(sources, v)
			if t.IsFileContentSent {
				f.sentFiles = append(f.sentFiles, sentFile{v, content, t.Recursive})
			}
			if t.Kind == effect.ReadFile && (use.Stdout == command.StreamFilteredStdin || use.Stdout == command.StreamDecodedStdin || !isCredentialFileOperand(argv, t.Word)) {
				b.Add(content)
				f.readFileCount++
			}
		case effect.WriteFile:
			if v.IsLiteral() && (isStreamDevice(v.Text) || strings.HasPrefix(v.Text, "/dev/fd/")) {
				if strings.HasPrefix(v.Text, "/dev/fd/") {
					f.writeTargets = append(f.writeTargets, abstract.OutputTarget{Path: v.Text})
				}
				break
			}
			mark := len(s.effects)
			p, pattern := s.emitPathEffect(t.Kind, v, t.Recursive)
			if t.IsFileContentNormallyUnchanged {
				s.markEffectsPossible(mark)
			}
			if use.NonOperandDataLosses&effect.FileLossNone != 0 {
				s.addDataLosses(mark, effect.FileLossNone)
			}
			if t.IsBackupCopy {
				s.backupCopyPaths = append(s.backupCopyPaths, p)
			}
			f.writeTargets = append(f.writeTargets, abstract.OutputTarget{Path: p, PathIsGlobPattern: pattern, WritesIntoFolder: t.Recursive, WritesEachListedOrMatchedFile: v.HasPathPerLine || v.DoubleStarExcludesDotDot})
		case effect.MoveFile:
			p, pattern := s.emitPathEffect(t.Kind, v, t.Recursive)
			b.Add(s.fileContent(p, pattern, v))
			f.readFileCount++
			sources = append(sources, v)
			moved = append(moved, effect.Effect{Path: p, PathIsPattern: pattern})
		case "":
		default:
			mark := len(s.effects)
			s.emitPathEffect(t.Kind, v, t.Recursive)
			for i := mark; t.RefusesDeletingUnversionedData && i < len(s.effects); i++ {
				s.effects[i].IsRestorableWithoutBackup = s.effects[i].Kind == t.Kind
			}
		}
	}
	s.recordTruncations(base, sources, f.writeTargets, wordsSpan(argv))
	s.recordGitFetchHeadContent(base, argv, &f, &b)
	f.readContent = b.Value()
	s.recordFileLinks(base, sources, f.writeTargets)
	s.recordShieldRename(base, sources, f.writeTargets, wordsSpan(argv))
	s.recordMoves(moved, f.writeTargets)
	return f
}

// recordGitFetchHeadContent records what "git fetch URL" stores in FETCH_HEAD, and which files get content from there.
func (s *analysisState) recordGitFetchHeadContent(base string, argv []abstract.Value, f *programIO, b *abstract.Builder) {
	cwd := s.workingFolderContext().CWD
	if base != "git" || cwd == "" {
		return
	}
	head := cwd + "/.git/FETCH_HEAD"
	switch {
	case len(f.writeTargets) > 0 && slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.HasSuffix(v.Text, "FETCH_HEAD") }):
		b.Add(s.fileContent(head, false, abstract.Lit(head)))
		f.readFileCount++
	case f.usesNetwork && len(f.writeTargets) == 0 && slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == "fetch" || v.Text == "pull" }):
		if slices.ContainsFunc(f.networkContactEffects, func(p effect.Effect) bool { return p.Kind == effect.HTTPRequest || p.Kind == effect.Connect }) {
			s.addFile(writtenFile{path: head, content: abstract.Unknown("what git fetched", abstract.TaintNetwork)})
		}
	}
}

func (s *analysisState) recordReadOfOperandPath(t command.OperandEffect, v abstract.Value) abstract.Value {
	if t.Kind == effect.ListDirectory {
		s.emitPathEffect(t.Kind, v, t.Recursive)
		return abstract.Value{}
	}
	if !t.Recursive {
		return s.readFile(t.Kind, v)
	}
	p, pattern := s.emitPathEffect(t.Kind, v, true)
	out := s.fileContent(p, pattern, v)
	if p != "" && effect.IsSecretPath(p, pattern) {
		out.Taint |= abstract.TaintReadCredentials
		out.SecretDescription = v.String()
	}
	return out
}

// wordValue returns the argument that a word of package command was made from, with its taint.
func wordValue(w command.Word, argv []abstract.Value) abstract.Value {
	for _, v := range argv {
		if v.Text == w.Text && v.IsGlobPattern == w.IsGlobPattern {
			return v
		}
	}
	out := abstract.Value{Text: w.Text, IsGlobPattern: w.IsGlobPattern, DoubleStarExcludesDotDot: w.DoubleStarExcludesDotDot, SourceSpan: w.Span}
	for _, v := range argv {
		if len(w.Text) > 0 && strings.Contains(v.Text, w.Text) {
			out.Taint, out.Origin, out.SecretDescription, out.SourceSpan = v.Taint, v.Origin, v.SecretDescription, v.SourceSpan
			if v.IsGlobPattern {
				out.Display = w.Text
				if strings.HasSuffix(v.Text, w.Text) && len(v.Text) > len(w.Text) {
					if i := len(v.Display) - 1; i > 0 {
						if _, after, ok := strings.Cut(v.Display, "="); ok {
							out.Display = after
						}
					}
				}
			}
			break
		}
	}
	if out.IsGlobPattern {
		out.FullyUnknown = strings.Trim(out.Text, "*") == ""
		if out.Display == "" {
			out.Display = out.Text
		}
	}
	return out
}

func (s *analysisState) emitURLEffect(kind effect.Kind, v abstract.Value) effect.Effect {
	e := effect.Effect{Kind: kind, Span: v.SourceSpan, PathIsPattern: v.IsGlobPattern}
	if v.IsGlobPattern {
		e.URL = v.Display
		_, rest, ok := strings.Cut(v.Text, "://")
		if host, _, _ := strings.Cut(rest, "/"); ok && host != "" && !strings.ContainsAny(host, "*?[") {
			e.Host = effect.CanonicalHost(host)
		}
	} else {
		e.URL, e.Host = effect.NormalizeURL(v.Text)
		if e.Host == "" {
			if e.URL == "" {
				e.URL = v.Text
			}
			e.PathIsPattern = true
		}
	}
	s.emitOnce(e)
	return e
}

func (s *analysisState) emitHostEffect(kind effect.Kind, v abstract.Value) effect.Effect {
	e := effect.Effect{Kind: kind, Span: v.SourceSpan, PathIsPattern: v.IsGlobPattern}
	if !v.IsGlobPattern {
		text := v.Text
		if i := strings.LastIndexByte(text, '@'); i >= 0 {
			text = text[i+1:]
		}
		if kind != effect.Listen || strings.Trim(text, "0123456789") != "" { // to listen on a bare number means a port, not a host
			e.Host = effect.CanonicalHost(text)
		}
	}
	s.emitOnce(e)
	return e
}

// programOutput returns a program's standard output and sets the content of the files that it writes.
func (s *analysisState) programOutput(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Value {
	if !use.IsWindowsProgram && printsShellCodeForEval(base, argv, use.Understood || use.Class != effect.UnknownClass) {
		if !s.mayCommandTextAssign(nonSystemPATHVariable) {
			return abstract.Value{}
		}
	}
	out := abstract.Value{}
	if v, ok := s.computeProgramOutput(base, argv, io.Stdin, f); ok && !use.IsWindowsProgram {
		out = v
		if !v.IsLiteral() {
			out.Taint |= taintOfProgramGeneratedText(base, argv)
		}
	} else {
		t := s.outputTaint(base, argv, use, io, f)
		if use.Stdin == command.StreamExecutedCode {
			t |= abstract.TaintStdinInterpreterOutput
		}
		if (base == "env" || base == "printenv") && len(use.NestedCommandsAndCode) == 0 {
			t |= s.environmentDumpTaint(argv)
		}
		if command.Private[base] {
			t |= abstract.TaintClipboardOrScreen
		}
		if f.readsSecretKey {
			t |= abstract.TaintReadCredentials
		}
		out = abstract.UnknownOutput(base, t)
		if t&(abstract.TaintReadCredentials|abstract.TaintCredentialVariable) != 0 {
			out.SecretDescription = f.readContent.SecretDescription
			if out.SecretDescription == "" {
				out.SecretDescription = io.Stdin.SecretDescription
			}
		}
	}
	patched := command.HasOnlyFileWriteEffects(use.StdinCodeLanguage) && s.recordPatches(argv[1:])
	for _, w := range f.writeTargets {
		v := out
		switch {
		case use.WritesDecodedInputToFiles:
			v = abstract.Unknown("what "+base+" decodes", f.readContent.Taint|abstract.TaintDecoded)
		case f.readFileCount > 0:
			v = f.readContent
		case f.usesNetwork:
			v = abstract.Unknown("what "+base+" downloads", abstract.TaintNetwork)
		}
		if use.Stdout == command.StreamDownload {
			v.Taint |= abstract.TaintNetwork
		}
		if w.WritesIntoFolder {
			v.Taint |= io.Stdin.Taint & externalOrDecodedTaints
		}
		s.recordWriteToFileHeldOpen(w.Path)
		s.addFile(writtenFile{path: w.Path, isPathPattern: w.PathIsGlobPattern, content: v, isFolder: w.WritesIntoFolder, compiledFromWorkspace: s.compilesWorkspaceFiles(base, use, f.readContent), isCompilerOutput: command.Compilers[base], isFromCodeHost: w.WritesIntoFolder && (f.usesNetwork && contactsOnlyCodeHosts(argv, use) || cloneByNamePrograms[base])})
		patched = patched || s.recordInputAsFileContent(w, v, io.Stdin)
		if strings.HasSuffix(w.Path, "/") || f.readFileCount > 0 {
			s.addFilesCopiedToFolder(w, argv, use, v)
		}
	}
	return out
}

// addFilesCopiedToFolder records the paths of copies if the destination is a folder.
func (s *analysisState) addFilesCopiedToFolder(w abstract.OutputTarget, argv []abstract.Value, use command.Interpretation, v abstract.Value) {
	for _, t := range use.OperandEffects {
		if (t.Kind == effect.ReadFile || t.Kind == effect.MoveFile) && !t.Word.IsGlobPattern {
			s.addFile(writtenFile{path: strings.TrimSuffix(w.Path, "/") + "/" + path.Base(t.Word.Text), isPathPattern: w.PathIsGlobPattern, content: v})
		}
	}
}

// environmentDumpTaint returns the taint of the variables that env and printenv print.
func (s *analysisState) environmentDumpTaint(argv []abstract.Value) abstract.Taint {
	for _, v := range argv[1:] {
		if !strings.HasPrefix(v.Text, "-") && !strings.Contains(v.Text, "=") {
			return s.environmentValue(v.Text)[0].Taint
		}
	}
	return abstract.TaintEnvironmentDump
}

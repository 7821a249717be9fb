package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// runProgram runs a command that is not a builtin.
func (s *state) runProgram(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if first, _, _ := strings.Cut(argv[0].Text, " "); argv[0].Known() && isCommandLine(argv[0].Text) && command.HasEntry(first) {
		s.emitDynamic(effect.CauseUnresolved, "the name of the program contains a whole command: "+abstract.Clip(argv[0].Text), argv[0].From)
	}
	name := strings.ReplaceAll(argv[0].Text, "\\", "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !isSystemFolder(name[:i+1]) {
		return s.runLocalProgram(argv, io)
	}
	base := programName(name)
	argv = s.expandResponseFiles(base, s.withAddedOptions(base, withPlaceholder(base, argv)))
	s.recordHiddenWord(base, argv)
	words := commandWords(argv)
	words[0].Text = base
	s.recordInstalledProgramRun(base, argv[0].From)
	return s.runListedProgram(base, words, argv, io)
}

// recordHiddenWord records that an argument of a program is computed in a way that is not analysed: it may be a
// subcommand or an option. Programs that only print their arguments are skipped.
func (s *state) recordHiddenWord(base string, argv []abstract.Value) {
	if harmlessPrograms[base] {
		return
	}
	for _, v := range argv[1:] {
		if v.IsComputed() {
			s.emitDynamic(effect.CauseUnresolved, "an argument of "+base+" is unknown: "+abstract.Clip(v.String()), v.From)
			return
		}
	}
}

// harmlessPrograms are programs that only print or compare their arguments, or wait.
var harmlessPrograms = map[string]bool{"echo": true, "printf": true, "test": true, "[": true, "expr": true, "sleep": true, "true": true, "false": true, ":": true}

// runListedProgram runs a program according to its entry in package command; words begins with the program's name.
func (s *state) runListedProgram(base string, words []command.Word, argv []abstract.Value, io abstract.Streams) abstract.Value {
	use := command.Interpret(words)
	if listed := s.listedOperands(use, io); listed != nil {
		use = command.Interpret(words, listed...)
	}
	use.AddTargets(s.environmentPlaces(base)...)
	class := use.Class
	if runsCode(use) || !use.Understood && (class == effect.ReadOnly || class == effect.LocalWrite) {
		class = effect.UnknownClass
	}
	if class == effect.ReadOnly || class == effect.LocalWrite {
		if s.mayBeAssigned(changedPathName) {
			class = effect.UnknownClass
		}
	}
	at, read := len(s.effects), s.walkedScriptCount
	s.execute(argv, base, class, use.Harms...)
	s.markProgramLosses(use)
	out := s.applyProgram(base, argv, use, io)
	s.markUnprintedReads(base, argv, use, at)
	if s.walkedScriptCount > read && at < len(s.effects) && runsShellFile(use) {
		s.effects[at].Class = effect.LocalWrite // the effects of the script are recorded separately
	}
	return out
}

// runsShellFile reports whether the only code that a program runs is a shell script.
func runsShellFile(use command.Interpretation) bool {
	return use.Stdin != command.Code && len(use.Nested) == 1 && use.Nested[0].Language == "file" && use.Nested[0].FileLanguage == "shell"
}

// commandWords converts words to those of package command.
//
//go:noinline
func commandWords(argv []abstract.Value) []command.Word {
	words := make([]command.Word, len(argv))
	for i, v := range argv {
		words[i] = command.Word{Text: v.Text, Pattern: v.IsPattern, FromSearch: v.IsSearchedTree, IsJobID: v.IsJobID(), Span: v.From}
	}
	return words
}

// runsCode reports whether a program runs code of a language that is only partly analysed, so that it may have
// other effects than those found.
func runsCode(use command.Interpretation) bool {
	if use.Stdin == command.Code && !command.IsQuery(use.Language) {
		return true
	}
	for _, n := range use.Nested {
		if command.IsQuery(n.FileLanguage) {
			continue
		}
		switch n.Language {
		case "argv", "shell", "awk", "cmd", "powershell", "encoded":
		case "place", "tools", "home", "output", "source", "server", "options", "build", "check": // values of variables, which are judged separately
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

// isSystemFolder reports whether a folder, given with its final slash, is a system folder: a program there is the
// one that its name suggests.
func isSystemFolder(dir string) bool {
	if command.SystemFolder(strings.TrimSuffix(dir, "/")) {
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
		if strings.HasSuffix(lower, tail) && !effect.IsInSharedFolder(dir) {
			return true
		}
	}
	return false
}

// applyProgram records the effects of a program's arguments and returns its output.
func (s *state) applyProgram(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams) abstract.Value {
	at := wordsSpan(argv)
	why := ""
	if use.EffectsDescription != "" {
		why = base + " " + use.EffectsDescription
	}
	s.gitRemotes = append(s.gitRemotes, use.GitRemotes...)
	f := s.recordOperandEffects(base, argv, use, io)
	s.emitProgramEffect(use, f, effect.Effect{Program: base, Reason: why, Span: at})
	s.recordShieldStop(base, argv, use)
	s.recordGuardSignals(base, argv, use)
	s.recordProxies(base, argv, use)
	s.recordUnknownPackages(use)
	s.judgeUnreadWords(base, argv, use)
	s.recordGuardRunFromSource(argv, use)
	s.recordProgramInstalls(base, argv)
	s.recordUnpackedMembers(base, argv, use)
	for _, k := range use.RegistryKeys {
		f.readsSecretKey = s.recordRegistryAccess(base, argv, k) || f.readsSecretKey
	}
	if command.Compilers[base] && io.In.Taint&foreignCodeTaints != 0 && hasStdinArgument(argv) {
		s.runText("code", io.In, base, at, nil)
	}
	if len(s.files) > 0 {
		for _, v := range sourceFileArguments(base, argv[1:]) {
			p, pattern := s.place().Path(v.Text, v.IsPattern)
			for _, src := range s.fileValues(p, pattern) {
				// A workspace file that was only edited is still the project's own code.
				if src.Known() || src.Taint&(abstract.Network|abstract.Decoded|abstract.Socket) != 0 {
					s.runText("code", src, base, at, nil)
				}
			}
		}
	}
	switch base {
	case "sed", "gsed", "perl":
		s.recordEdits(argv, use)
	}
	s.checkProjectFiles(base, argv, use, io)
	if len(s.files) > 0 {
		s.walkInputFile(base, argv, use)
	}
	if use.Class == effect.UnknownClass {
		for _, v := range argv[1:] {
			if !use.IsWindowsProgram || !strings.HasPrefix(v.Text, "/") {
				f.readContent.Taint |= s.recordSuspectWord(v)
			}
		}
		if len(use.Nested) == 0 && !use.IsWindowsProgram {
			s.walkWrappedCommand(argv[1:], io)
		}
	}
	if use.Class != effect.UnknownClass && len(use.Nested) == 0 {
		s.walkHookOptions(argv[1:])
	}
	contacts := f.usesNetwork || use.Class == effect.Network || use.Stdin == command.Upload
	if contacts {
		s.recordSentData(base, argv, use, f, io)
	}
	s.recordDatabaseCopy(base, argv, io.In)
	s.recordCredentialInput(base, use, io.In, at)
	nested := s.walkArgumentCode(base, argv, use, io, f)
	if s.dumpsLocalDatabase(argv, use) {
		use.Stdout = command.Rows
	}
	out := s.programOutput(base, argv, use, io, f)
	if use.Stdout == command.Secret && out.SecretDescription == "" {
		out.SecretDescription = "$(" + abstract.Clip(commandForMessage(base, argv[1:])) + ")"
	}
	if len(use.Nested) > 0 {
		// The output of a program that runs a command is that of the command.
		if out.FullyUnknown || out.Known() && out.Text == "" {
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

// markProgramLosses adds, to the Execute effect that was recorded last, the data that the program
// deletes besides its operands.
func (s *state) markProgramLosses(use command.Interpretation) {
	if n := len(s.effects); use.OtherLosses != 0 && n > 0 && s.suppressedDepth == 0 && s.remoteDepth == 0 && s.effects[n-1].Kind == effect.Execute {
		e := &s.effects[n-1]
		e.Losses |= use.OtherLosses
		if p, pattern := s.place().Path(use.Folder.Text, false); !pattern {
			e.LossFolder = p
		}
	}
}

// addLosses adds a kind of loss to all effects from a given index to the end of the list.
func (s *state) addLosses(from int, l effect.Loss) {
	for i := min(from, len(s.effects)); i < len(s.effects); i++ {
		s.effects[i].Losses |= l
	}
}

// emitProgramEffect records the effects that a program always has, whatever its operands are.
func (s *state) emitProgramEffect(use command.Interpretation, f programIO, e effect.Effect) {
	for _, k := range use.Effects {
		e, by := effect.WithRuleKind(k), e
		e.Program, e.Reason, e.Span = by.Program, by.Reason, by.Span
		switch {
		case k == effect.ChangeRemote:
			setRemoteDetails(&e, use.Remote)
			s.emitOnce(e)
		case k == effect.SendData:
			e.Service = "registry"
			s.emitForEachPeer(e, f.networkPeers)
		case k == effect.ChangeSystem && use.InstallsByName:
			e.Cause = effect.CausePackageInstall
			s.emitOnce(e)
		case k == effect.ReadSecret && use.Stdout == command.Secret && s.isCaptured():
		default:
			s.emitOnce(e)
		}
	}
}

// setRemoteDetails fills in the details of a change on another machine.
func setRemoteDetails(e *effect.Effect, r command.RemoteChange) {
	e.Service, e.Verb, e.Target = r.Service, r.Verb, r.Target
	if !r.IsTest {
		e.Harms = effect.ChangeHarms(r.Verb)
	}
}

// sourceFileArguments returns the arguments that may name source files which a program compiles or runs.
func sourceFileArguments(base string, args []abstract.Value) []abstract.Value {
	switch base {
	case "make", "gmake":
		for i, v := range args[:max(0, len(args)-1)] {
			if v.Text == "-f" || v.Text == "--file" || v.Text == "--makefile" {
				return args[i+1 : i+2]
			}
		}
		return []abstract.Value{abstract.Lit("GNUmakefile"), abstract.Lit("makefile"), abstract.Lit("Makefile")}
	}
	if command.Compilers[base] {
		return args
	}
	return nil
}

// A programIO is the data that a program's operands read and the peers that they name.
type programIO struct {
	readContent     abstract.Value // content of the files that the program reads
	readCount       int
	writeTargets    []abstract.Target
	usesNetwork     bool            // the program contacts a network peer
	opensConnection bool            // it opens a raw connection
	networkPeers    []effect.Effect // requests and connections of the program
	sentFiles       []sentFile
	listedFolders   []abstract.Value

	readsSecretKey bool // it reads a registry key that holds credentials
}

// recordOperandEffects records the effects of a program on its operands.
func (s *state) recordOperandEffects(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams) programIO {
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
			v = abstract.WindowsGlob(v)
		}
		switch t.Kind {
		case effect.HTTPRequest:
			f.usesNetwork = true
			f.networkPeers = append(f.networkPeers, s.emitURL(t.Kind, v))
		case effect.Connect, effect.Listen, effect.SendMessage:
			f.usesNetwork, f.opensConnection = true, true
			e := s.emitHost(t.Kind, v)
			if t.Kind == effect.SendMessage {
				e.Host, e.Target = "", v.String()
			}
			if t.Kind != effect.Listen {
				f.networkPeers = append(f.networkPeers, e)
			}
		case effect.SendData:
			f.usesNetwork = true
			s.recordPublishedData(base, v)
		case effect.ChangeRemote:
			s.recordPackageSources(base, v)
		case effect.ReadFile, effect.ListDirectory:
			if t.Kind == effect.ListDirectory || t.Recursive {
				f.listedFolders = append(f.listedFolders, v)
			}
			content := s.readOperand(t, v)
			sources = append(sources, v)
			if t.Sent {
				f.sentFiles = append(f.sentFiles, sentFile{v, content, t.Recursive})
			}
			if t.Kind == effect.ReadFile && (use.Stdout == command.Input || use.Stdout == command.Decoded || !isCredentialFileOperand(argv, t.Word)) {
				b.Add(content)
				f.readCount++
			}
		case effect.WriteFile:
			if v.Known() && (isStreamDevice(v.Text) || strings.HasPrefix(v.Text, "/dev/fd/")) {
				if strings.HasPrefix(v.Text, "/dev/fd/") {
					f.writeTargets = append(f.writeTargets, abstract.Target{Path: v.Text})
				}
				break
			}
			mark := len(s.effects)
			p, pattern := s.emitPath(t.Kind, v, t.Recursive)
			if t.KeepsContent {
				s.markEffectsPossible(mark)
			}
			if use.OtherLosses&effect.LosesNothing != 0 {
				s.addLosses(mark, effect.LosesNothing)
			}
			if t.IsBackupCopy {
				s.backupPaths = append(s.backupPaths, p)
			}
			f.writeTargets = append(f.writeTargets, abstract.Target{Path: p, Pattern: pattern, IsFolder: t.Recursive, FromPathList: v.IsPathList || v.IsSearchedTree})
		case effect.MoveFile:
			p, pattern := s.emitPath(t.Kind, v, t.Recursive)
			b.Add(s.fileContent(p, pattern, v))
			f.readCount++
			sources = append(sources, v)
			moved = append(moved, effect.Effect{Path: p, Pattern: pattern})
		case "":
		default:
			mark := len(s.effects)
			s.emitPath(t.Kind, v, t.Recursive)
			for i := mark; t.RefusesUnversioned && i < len(s.effects); i++ {
				s.effects[i].Restorable = s.effects[i].Kind == t.Kind
			}
		}
	}
	s.recordTruncations(base, sources, f.writeTargets, wordsSpan(argv))
	s.recordFetchHead(base, argv, &f, &b)
	f.readContent = b.Value()
	s.recordLinks(base, sources, f.writeTargets)
	s.recordShieldRename(base, sources, f.writeTargets, wordsSpan(argv))
	s.recordMoves(moved, f.writeTargets)
	return f
}

// recordFetchHead records what "git fetch URL" stores in FETCH_HEAD, and which files get content from there.
func (s *state) recordFetchHead(base string, argv []abstract.Value, f *programIO, b *abstract.Builder) {
	cwd := s.place().CWD
	if base != "git" || cwd == "" {
		return
	}
	head := cwd + "/.git/FETCH_HEAD"
	switch {
	case len(f.writeTargets) > 0 && slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.HasSuffix(v.Text, "FETCH_HEAD") }):
		b.Add(s.fileContent(head, false, abstract.Lit(head)))
		f.readCount++
	case f.usesNetwork && len(f.writeTargets) == 0 && slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == "fetch" || v.Text == "pull" }):
		if slices.ContainsFunc(f.networkPeers, func(p effect.Effect) bool { return p.Kind == effect.HTTPRequest || p.Kind == effect.Connect }) {
			s.addFile(writtenFile{path: head, val: abstract.Unknown("what git fetched", abstract.Network)})
		}
	}
}

func (s *state) readOperand(t command.OperandEffect, v abstract.Value) abstract.Value {
	if t.Kind == effect.ListDirectory {
		s.emitPath(t.Kind, v, t.Recursive)
		return abstract.Value{}
	}
	if !t.Recursive {
		return s.readFile(t.Kind, v)
	}
	p, pattern := s.emitPath(t.Kind, v, true)
	out := s.fileContent(p, pattern, v)
	if p != "" && effect.SecretPath(p, pattern) {
		out.Taint |= abstract.Secret
		out.SecretDescription = v.String()
	}
	return out
}

// wordValue returns the argument that a word of package command was made from, with its taint.
func wordValue(w command.Word, argv []abstract.Value) abstract.Value {
	for _, v := range argv {
		if v.Text == w.Text && v.IsPattern == w.Pattern {
			return v
		}
	}
	out := abstract.Value{Text: w.Text, IsPattern: w.Pattern, IsSearchedTree: w.FromSearch, From: w.Span}
	for _, v := range argv {
		if len(w.Text) > 0 && strings.Contains(v.Text, w.Text) {
			out.Taint, out.Origin, out.SecretDescription, out.From = v.Taint, v.Origin, v.SecretDescription, v.From
			if v.IsPattern {
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
	if out.IsPattern {
		out.FullyUnknown = strings.Trim(out.Text, "*") == ""
		if out.Display == "" {
			out.Display = out.Text
		}
	}
	return out
}

func (s *state) emitURL(kind effect.Kind, v abstract.Value) effect.Effect {
	e := effect.Effect{Kind: kind, Span: v.From, Pattern: v.IsPattern}
	if v.IsPattern {
		e.URL = v.Display
		_, rest, ok := strings.Cut(v.Text, "://")
		if host, _, _ := strings.Cut(rest, "/"); ok && host != "" && !strings.ContainsAny(host, "*?[") {
			e.Host = effect.Host(host)
		}
	} else {
		e.URL, e.Host = effect.URL(v.Text)
		if e.Host == "" {
			if e.URL == "" {
				e.URL = v.Text
			}
			e.Pattern = true
		}
	}
	s.emitOnce(e)
	return e
}

func (s *state) emitHost(kind effect.Kind, v abstract.Value) effect.Effect {
	e := effect.Effect{Kind: kind, Span: v.From, Pattern: v.IsPattern}
	if !v.IsPattern {
		text := v.Text
		if i := strings.LastIndexByte(text, '@'); i >= 0 {
			text = text[i+1:]
		}
		if kind != effect.Listen || strings.Trim(text, "0123456789") != "" { // to listen on a bare number means a port, not a host
			e.Host = effect.Host(text)
		}
	}
	s.emitOnce(e)
	return e
}

// programOutput returns a program's standard output and sets the content of the files that it writes.
func (s *state) programOutput(base string, argv []abstract.Value, use command.Interpretation, io abstract.Streams, f programIO) abstract.Value {
	if !use.IsWindowsProgram && printsShellSetup(base, argv, use.Understood || use.Class != effect.UnknownClass) {
		if !s.mayBeAssigned(changedPathName) {
			return abstract.Value{}
		}
	}
	out := abstract.Value{}
	if v, ok := s.computeOutput(base, argv, io.In, f); ok && !use.IsWindowsProgram {
		out = v
		if !v.Known() {
			out.Taint |= generatedTextTaint(base, argv)
		}
	} else {
		t := s.outputTaint(base, argv, use, io, f)
		if use.Stdin == command.Code {
			t |= abstract.ShellOutput
		}
		if (base == "env" || base == "printenv") && len(use.Nested) == 0 {
			t |= s.environmentDumpTaint(argv)
		}
		if command.Private[base] {
			t |= abstract.Private
		}
		if f.readsSecretKey {
			t |= abstract.Secret
		}
		out = abstract.UnknownOutput(base, t)
		if t&(abstract.Secret|abstract.Credential) != 0 {
			out.SecretDescription = f.readContent.SecretDescription
			if out.SecretDescription == "" {
				out.SecretDescription = io.In.SecretDescription
			}
		}
	}
	patched := command.OnlyWritesFiles(use.Language) && s.recordPatches(argv[1:])
	for _, w := range f.writeTargets {
		v := out
		switch {
		case use.WritesDecoded:
			v = abstract.Unknown("what "+base+" decodes", f.readContent.Taint|abstract.Decoded)
		case f.readCount > 0:
			v = f.readContent
		case f.usesNetwork:
			v = abstract.Unknown("what "+base+" downloads", abstract.Network)
		}
		if use.Stdout == command.Download {
			v.Taint |= abstract.Network
		}
		if w.IsFolder {
			v.Taint |= io.In.Taint & foreignCodeTaints
		}
		s.recordReopenedFile(w.Path)
		s.addFile(writtenFile{path: w.Path, pattern: w.Pattern, val: v, isFolder: w.IsFolder, compiledFromWorkspace: s.compilesWorkspaceFiles(base, use, f.readContent), isCompilerOutput: command.Compilers[base], isFromCodeHost: w.IsFolder && (f.usesNetwork && contactsOnlyCodeHosts(argv, use) || cloneByNamePrograms[base])})
		patched = patched || s.recordWrittenInput(w, v, io.In)
		if strings.HasSuffix(w.Path, "/") || f.readCount > 0 {
			s.addCopies(w, argv, use, v)
		}
	}
	return out
}

// addCopies records the paths of copies if the destination is a folder.
func (s *state) addCopies(w abstract.Target, argv []abstract.Value, use command.Interpretation, v abstract.Value) {
	for _, t := range use.OperandEffects {
		if (t.Kind == effect.ReadFile || t.Kind == effect.MoveFile) && !t.Word.Pattern {
			s.addFile(writtenFile{path: strings.TrimSuffix(w.Path, "/") + "/" + path.Base(t.Word.Text), pattern: w.Pattern, val: v})
		}
	}
}

// environmentDumpTaint returns the taint of the variables that env and printenv print.
func (s *state) environmentDumpTaint(argv []abstract.Value) abstract.Taint {
	for _, v := range argv[1:] {
		if !strings.HasPrefix(v.Text, "-") && !strings.Contains(v.Text, "=") {
			return s.environmentValue(v.Text)[0].Taint
		}
	}
	return abstract.EnvironmentDump
}

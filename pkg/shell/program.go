package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// program runs a command that is not a builtin.
func (s *state) program(argv []abstract.Value, io abstract.Streams) abstract.Value {
	if first, _, _ := strings.Cut(argv[0].Text, " "); argv[0].Known() && isCommandLine(argv[0].Text) && command.HasEntry(first) {
		s.dynamic(effect.CauseUnresolved, "the name of the program contains a whole command: "+abstract.Clip(argv[0].Text), argv[0].From)
	}
	name := strings.ReplaceAll(argv[0].Text, "\\", "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !systemFolder(name[:i+1]) {
		return s.localProgram(argv, io)
	}
	base := programName(name)
	argv = s.expandResponseFiles(base, s.addedOptions(base, withPlaceholder(base, argv)))
	s.recordHiddenWord(base, argv)
	words := commandWords(argv)
	words[0].Text = base
	s.installed(base, argv[0].From)
	return s.listedProgram(base, words, argv, io)
}

// recordHiddenWord records that an argument of a program is computed in a way that is not analysed: it may be a
// subcommand or an option. Programs that only print their arguments are skipped.
func (s *state) recordHiddenWord(base string, argv []abstract.Value) {
	if printers[base] {
		return
	}
	for _, v := range argv[1:] {
		if v.Computed() {
			s.dynamic(effect.CauseUnresolved, "an argument of "+base+" is unknown: "+abstract.Clip(v.String()), v.From)
			return
		}
	}
}

// printers are programs that only print or compare their arguments, or wait.
var printers = map[string]bool{"echo": true, "printf": true, "test": true, "[": true, "expr": true, "sleep": true, "true": true, "false": true, ":": true}

// listedProgram runs a program according to its entry in package command; words begins with the program's name.
func (s *state) listedProgram(base string, words []command.Word, argv []abstract.Value, io abstract.Streams) abstract.Value {
	use := command.Interpret(words)
	if listed := s.listed(use, io); listed != nil {
		use = command.Interpret(words, listed...)
	}
	use.At(s.placesOf(base)...)
	class := use.Class
	if runsCode(use) || !use.Known && (class == effect.ReadOnly || class == effect.LocalWrite) {
		class = effect.UnknownClass
	}
	if class == effect.ReadOnly || class == effect.LocalWrite {
		if s.bound(pathChanged) {
			class = effect.UnknownClass
		}
	}
	at, read := len(s.effects), s.scripts
	s.execute(argv, base, class, use.Harms...)
	s.takesAway(use)
	out := s.apply(base, argv, use, io)
	s.markUnshownReads(base, argv, use, at)
	if s.scripts > read && at < len(s.effects) && runsShellFile(use) {
		s.effects[at].Class = effect.LocalWrite // the effects of the script are recorded separately
	}
	return out
}

// runsShellFile reports whether the only code that a program runs is a shell script.
func runsShellFile(use command.Use) bool {
	return use.Stdin != command.Code && len(use.Nested) == 1 && use.Nested[0].Language == "file" && use.Nested[0].Of == "shell"
}

// commandWords converts words to those of package command.
//
//go:noinline
func commandWords(argv []abstract.Value) []command.Word {
	words := make([]command.Word, len(argv))
	for i, v := range argv {
		words[i] = command.Word{Text: v.Text, Pattern: v.IsPattern, Tree: v.Tree, Job: v.Job(), From: v.From}
	}
	return words
}

// runsCode reports whether a program runs code of a language that is only partly analysed, so that it may have
// other effects than those found.
func runsCode(use command.Use) bool {
	if use.Stdin == command.Code && !command.IsQuery(use.Language) {
		return true
	}
	for _, n := range use.Nested {
		if command.IsQuery(n.Of) {
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

// systemFolder reports whether a folder, given with its final slash, is a system folder: a program there is the
// one that its name suggests.
func systemFolder(dir string) bool {
	if command.SystemFolder(strings.TrimSuffix(dir, "/")) {
		return true
	}
	lower := strings.ToLower(dir)
	if len(lower) > 2 && lower[1] == ':' && (strings.Contains(lower, "/windows/system32/") || strings.Contains(lower, "/windows/syswow64/") || strings.HasSuffix(lower, "/git/bin/") || strings.HasSuffix(lower, "/git/usr/bin/")) {
		return true
	}
	if strings.Contains(dir, "/../") || strings.Contains(dir, "/./") || strings.Contains(dir, "//") {
		if clean := strings.TrimSuffix(path.Clean(dir), "/") + "/"; clean != dir {
			return systemFolder(clean) // one level of recursion: a clean path does not change
		}
	}
	// Folders for programs that package managers install for a project or a user.
	for _, tail := range [...]string{"node_modules/.bin/", ".venv/bin/", "venv/bin/", "env/bin/", "vendor/bin/", ".cargo/bin/", "go/bin/", ".local/bin/", "miniconda3/bin/", "anaconda3/bin/", ".pyenv/shims/", ".rbenv/shims/", ".venv/scripts/", "venv/scripts/"} {
		if strings.HasSuffix(lower, tail) && !effect.Shared(dir) {
			return true
		}
	}
	return false
}

// apply records the effects of a program's arguments and returns its output.
func (s *state) apply(base string, argv []abstract.Value, use command.Use, io abstract.Streams) abstract.Value {
	at := join(argv)
	why := ""
	if use.Why != "" {
		why = base + " " + use.Why
	}
	s.remotes = append(s.remotes, use.Remotes...)
	f := s.touch(base, argv, use, io)
	s.emitProgramEffect(use, f, effect.Effect{Program: base, Reason: why, From: at})
	s.recordShieldStop(base, argv, use)
	s.signals(base, argv, use)
	s.recordProxies(base, argv, use)
	s.newPackages(use)
	s.judgeUnreadWords(base, argv, use)
	s.compilesGuard(argv, use)
	s.putsPrograms(base, argv)
	s.unpacks(base, argv, use)
	for _, k := range use.Keys {
		f.secretKey = s.registryKey(base, argv, k) || f.secretKey
	}
	if command.Compilers[base] && io.In.Taint&foreignCode != 0 && namesStdin(argv) {
		s.runText("code", io.In, base, at, nil)
	}
	if len(s.files) > 0 {
		for _, v := range sources(base, argv[1:]) {
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
	s.loadsProject(base, argv, use, io)
	if len(s.files) > 0 {
		s.walkInputFile(base, argv, use)
	}
	if use.Class == effect.UnknownClass {
		for _, v := range argv[1:] {
			if !use.Windows || !strings.HasPrefix(v.Text, "/") {
				f.reads.Taint |= s.recordSuspectWord(v)
			}
		}
		if len(use.Nested) == 0 && !use.Windows {
			s.possibleCarrier(argv[1:], io)
		}
	}
	if use.Class != effect.UnknownClass && len(use.Nested) == 0 {
		s.walkHookOptions(argv[1:])
	}
	contacts := f.network || use.Class == effect.Network || use.Stdin == command.Upload
	if contacts {
		s.sends(base, argv, use, f, io)
	}
	s.recordDatabaseCopy(base, argv, io.In)
	s.taken(base, use, io.In, at)
	nested := s.walkArgumentCode(base, argv, use, io, f)
	if s.dumpsHere(argv, use) {
		use.Stdout = command.Rows
	}
	out := s.output(base, argv, use, io, f)
	if use.Stdout == command.Secret && out.Secrets == "" {
		out.Secrets = "$(" + abstract.Clip(shownWords(base, argv[1:])) + ")"
	}
	if len(use.Nested) > 0 {
		// The output of a program that runs a command is that of the command.
		if out.Bare || out.Known() && out.Text == "" {
			t := out.Taint
			out = nested
			out.Taint |= t
		}
	}
	return out
}

// shownWords returns a command as text for messages.
func shownWords(base string, args []abstract.Value) string {
	words := []string{base}
	for _, v := range args[:min(len(args), 8)] {
		words = append(words, v.String())
	}
	return strings.Join(words, " ")
}

// takesAway marks the program recorded last with the data that it deletes besides its operands.
func (s *state) takesAway(use command.Use) {
	if n := len(s.effects); use.Loses != 0 && n > 0 && s.quiet == 0 && s.remote == 0 && s.effects[n-1].Kind == effect.Execute {
		e := &s.effects[n-1]
		e.Loses |= use.Loses
		if p, pattern := s.place().Path(use.Folder.Text, false); !pattern {
			e.Folder = p
		}
	}
}

// mark adds l to the losses of the effects from index from on.
func (s *state) mark(from int, l effect.Loss) {
	for i := min(from, len(s.effects)); i < len(s.effects); i++ {
		s.effects[i].Loses |= l
	}
}

// emitProgramEffect records the effects that a program always has, whatever its operands are.
func (s *state) emitProgramEffect(use command.Use, f flow, e effect.Effect) {
	for _, k := range use.Effects {
		e, by := effect.Of(k), e
		e.Program, e.Reason, e.From = by.Program, by.Reason, by.From
		switch {
		case k == effect.ChangeRemote:
			elsewhere(&e, use.Remote)
			s.emitOnce(e)
		case k == effect.SendData:
			e.Service = "registry"
			s.toPeers(e, f.peers)
		case k == effect.ChangeSystem && use.ByName:
			e.Cause = effect.CausePackages
			s.emitOnce(e)
		case k == effect.ReadSecret && use.Stdout == command.Secret && s.holds():
		default:
			s.emitOnce(e)
		}
	}
}

// elsewhere fills in the details of a change on another machine.
func elsewhere(e *effect.Effect, r command.Remote) {
	e.Service, e.Verb, e.Target = r.Service, r.Verb, r.Target
	if !r.Trial {
		e.Harms = effect.ChangeHarms(r.Verb)
	}
}

// sources returns the arguments that may name source files which a program compiles or runs.
func sources(base string, args []abstract.Value) []abstract.Value {
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

// A flow is the data that a program's operands read and the peers that they name.
type flow struct {
	reads   abstract.Value // content of the files that the program reads
	nreads  int
	writes  []abstract.Target
	network bool            // the program contacts a network peer
	connect bool            // it opens a raw connection
	peers   []effect.Effect // its requests and connections
	sent    []sent
	roots   []abstract.Value

	secretKey bool // it reads a registry key that holds credentials
}

// touch records the effects of a program on its operands.
func (s *state) touch(base string, argv []abstract.Value, use command.Use, io abstract.Streams) flow {
	var f flow
	var b abstract.Builder
	var sources []abstract.Value
	var moved []effect.Effect
	for _, t := range use.Touches {
		if !s.step(1) {
			break
		}
		v := wordValue(t.Word, argv)
		if use.Windows {
			v = abstract.WindowsGlob(v)
		}
		switch t.Kind {
		case effect.HTTPRequest:
			f.network = true
			f.peers = append(f.peers, s.url(t.Kind, v))
		case effect.Connect, effect.Listen, effect.SendMessage:
			f.network, f.connect = true, true
			e := s.host(t.Kind, v)
			if t.Kind == effect.SendMessage {
				e.Host, e.Target = "", v.String()
			}
			if t.Kind != effect.Listen {
				f.peers = append(f.peers, e)
			}
		case effect.SendData:
			f.network = true
			s.published(base, v)
		case effect.ChangeRemote:
			s.sources(base, v)
		case effect.ReadFile, effect.ListDirectory:
			if t.Kind == effect.ListDirectory || t.Recursive {
				f.roots = append(f.roots, v)
			}
			content := s.readOperand(t, v)
			sources = append(sources, v)
			if t.Sent {
				f.sent = append(f.sent, sent{v, content, t.Recursive})
			}
			if t.Kind == effect.ReadFile && (use.Stdout == command.Input || use.Stdout == command.Decoded || !credentialOption(argv, t.Word)) {
				b.Add(content)
				f.nreads++
			}
		case effect.WriteFile:
			if v.Known() && (quietDevice(v.Text) || strings.HasPrefix(v.Text, "/dev/fd/")) {
				if strings.HasPrefix(v.Text, "/dev/fd/") {
					f.writes = append(f.writes, abstract.Target{Path: v.Text})
				}
				break
			}
			mark := len(s.effects)
			p, pattern := s.path(t.Kind, v, t.Recursive)
			if t.Mends {
				s.onlyMay(mark)
			}
			if use.Loses&effect.LosesNothing != 0 {
				s.mark(mark, effect.LosesNothing)
			}
			if t.Backup {
				s.backups = append(s.backups, p)
			}
			f.writes = append(f.writes, abstract.Target{Path: p, Pattern: pattern, Tree: t.Recursive, Listed: v.Lines || v.Tree})
		case effect.MoveFile:
			p, pattern := s.path(t.Kind, v, t.Recursive)
			b.Add(s.content(p, pattern, v))
			f.nreads++
			sources = append(sources, v)
			moved = append(moved, effect.Effect{Path: p, Pattern: pattern})
		case "":
		default:
			mark := len(s.effects)
			s.path(t.Kind, v, t.Recursive)
			for i := mark; t.Checked && i < len(s.effects); i++ {
				s.effects[i].Restorable = s.effects[i].Kind == t.Kind
			}
		}
	}
	s.recordTruncations(base, sources, f.writes, join(argv))
	s.fetchHead(base, argv, &f, &b)
	f.reads = b.Value()
	s.linked(base, sources, f.writes)
	s.recordShieldRename(base, sources, f.writes, join(argv))
	s.moved(moved, f.writes)
	return f
}

// fetchHead records what "git fetch URL" stores in FETCH_HEAD, and which files get content from there.
func (s *state) fetchHead(base string, argv []abstract.Value, f *flow, b *abstract.Builder) {
	cwd := s.place().CWD
	if base != "git" || cwd == "" {
		return
	}
	head := cwd + "/.git/FETCH_HEAD"
	switch {
	case len(f.writes) > 0 && slices.ContainsFunc(argv, func(v abstract.Value) bool { return strings.HasSuffix(v.Text, "FETCH_HEAD") }):
		b.Add(s.content(head, false, abstract.Lit(head)))
		f.nreads++
	case f.network && len(f.writes) == 0 && slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == "fetch" || v.Text == "pull" }):
		if slices.ContainsFunc(f.peers, func(p effect.Effect) bool { return p.Kind == effect.HTTPRequest || p.Kind == effect.Connect }) {
			s.addFile(file{path: head, val: abstract.Unknown("what git fetched", abstract.Network)})
		}
	}
}

func (s *state) readOperand(t command.Touch, v abstract.Value) abstract.Value {
	if t.Kind == effect.ListDirectory {
		s.path(t.Kind, v, t.Recursive)
		return abstract.Value{}
	}
	if !t.Recursive {
		return s.readFile(t.Kind, v)
	}
	p, pattern := s.path(t.Kind, v, true)
	out := s.content(p, pattern, v)
	if p != "" && effect.SecretPath(p, pattern) {
		out.Taint |= abstract.Secret
		out.Secrets = v.String()
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
	out := abstract.Value{Text: w.Text, IsPattern: w.Pattern, Tree: w.Tree, From: w.From}
	for _, v := range argv {
		if len(w.Text) > 0 && strings.Contains(v.Text, w.Text) {
			out.Taint, out.Origin, out.Secrets, out.From = v.Taint, v.Origin, v.Secrets, v.From
			if v.IsPattern {
				out.Show = w.Text
				if strings.HasSuffix(v.Text, w.Text) && len(v.Text) > len(w.Text) {
					if i := len(v.Show) - 1; i > 0 {
						if _, after, ok := strings.Cut(v.Show, "="); ok {
							out.Show = after
						}
					}
				}
			}
			break
		}
	}
	if out.IsPattern {
		out.Bare = strings.Trim(out.Text, "*") == ""
		if out.Show == "" {
			out.Show = out.Text
		}
	}
	return out
}

func (s *state) url(kind effect.Kind, v abstract.Value) effect.Effect {
	e := effect.Effect{Kind: kind, From: v.From, Pattern: v.IsPattern}
	if v.IsPattern {
		e.URL = v.Show
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

func (s *state) host(kind effect.Kind, v abstract.Value) effect.Effect {
	e := effect.Effect{Kind: kind, From: v.From, Pattern: v.IsPattern}
	if !v.IsPattern {
		text := v.Text
		if i := strings.LastIndexByte(text, '@'); i >= 0 {
			text = text[i+1:]
		}
		if kind != effect.Listen || strings.Trim(text, "0123456789") != "" { // otherwise the number is a port
			e.Host = effect.Host(text)
		}
	}
	s.emitOnce(e)
	return e
}

// output returns a program's standard output and sets the content of the files that it writes.
func (s *state) output(base string, argv []abstract.Value, use command.Use, io abstract.Streams, f flow) abstract.Value {
	if !use.Windows && setsUpShell(base, argv, use.Known || use.Class != effect.UnknownClass) {
		if !s.bound(pathChanged) {
			return abstract.Value{}
		}
	}
	out := abstract.Value{}
	if v, ok := s.fold(base, argv, io.In, f); ok && !use.Windows {
		out = v
		if !v.Known() {
			out.Taint |= ownText(base, argv)
		}
	} else {
		t := s.prints(base, argv, use, io, f)
		if use.Stdin == command.Code {
			t |= abstract.ShellOut
		}
		if (base == "env" || base == "printenv") && len(use.Nested) == 0 {
			t |= s.environmentDump(argv)
		}
		if command.Private[base] {
			t |= abstract.Private
		}
		if f.secretKey {
			t |= abstract.Secret
		}
		out = abstract.Output(base, t)
		if t&(abstract.Secret|abstract.Credential) != 0 {
			out.Secrets = f.reads.Secrets
			if out.Secrets == "" {
				out.Secrets = io.In.Secrets
			}
		}
	}
	patched := command.OnlyWrites(use.Language) && s.putsPatches(argv[1:])
	for _, w := range f.writes {
		v := out
		switch {
		case use.Decodes:
			v = abstract.Unknown("what "+base+" decodes", f.reads.Taint|abstract.Decoded)
		case f.nreads > 0:
			v = f.reads
		case f.network:
			v = abstract.Unknown("what "+base+" downloads", abstract.Network)
		}
		if use.Stdout == command.Download {
			v.Taint |= abstract.Network
		}
		if w.Tree {
			v.Taint |= io.In.Taint & foreignCode
		}
		s.reopen(w.Path)
		s.addFile(file{path: w.Path, pattern: w.Pattern, val: v, tree: w.Tree, compiled: s.compiles(base, use, f.reads), code: command.Compilers[base], hosted: w.Tree && (f.network && codeHost(argv, use) || namedClones[base])})
		patched = patched || s.writesInput(w, v, io.In)
		if strings.HasSuffix(w.Path, "/") || f.nreads > 0 {
			s.addCopies(w, argv, use, v)
		}
	}
	return out
}

// addCopies records the paths of copies if the destination is a folder.
func (s *state) addCopies(w abstract.Target, argv []abstract.Value, use command.Use, v abstract.Value) {
	for _, t := range use.Touches {
		if (t.Kind == effect.ReadFile || t.Kind == effect.MoveFile) && !t.Word.Pattern {
			s.addFile(file{path: strings.TrimSuffix(w.Path, "/") + "/" + path.Base(t.Word.Text), pattern: w.Pattern, val: v})
		}
	}
}

// environmentDump returns the taint of the variables that env and printenv print.
func (s *state) environmentDump(argv []abstract.Value) abstract.Taint {
	for _, v := range argv[1:] {
		if !strings.HasPrefix(v.Text, "-") && !strings.Contains(v.Text, "=") {
			return s.environment(v.Text)[0].Taint
		}
	}
	return abstract.Dump
}

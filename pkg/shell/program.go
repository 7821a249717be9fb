package shell

import (
	"path"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// program runs a command that is not the shell's own.
func (s *state) program(argv []value, io streams) value {
	name := strings.ReplaceAll(argv[0].text, "\\", "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !systemFolder(name[:i+1]) {
		return s.localProgram(argv, io)
	}
	words := commandWords(argv)
	base := programName(name)
	switch {
	case base == "powershell" || base == "pwsh" || base == "cmd":
		s.execute(argv, base, effect.Unknown)
		return s.shellProgram(base, argv, io)
	case windowsProgram(base):
		return s.windowsTool(base, argv, io)
	}
	words[0].Text = base
	use := command.Interpret(words)
	class := use.Class
	if runsCode(use) {
		class = effect.Unknown
	}
	if class == effect.ReadOnly || class == effect.LocalWrite {
		if _, ok := s.lookupOnce(pathChanged); ok {
			class = effect.Unknown
		}
	}
	s.execute(argv, base, class)
	return s.apply(base, argv, use, io)
}

// commandWords returns words as package command takes them.
func commandWords(argv []value) []command.Word {
	words := make([]command.Word, len(argv))
	for i, v := range argv {
		words[i] = command.Word{Text: v.text, Pattern: v.pattern, Tree: v.tree, From: v.from}
	}
	return words
}

// runsCode reports whether a program runs code of a language that is only
// partly understood: what it does beyond the effects found is not known.
func runsCode(use command.Use) bool {
	if use.Stdin == command.Code {
		return true
	}
	for _, n := range use.Nested {
		switch n.Language {
		case "argv", "shell", "awk", "cmd", "powershell":
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

// systemFolder reports whether programs in a folder, given with its final
// slash, are the ones that their names say.
func systemFolder(dir string) bool {
	switch dir {
	case "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/opt/homebrew/bin/", "/opt/homebrew/sbin/",
		"/snap/bin/", "/usr/games/", "/usr/lib/git-core/", "/usr/libexec/", "/run/current-system/sw/bin/", "/usr/local/go/bin/", "/opt/local/bin/",
		"//bin/", "/usr/bin/../bin/", "/bin/./", "/usr/bin/./":
		return true
	}
	lower := strings.ToLower(dir)
	if len(lower) > 2 && lower[1] == ':' && (strings.Contains(lower, "/windows/system32/") || strings.Contains(lower, "/windows/syswow64/") || strings.HasSuffix(lower, "/git/bin/") || strings.HasSuffix(lower, "/git/usr/bin/")) {
		return true
	}
	if strings.Contains(dir, "/../") || strings.Contains(dir, "/./") || strings.Contains(dir, "//") {
		if clean := strings.TrimSuffix(path.Clean(dir), "/") + "/"; clean != dir {
			return systemFolder(clean) // once: a clean path stays as it is
		}
	}
	// What package managers install for a project or a user.
	for _, tail := range [...]string{"node_modules/.bin/", ".venv/bin/", "venv/bin/", "env/bin/", "vendor/bin/", ".cargo/bin/", "go/bin/", ".local/bin/", "miniconda3/bin/", "anaconda3/bin/", ".pyenv/shims/", ".rbenv/shims/", ".venv/scripts/", "venv/scripts/"} {
		if strings.HasSuffix(lower, tail) && !strings.HasPrefix(dir, "/tmp/") {
			return true
		}
	}
	return false
}

// apply records what a program's arguments make it do and returns its output.
func (s *state) apply(base string, argv []value, use command.Use, io streams) value {
	at := join(argv)
	for _, k := range use.Effects {
		s.once(effect.Effect{Kind: k, Program: base, From: at})
	}
	f := s.touch(base, argv, use, io)
	if len(s.files) > 0 {
		for _, v := range sources(base, argv[1:]) {
			p, pattern := s.place().Path(v.text, v.pattern)
			for _, src := range s.fileValues(p, pattern) {
				// What edits a file of the workspace leaves it one.
				if src.known() || src.taint&(network|decoded|socket) != 0 {
					s.runText("code", src, base, at, nil)
				}
			}
		}
	}
	if use.Class == effect.Unknown && !use.Known {
		for _, v := range argv[1:] {
			f.reads.taint |= s.suspect(v)
		}
		if len(use.Nested) == 0 {
			s.possibleCarrier(argv[1:], io)
		}
	}
	contacts := f.network || use.Class == effect.Network || use.Stdin == command.Upload
	if contacts {
		s.sends(base, argv, use, f, io)
	}
	nested := s.descend(base, argv, use, io, f)
	out := s.output(base, argv, use, io, f)
	if len(use.Nested) > 0 {
		// A carrier's output is that of the command it runs.
		if out.bare || out.known() && out.text == "" {
			t := out.taint
			out = nested
			out.taint |= t
		}
	}
	return out
}

// sources returns the arguments that may name source text which a program
// compiles or runs.
func sources(base string, args []value) []value {
	switch base {
	case "make", "gmake":
		for i, v := range args[:max(0, len(args)-1)] {
			if v.text == "-f" || v.text == "--file" || v.text == "--makefile" {
				return args[i+1 : i+2]
			}
		}
		return []value{lit("GNUmakefile"), lit("makefile"), lit("Makefile")}
	case "go", "java", "dart", "crystal", "v", "nim", "swift", "kotlin", "groovy", "rustc", "gcc", "cc", "clang", "g++", "tcc", "runghc", "scala", "csi", "dotnet", "zig":
		return args
	}
	return nil
}

// A flow is what a program's operands carry in.
type flow struct {
	reads   value // what the files that it reads hold
	nreads  int
	writes  []target
	network bool // it contacts a network peer
	connect bool // raw connection
	roots   []value
}

// touch records the effects on operands.
func (s *state) touch(base string, argv []value, use command.Use, io streams) flow {
	var f flow
	var b builder
	var sources []value
	for _, t := range use.Touches {
		if !s.step(1) {
			break
		}
		v := wordValue(t.Word, argv)
		switch t.Kind {
		case effect.HTTPRequest:
			f.network = true
			s.url(t.Kind, v)
		case effect.Connect, effect.Listen, effect.SendMessage:
			f.network, f.connect = true, true
			s.host(t.Kind, v)
		case effect.ReadFile, effect.ListDirectory:
			if t.Kind == effect.ListDirectory || t.Recursive {
				f.roots = append(f.roots, v)
			}
			content := s.readOperand(t, v)
			sources = append(sources, v)
			if t.Kind == effect.ReadFile && !credentialOption(argv, t.Word) {
				b.add(content)
				f.nreads++
			}
		case effect.WriteFile:
			if v.known() && (quietDevice(v.text) || strings.HasPrefix(v.text, "/dev/fd/")) {
				if strings.HasPrefix(v.text, "/dev/fd/") {
					f.writes = append(f.writes, target{path: v.text})
				}
				break
			}
			p, pattern := s.path(t.Kind, v, t.Recursive)
			f.writes = append(f.writes, target{path: p, pattern: pattern})
		case effect.ChangePermissions:
			s.path(t.Kind, v, t.Recursive)
		case "":
		default:
			s.path(t.Kind, v, t.Recursive)
		}
	}
	f.reads = b.value()
	s.linked(base, sources, f.writes)
	return f
}

func (s *state) readOperand(t command.Touch, v value) value {
	if t.Kind == effect.ListDirectory {
		s.path(t.Kind, v, t.Recursive)
		return value{}
	}
	if !t.Recursive {
		return s.readFile(t.Kind, v)
	}
	p, pattern := s.path(t.Kind, v, true)
	out := s.content(p, pattern, v)
	if p != "" && secretPath(p, pattern, true) {
		out.taint |= secret
		out.secrets = v.String()
	}
	return out
}

// wordValue finds the argument that a word of package command came from, for
// what it carries.
func wordValue(w command.Word, argv []value) value {
	for _, v := range argv {
		if v.text == w.Text && v.pattern == w.Pattern {
			return v
		}
	}
	out := value{text: w.Text, pattern: w.Pattern, tree: w.Tree, from: w.From}
	for _, v := range argv {
		if len(w.Text) > 0 && strings.Contains(v.text, w.Text) {
			out.taint, out.secrets, out.from = v.taint, v.secrets, v.from
			if v.pattern {
				out.show = w.Text
				if strings.HasSuffix(v.text, w.Text) && len(v.text) > len(w.Text) {
					if i := len(v.show) - 1; i > 0 {
						if _, after, ok := strings.Cut(v.show, "="); ok {
							out.show = after
						}
					}
				}
			}
			break
		}
	}
	if out.pattern {
		out.bare = strings.Trim(out.text, "*") == ""
		if out.show == "" {
			out.show = out.text
		}
	}
	return out
}

// credentialOption reports whether a word is the operand of an option that
// names what to log in with, which goes nowhere.
func credentialOption(argv []value, w command.Word) bool {
	for i, v := range argv {
		if v.from != w.From {
			continue
		}
		opt := ""
		if v.text != w.Text {
			opt, _, _ = strings.Cut(v.text, "=")
		} else if i > 0 {
			opt = argv[i-1].text
		}
		switch opt {
		case "-i", "--identity", "--identity-file", "--key", "--cert", "--cacert", "--capath", "-E", "--netrc-file", "--kubeconfig", "--private-key",
			"-K", "--config", "--env-file", "--password-file", "--ca-certificate", "--certificate", "--ca-file", "--cert-file", "--key-file", "--client-key", "--client-certificate", "--load-cookies", "-b", "--cookie", "-c", "--vault-password-file", "--creds-file", "--gcs-key-file", "-F", "--token-file", "--keyfile", "--credentials", "--authfile", "--userconfig", "--passphrase-file", "--var-file":
			return !(opt == "-F" && argv[0].text == "curl")
		}
	}
	return false
}

func (s *state) url(kind effect.Kind, v value) {
	e := effect.Effect{Kind: kind, From: v.from, Pattern: v.pattern}
	if v.pattern {
		e.URL = v.show
		_, rest, ok := strings.Cut(v.text, "://")
		if host, _, _ := strings.Cut(rest, "/"); ok && host != "" && !strings.ContainsAny(host, "*?[") {
			e.Host = effect.Host(host)
		}
	} else {
		e.URL, e.Host = effect.URL(v.text)
		if e.Host == "" {
			if e.URL == "" {
				e.URL = v.text
			}
			e.Pattern = true
		}
	}
	s.once(e)
}

func (s *state) host(kind effect.Kind, v value) {
	e := effect.Effect{Kind: kind, From: v.from, Pattern: v.pattern}
	if !v.pattern {
		text := v.text
		if i := strings.LastIndexByte(text, '@'); i >= 0 {
			text = text[i+1:]
		}
		e.Host = effect.Host(text)
	}
	s.once(e)
}

// sends records what a network program sends.
func (s *state) sends(base string, argv []value, use command.Use, f flow, io streams) {
	at := join(argv)
	if use.Stdin == command.Upload || namesStdin(argv) {
		s.upload(io.in, base, at)
		if io.in.taint&shellOut != 0 && rawConnection(base) {
			s.once(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "sends a shell's output to a network connection", From: at})
		}
	}
	if f.reads.taint&secret != 0 && use.Stdout != command.Input {
		s.upload(f.reads, base, at)
	}
	for i, v := range argv[1:] {
		if v.taint&(secret|dump) != 0 || v.taint&credential != 0 && !loginOption(argv, i+1) {
			s.upload(v, base, at)
		}
	}
}

// namesStdin reports whether an argument stands for standard input.
func namesStdin(argv []value) bool {
	for _, v := range argv[1:] {
		if v.text == "-" || strings.HasSuffix(v.text, "@-") || v.text == "/dev/stdin" {
			return true
		}
	}
	return false
}

// rawConnection reports whether a program only carries bytes.
func rawConnection(base string) bool {
	switch base {
	case "nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "socat", "telnet", "openssl", "websocat", "cryptcat", "sbd", "rlwrap", "pwncat", "busybox", "chisel":
		return true
	}
	return false
}

// loginOption reports whether an argument says who logs in: tokens are meant
// for that.
func loginOption(argv []value, i int) bool {
	for _, text := range [...]string{argv[i].text, argv[i-1].text} {
		name, _, _ := strings.Cut(text, "=")
		switch strings.ToLower(name) {
		case "-h", "--header", "-u", "--user", "--oauth2-bearer", "-p", "--password", "--token", "--api-key", "--apikey", "--username", "--auth", "-a",
			"--from-literal", "--env", "-e", "--build-arg", "--set", "--key", "--access-key", "--secret", "--secret-key", "--pass", "--var", "-var", "--password-stdin", "--auth-token", "--registry-token", "--otp":
			return true
		}
	}
	text := strings.ToLower(argv[i].text)
	return strings.HasPrefix(text, "authorization:") || strings.HasPrefix(text, "-h") || strings.HasPrefix(text, "-p") || strings.Contains(text, "://") && strings.Contains(text, "@") && strings.Index(text, "@") > strings.Index(text, "**")
}

// output returns what a program writes to standard output, and fills the files
// that it writes.
func (s *state) output(base string, argv []value, use command.Use, io streams, f flow) value {
	if setsUpShell(base, argv, use.Known || use.Class != effect.Unknown) {
		if _, ok := s.lookupOnce(pathChanged); !ok {
			return value{}
		}
	}
	out := value{}
	if v, ok := s.fold(base, argv, io.in, f); ok {
		out = v
	} else {
		t := taint(0)
		switch use.Stdout {
		case command.Download:
			t = network
			if rawConnection(base) {
				t |= socket
			}
		case command.Decoded:
			t = decoded | io.in.taint | f.reads.taint
		case command.Secret:
			t = secret
			if base == "env" || base == "printenv" || base == "set" {
				t = dump
			}
		case command.Input, command.Code, command.Upload:
			t = io.in.taint | f.reads.taint
		default:
			if !use.Known {
				t = io.in.taint | f.reads.taint
			}
		}
		if use.Stdin == command.Code {
			t |= shellOut
		}
		if (base == "env" || base == "printenv") && len(use.Nested) == 0 {
			t |= s.environmentDump(argv)
		}
		if clipboard(base) {
			t |= private
		}
		out = unknown("what "+base+" writes", t)
		if t&(secret|credential) != 0 {
			out.secrets = f.reads.secrets
			if out.secrets == "" {
				out.secrets = io.in.secrets
			}
		}
	}
	for _, w := range f.writes {
		v := out
		switch {
		case f.nreads > 0:
			v = f.reads
		case f.network:
			v = unknown("what "+base+" downloads", network)
		}
		if f.network && use.Stdout == command.Download {
			v.taint |= network
		}
		s.addFile(file{path: w.path, pattern: w.pattern, val: v})
		if strings.HasSuffix(w.path, "/") || f.nreads > 0 {
			s.addCopies(w, argv, use, v)
		}
	}
	return out
}

// addCopies records where copies lie when the destination is a folder.
func (s *state) addCopies(w target, argv []value, use command.Use, v value) {
	for _, t := range use.Touches {
		if (t.Kind == effect.ReadFile || t.Kind == effect.MoveFile) && !t.Word.Pattern {
			s.addFile(file{path: strings.TrimSuffix(w.path, "/") + "/" + path.Base(t.Word.Text), pattern: w.pattern, val: v})
		}
	}
}

// environmentDump says what env and printenv show.
func (s *state) environmentDump(argv []value) taint {
	for _, v := range argv[1:] {
		if !strings.HasPrefix(v.text, "-") && !strings.Contains(v.text, "=") {
			return s.environment(v.text)[0].taint
		}
	}
	return dump
}

func clipboard(base string) bool {
	switch base {
	case "pbpaste", "xclip", "xsel", "wl-paste", "screencapture", "scrot", "import", "xinput", "showkey":
		return true
	}
	return false
}

package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/manifest"
)

// putsPrograms records that an installer replaces shield, a program of its hook line, an agent host or a login
// program: by installing a program of that name, or programs of unknown names into a folder that contains one of
// them. Other installations have no effect here, because they replace no program.
func (s *state) putsPrograms(base string, argv []abstract.Value) {
	if s.remote > 0 {
		return
	}
	words := commandWords(argv)
	words[0].Text = base
	for _, in := range command.Installs(words) {
		folders := s.foldersOf(in)
		if len(folders) == 0 {
			continue
		}
		p := s.programsOf(in)
		for _, folder := range folders {
			s.putsInto(base, folder, p, join(argv))
		}
	}
}

// An installedPrograms lists the programs that an installation adds.
type installedPrograms struct {
	local, remote []string // names: from this machine or a URL; from a registry
	unknown       bool     // there are also programs of unknown names
}

// putsInto records what it means that an installation adds programs to a folder; "" is an unknown folder.
func (s *state) putsInto(base, folder string, p installedPrograms, at effect.Span) {
	if s.at.Inside(folder, false, false) || folder == "" && len(p.local)+len(p.remote) == 0 {
		return
	}
	where := " into " + abstract.Clip(folder)
	if folder == "" {
		where = ""
	}
	e := effect.Effect{Kind: effect.ChangeGuard, Program: base, Sure: effect.May, From: at}
	for i, name := range slices.Concat(p.local, p.remote) {
		name = programName(name)
		own := name == guardName || command.GuardLine[name]
		if !own && (i >= len(p.local) || !command.GuardHosts[name] && !command.LoginPrograms[name]) {
			continue
		}
		e.Sure = effect.If(folder != "" && guardProgram(name))
		e.Reason = base + " installs a program named " + name + where + ", which runs instead of the program with that name (PATH hijack)"
		s.emitOnce(e)
		return
	}
	if p.unknown && folder != "" {
		if holds := s.heldProgram(folder); holds != "" {
			e.Reason = base + " installs programs of unknown names" + where + ", which holds " + holds
			s.emitOnce(e)
		}
	}
}

// heldProgram returns the name of a program in a folder that shield depends on, "" if there is none.
func (s *state) heldProgram(folder string) string {
	if !s.canReadFiles() {
		return "" // the command runs on a different file system
	}
	for _, name := range guardPrograms() {
		if s.exists(path.Join(folder, name)) {
			return name
		}
	}
	return ""
}

// exists reports whether a path exists, or may exist because it cannot be read. It returns false if no files can be
// read at all (no Script).
func (s *state) exists(p string) bool {
	if s.at.Script == nil {
		return false
	}
	_, err := s.at.Script(p)
	return !errors.Is(err, fs.ErrNotExist)
}

// foldersOf returns the folders into which an installer puts programs; "" is an unknown folder.
func (s *state) foldersOf(in command.Installation) []string {
	var out []string
	add := func(v abstract.Value) {
		p, pattern := s.place().Path(v.Text, v.IsPattern)
		switch {
		case pattern:
			p = ""
		case s.at.Links != nil:
			p = s.at.Links(p)
		}
		for _, l := range s.links {
			if rest, ok := strings.CutPrefix(p, l.at); ok && (rest == "" || rest[0] == '/') {
				p = strings.TrimSuffix(l.to, "/") + rest
			}
		}
		out = append(out, p)
	}
	for _, w := range in.Folders {
		if in.Names != "go" || len(in.Bin) > 0 || strings.HasSuffix(w.Text, "/") || binFolder(path.Base(w.Text)) {
			add(abstract.Value{Text: w.Text, IsPattern: w.Pattern})
		}
	}
	if in.Names == "" && !in.Remote {
		// A configure step in the same text sets the folder.
		for i := range s.effects {
			for _, a := range s.effects[i].Args {
				for _, option := range [...]string{"--prefix=", "-DCMAKE_INSTALL_PREFIX=", "-DCMAKE_INSTALL_PREFIX:PATH=", "-Dprefix="} {
					if folder, ok := strings.CutPrefix(a, option); ok && s.effects[i].Kind == effect.Execute {
						add(abstract.Lit(strings.TrimSuffix(folder, "/") + "/bin"))
					}
				}
			}
		}
	}
	if len(in.Folders)+len(out) > 0 {
		return out
	}
	for _, candidate := range in.Bin {
		name, variable := strings.CutPrefix(candidate, "$")
		if !variable {
			add(abstract.Lit(candidate))
			return out
		}
		name, rest, below := strings.Cut(name, "/")
		if b, ok := s.lookup(name); ok && b.val.Text != "" {
			v := b.val
			if v.Text, _, _ = strings.Cut(v.Text, ":"); below {
				v.Text = strings.TrimSuffix(v.Text, "/") + "/" + rest
			}
			add(v)
			return out
		}
	}
	if in.Names == "npm" || in.Names == "python" {
		return []string{""}
	}
	return nil
}

// programsOf returns the programs that an installation adds.
func (s *state) programsOf(in command.Installation) (p installedPrograms) {
	for _, w := range in.Named {
		p.local = append(p.local, path.Base(w.Text))
	}
	if in.Names == "applets" {
		p.local, p.unknown = append(p.local, "timeout", "sh"), true
		return p
	}
	sources := in.Sources
	if len(sources) == 0 && len(in.Named) == 0 {
		if in.Names == "" || in.Names == "operand" || in.Names == "url" {
			p.unknown = true
			return p
		}
		sources = []command.Word{{Text: "."}}
	}
	for _, w := range sources[:min(len(sources), maxNames)] {
		switch {
		case w.Pattern:
			p.unknown = true
		case in.Names == "go":
			s.goBrings(w, &p)
		case fromPath(w.Text):
			s.addInstalledPrograms(in.Names, w, &p)
		case in.Remote:
			p.remote = append(p.remote, registryName(w.Text))
		case in.Names == "operand":
			p.local = append(p.local, path.Base(w.Text))
		case in.Names == "url":
			name := w.Text[strings.LastIndexAny(w.Text, "/#:")+1:]
			p.local = append(p.local, strings.TrimSuffix(name, path.Ext(name)))
		case in.Names == "npm", in.Names == "python", in.Names == "cargo":
			s.addInstalledPrograms(in.Names, w, &p)
		default:
			p.unknown = true
		}
	}
	return p
}

// fromPath reports whether an installed package is given by a path or URL, and not by a registry name.
func fromPath(text string) bool {
	for _, start := range [...]string{".", "/", "~", "file:", "git+", "git@", "http:", "https:", "ssh:", "hg+"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	for _, end := range [...]string{".whl", ".tar.gz", ".tgz", ".zip", ".gem", ".nupkg", ".rockspec", ".rock", "/"} {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return strings.Contains(text, "@file:") || strings.Contains(text, " @ ")
}

// registryName returns the name of a package without scope, version and extras.
func registryName(text string) string {
	if i := strings.IndexAny(text[min(len(text), 1):], "@=<>~![;"); i >= 0 {
		text = text[:i+1]
	}
	return strings.TrimSpace(path.Base(text))
}

// goBrings adds the programs of a Go package to p.
func (s *state) goBrings(w command.Word, p *installedPrograms) {
	names := s.goPrograms(w)
	if !fromPath(w.Text) && !strings.HasSuffix(w.Text, ".go") {
		p.remote = append(p.remote, names...)
		return
	}
	p.local = append(p.local, names...)
	folder, many := strings.CutSuffix(w.Text, "...")
	if !many {
		if name := path.Base(w.Text); len(names) == 0 && strings.Trim(name, ".~/") != "" {
			p.local = append(p.local, name)
		} else if len(names) == 0 {
			p.unknown = true
		}
		return
	}
	dir, pattern := s.place().Path(strings.TrimSuffix(folder, "/")+"/", false)
	if pattern {
		p.unknown = true
		return
	}
	p.local = append(p.local, s.goPrograms(command.Word{Text: dir})...)
	for _, name := range guardPrograms() {
		if s.canReadFiles() && (s.exists(path.Join(dir, name, "main.go")) || s.exists(path.Join(dir, "cmd", name))) {
			p.local = append(p.local, name)
		}
	}
}

// canReadFiles reports whether a file that does not exist is reported as such: false if the command runs on a
// different file system. Without a Script it returns true, but exists finds no file then.
func (s *state) canReadFiles() bool { return !s.exists("/.shield/no/such/file") }

// addInstalledPrograms adds to p the programs that a folder's manifest declares.
func (s *state) addInstalledPrograms(kind string, w command.Word, p *installedPrograms) {
	text := w.Text
	for _, cutAt := range [...]string{"@file:", "file://", "file:"} {
		if i := strings.Index(text, cutAt); i >= 0 {
			text = text[i+len(cutAt):]
		}
	}
	if i := strings.IndexByte(text, '['); i > 0 {
		text = text[:i]
	}
	if text == "" {
		text = "."
	}
	folder, pattern := s.place().Path(text, false)
	if pattern || strings.Contains(w.Text, "://") && !strings.HasPrefix(w.Text, "file:") {
		p.local, p.unknown = append(p.local, strings.TrimSuffix(path.Base(text), ".git")), true
		return
	}
	read := func(name string) string {
		text, _ := s.textOf(path.Join(folder, name))
		return text
	}
	var names []string
	known := false
	switch kind {
	case "npm":
		names, known = manifest.NPM(read("package.json"))
	case "python":
		names, known = manifest.Python(read("pyproject.toml"), read("setup.cfg"))
		known = known && read("setup.py") == ""
	case "cargo":
		names, known = manifest.Cargo(read("Cargo.toml"))
		for _, name := range guardPrograms() {
			if s.canReadFiles() && (s.exists(path.Join(folder, "src/bin", name+".rs")) || s.exists(path.Join(folder, "src/bin", name))) {
				names = append(names, name)
			}
		}
	}
	p.local, p.unknown = append(p.local, names...), p.unknown || !known
}

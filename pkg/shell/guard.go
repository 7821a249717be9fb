package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/manifest"
)

// guardName is the program that judges, and guardVariables begin the names of
// the variables that it reads.
const (
	guardName      = "shield"
	guardVariables = "SHIELD_"
)

// recordGuardChange records that the guard is weakened.
func (s *state) recordGuardChange(program, why string, at effect.Span) {
	s.emitOnce(effect.Effect{Kind: effect.ChangeGuard, Program: program, Reason: why, From: at})
}

// checkShadowing looks at a name that is given another meaning.
func (s *state) checkShadowing(name string, at effect.Span) {
	if programName(name) == guardName {
		s.recordGuardChange(name, "replaces shield's program", at)
	}
}

// found is what a shell says where a program is: its name stands for the path.
// Of shield the path counts, which is some folder's.
func found(name abstract.Value) abstract.Value {
	if !name.Known() || name.Text != guardName {
		return name
	}
	v := abstract.Value{Text: "/**/" + guardName, Show: "$(command -v " + guardName + ")", IsPattern: true, From: name.From}
	return v.Of(abstract.FromCommand)
}

// runsGuard records that shield is run by its path, whatever that is, if its words do more
// than ask for help: the name is that of the file, of what a link leads to, or what the path
// ends in where its folder is not known.
func (s *state) runsGuard(argv []abstract.Value) {
	name := argv[0].Text
	p, pattern := s.place().Path(name, argv[0].IsPattern)
	if !pattern && s.at.Links != nil {
		p = s.at.Links(p)
	}
	if programName(strings.ReplaceAll(name, `\`, "/")) == guardName || p != "" && programName(p) == guardName {
		s.guardWords(argv)
	}
}

// guardWords records what words do that follow shield's name.
func (s *state) guardWords(argv []abstract.Value) {
	words := commandWords(argv)
	words[0].Text, words[0].Pattern = guardName, false
	if use := command.Interpret(words); slices.Contains(use.Effects, effect.ChangeGuard) {
		s.recordGuardChange(guardName, guardName+" "+use.Why, join(argv))
	}
}

// compilesGuard records that a program is run from its source which is shield's.
func (s *state) compilesGuard(argv []abstract.Value, use command.Use) {
	for _, w := range use.Builds {
		i := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.From == w.From && strings.HasSuffix(w.Text, v.Text) })
		run := i > 0 && slices.ContainsFunc(argv[:i], func(v abstract.Value) bool { return v.Text == "run" })
		if run && slices.Contains(s.goPrograms(w), guardName) {
			s.guardWords(argv[i:])
		}
	}
}

// goPrograms returns the names that the program of a Go package may have: its path says
// one, or for a folder the module that it is in. It returns none if that is not known.
func (s *state) goPrograms(w command.Word) []string {
	name, _, _ := strings.Cut(w.Text, "@")
	if w.Pattern || strings.HasSuffix(name, "...") {
		return nil
	}
	var names []string
	switch {
	case strings.HasSuffix(name, ".go"):
		names = append(names, strings.TrimSuffix(path.Base(name), ".go"))
		name = "./" + path.Dir(name)
	case name == "" || !strings.ContainsAny(name[:1], "./~"):
		return []string{manifest.GoName(name)}
	}
	folder, pattern := s.place().Path(name, false)
	if pattern {
		return nil
	}
	for dir, n := folder, 0; n < maxAbove; dir, n = path.Dir(dir), n+1 {
		if text, ok := s.textOf(path.Join(dir, "go.mod")); ok {
			if module := manifest.GoModule(text); module != "" {
				return append(names, manifest.GoName(path.Join(module, strings.TrimPrefix(folder, dir))))
			}
			return names
		}
		if dir == path.Dir(dir) {
			break
		}
	}
	return names
}

// textOf returns what a file holds, as the text itself wrote it or as it lies on disk.
func (s *state) textOf(file string) (text string, ok bool) {
	if vals := s.fileValues(file, false); len(vals) > 0 {
		return vals[0].Text, vals[0].Known()
	}
	if s.at.Script == nil {
		return "", false
	}
	data, err := s.at.Script(file)
	return string(data), err == nil
}

// recordShieldRename records that shield's program gets another name, under which no one would know it.
func (s *state) recordShieldRename(base string, sources []abstract.Value, writes []abstract.Target, at effect.Span) {
	for _, v := range sources {
		p, _ := s.place().Path(v.Text, v.IsPattern)
		if programName(p) != guardName || !binFolder(path.Base(path.Dir(p))) || s.place().Inside(p, v.IsPattern, false) {
			continue
		}
		for _, w := range writes {
			if name := path.Base(w.Path); programName(name) != guardName && !binFolder(name) {
				s.recordGuardChange(base, "renames shield's program", at)
				return
			}
		}
	}
}

// binFolder reports whether the last name of a folder, which may be a pattern, is one that
// folders of programs have.
func binFolder(name string) bool { return name == "bin" || name == "sbin" || name == "**" }

// recordShieldStop records that shield's own process or service is stopped, or the slice, scope or
// service in which systemd runs what a person started.
func (s *state) recordShieldStop(base string, argv []abstract.Value, use command.Use) {
	if !slices.Contains(use.Effects, effect.StopProcess) && !slices.Contains(use.Effects, effect.ChangeSystem) {
		return
	}
	for _, v := range argv[1:] {
		text := strings.ToLower(v.String())
		for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t$()`\"'/=[]^:.,", c) }) {
			if word == guardName || word == guardName+"d" {
				s.recordGuardChange(base, "stops shield", join(argv))
				return
			}
		}
		if base == "systemctl" && sessionUnit().MatchString(text) && slices.ContainsFunc(argv, func(v abstract.Value) bool { return unitStops[v.Text] }) {
			s.recordGuardChange(base, "stops the session of the agent's host", join(argv))
			return
		}
	}
}

// unitStops are the words of systemctl that stop what runs in a unit.
var unitStops = map[string]bool{"stop": true, "kill": true, "freeze": true, "restart": true, "try-restart": true, "clean": true}

// sessionUnit matches the units that hold what people start.
var sessionUnit = prefilter.Lazy(`^(?:(?:user|session|app|background|system|-)(?:[@-].*)?\.(?:slice|scope)|user@.*\.service)$`)

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

// guardName is the name of this program, and guardVariablePrefix the prefix of the environment variables that it reads.
const (
	guardName           = "shield"
	guardVariablePrefix = "SHIELD_"
)

// recordGuardChange records that shield is disabled or weakened.
func (s *state) recordGuardChange(program, why string, at effect.Span) {
	s.emitOnce(effect.Effect{Kind: effect.ChangeGuard, Program: program, Reason: why, Span: at})
}

// checkShadowing records an effect of kind [effect.ChangeGuard] if an alias, function or command
// hash entry replaces the program shield.
func (s *state) checkShadowing(name string, at effect.Span) {
	if programName(name) == guardName {
		s.recordGuardChange(name, "replaces shield's program", at)
	}
}

// whichOutput returns the output of command -v or which: the name, which runs the same program as the path. For shield
// it returns a path pattern, because paths of shield are checked.
func whichOutput(name abstract.Value) abstract.Value {
	if !name.Known() || name.Text != guardName {
		return name
	}
	v := abstract.Value{Text: "/**/" + guardName, Display: "$(command -v " + guardName + ")", IsPattern: true, From: name.From}
	return v.WithOrigin(abstract.FromCommand)
}

// recordGuardRun records the effects of running shield by a path. A path runs shield if the file
// name in it, or the file name of the symbolic link's target, is shield; the folder may be unknown.
func (s *state) recordGuardRun(argv []abstract.Value) {
	name := argv[0].Text
	p, pattern := s.place().Path(name, argv[0].IsPattern)
	if !pattern && s.startPlace.ResolveLinks != nil {
		p = s.startPlace.ResolveLinks(p)
	}
	if programName(strings.ReplaceAll(name, `\`, "/")) == guardName || p != "" && programName(p) == guardName {
		s.recordGuardArguments(argv)
	}
}

// recordGuardArguments records the effects of arguments for shield.
func (s *state) recordGuardArguments(argv []abstract.Value) {
	words := commandWords(argv)
	words[0].Text, words[0].Pattern = guardName, false
	if use := command.Interpret(words); slices.Contains(use.Effects, effect.ChangeGuard) {
		s.recordGuardChange(guardName, guardName+" "+use.EffectsDescription, wordsSpan(argv))
	}
}

// recordGuardRunFromSource records the effects of running shield from source, as in go run.
func (s *state) recordGuardRunFromSource(argv []abstract.Value, use command.Interpretation) {
	for _, w := range use.BuiltSources {
		i := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.From == w.Span && strings.HasSuffix(w.Text, v.Text) })
		run := i > 0 && slices.ContainsFunc(argv[:i], func(v abstract.Value) bool { return v.Text == "run" })
		if run && slices.Contains(s.goProgramNames(w), guardName) {
			s.recordGuardArguments(argv[i:])
		}
	}
}

// goProgramNames returns the names that the program of a Go package may have: taken from its path, or for a folder
// from its module. It returns none if they are unknown.
func (s *state) goProgramNames(w command.Word) []string {
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
	for dir, n := folder, 0; n < maxParentFolders; dir, n = path.Dir(dir), n+1 {
		if text, ok := s.fileText(path.Join(dir, "go.mod")); ok {
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

// fileText returns the content of a file: as the text wrote it, or as on disk. ok is false if it is unknown.
func (s *state) fileText(file string) (text string, ok bool) {
	if vals := s.fileValues(file, false); len(vals) > 0 {
		return vals[0].Text, vals[0].Known()
	}
	if s.startPlace.ReadScript == nil {
		return "", false
	}
	data, err := s.startPlace.ReadScript(file)
	return string(data), err == nil
}

// recordShieldRename records that shield's program is renamed, so that it is no longer found under its name.
func (s *state) recordShieldRename(base string, sources []abstract.Value, writes []abstract.Target, at effect.Span) {
	for _, v := range sources {
		p, _ := s.place().Path(v.Text, v.IsPattern)
		if programName(p) != guardName || !isBinFolder(path.Base(path.Dir(p))) || s.place().Inside(p, v.IsPattern, false) {
			continue
		}
		for _, w := range writes {
			if name := path.Base(w.Path); programName(name) != guardName && !isBinFolder(name) {
				s.recordGuardChange(base, "renames shield's program", at)
				return
			}
		}
	}
}

// isBinFolder reports whether the last name of a folder, which may be a pattern, can be that of a folder for
// programs.
func isBinFolder(name string) bool { return name == "bin" || name == "sbin" || name == "**" }

// recordShieldStop records that shield's process or service is stopped, or a systemd slice, scope or service of
// the user's session.
func (s *state) recordShieldStop(base string, argv []abstract.Value, use command.Interpretation) {
	if !slices.Contains(use.Effects, effect.StopProcess) && !slices.Contains(use.Effects, effect.ChangeSystem) {
		return
	}
	for _, v := range argv[1:] {
		text := strings.ToLower(v.String())
		for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t$()`\"'/=[]^:.,", c) }) {
			if word == guardName || word == guardName+"d" {
				s.recordGuardChange(base, "stops shield", wordsSpan(argv))
				return
			}
		}
		if base == "systemctl" && sessionUnitPattern().MatchString(text) && slices.ContainsFunc(argv, func(v abstract.Value) bool { return unitStopCommands[v.Text] }) {
			s.recordGuardChange(base, "stops the session of the agent's host", wordsSpan(argv))
			return
		}
	}
}

// unitStopCommands are the subcommands of systemctl that stop the processes of a unit.
var unitStopCommands = map[string]bool{"stop": true, "kill": true, "freeze": true, "restart": true, "try-restart": true, "clean": true}

// sessionUnitPattern matches the systemd units that contain a user's processes.
var sessionUnitPattern = prefilter.Lazy(`^(?:(?:user|session|app|background|system|-)(?:[@-].*)?\.(?:slice|scope)|user@.*\.service)$`)

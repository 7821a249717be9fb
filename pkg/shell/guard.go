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

// shieldProgramName is the name of this program, and shieldVariablePrefix the prefix of the environment variables that it reads.
const (
	shieldProgramName    = "shield"
	shieldVariablePrefix = "SHIELD_"
)

// recordShieldTampering records that shield is disabled or weakened.
func (s *analysisState) recordShieldTampering(program, why string, at effect.CommandTextSpan) {
	s.emitOnce(effect.Effect{Kind: effect.TamperWithShield, Program: program, Reason: why, Span: at})
}

// recordShieldShadowing records an effect of kind [effect.TamperWithShield] if an alias, function or command
// hash entry replaces the program shield.
func (s *analysisState) recordShieldShadowing(commandName string, at effect.CommandTextSpan) {
	if programName(commandName) == shieldProgramName {
		s.recordShieldTampering(commandName, "replaces shield's program", at)
	}
}

// computeWhichOutput returns the output of command -v or which for a program name. It returns the
// name itself, because the name and the path run the same program. For the name of shield it
// returns a pattern of paths, because commands with a path of shield are checked.
func computeWhichOutput(name abstract.Value) abstract.Value {
	if !name.IsLiteral() || name.Text != shieldProgramName {
		return name
	}
	v := abstract.Value{Text: "/**/" + shieldProgramName, Display: "$(command -v " + shieldProgramName + ")", IsGlobPattern: true, SourceSpan: name.SourceSpan}
	return v.WithOrigin(abstract.OriginCommandOutput)
}

// recordShieldRunByPath records the effects of running shield by a path. A path runs shield if the file
// name in it, or the file name of the symbolic link's target, is shield; the folder may be unknown.
func (s *analysisState) recordShieldRunByPath(argv []abstract.Value) {
	name := argv[0].Text
	p, pattern := s.workingFolderContext().CanonicalPath(name, argv[0].IsGlobPattern)
	if !pattern && s.initialPathContext.ResolveLinks != nil {
		p = s.initialPathContext.ResolveLinks(p)
	}
	if programName(strings.ReplaceAll(name, `\`, "/")) == shieldProgramName || p != "" && programName(p) == shieldProgramName {
		s.recordTamperingByShieldArguments(argv)
	}
}

// recordTamperingByShieldArguments records the effects of arguments for shield.
func (s *analysisState) recordTamperingByShieldArguments(argv []abstract.Value) {
	words := commandWords(argv)
	words[0].Text, words[0].IsGlobPattern = shieldProgramName, false
	if use := command.Interpret(words); slices.Contains(use.Effects, effect.TamperWithShield) {
		s.recordShieldTampering(shieldProgramName, shieldProgramName+" "+use.EffectsDescription, wordsSpan(argv))
	}
}

// recordShieldRunByGoRun records the effects of running shield from source, as in go run.
func (s *analysisState) recordShieldRunByGoRun(argv []abstract.Value, use command.Interpretation) {
	for _, w := range use.BuiltSourcePackagesOrFolders {
		i := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.SourceSpan == w.Span && strings.HasSuffix(w.Text, v.Text) })
		run := i > 0 && slices.ContainsFunc(argv[:i], func(v abstract.Value) bool { return v.Text == "run" })
		if run && slices.Contains(s.goProgramNames(w), shieldProgramName) {
			s.recordTamperingByShieldArguments(argv[i:])
		}
	}
}

// goProgramNames returns the names that the program of a Go package may have: taken from its path, or for a folder
// from its module. It returns none if they are unknown.
func (s *analysisState) goProgramNames(w command.Word) []string {
	name, _, _ := strings.Cut(w.Text, "@")
	if w.IsGlobPattern || strings.HasSuffix(name, "...") {
		return nil
	}
	var names []string
	switch {
	case strings.HasSuffix(name, ".go"):
		names = append(names, strings.TrimSuffix(path.Base(name), ".go"))
		name = "./" + path.Dir(name)
	case name == "" || !strings.ContainsAny(name[:1], "./~"):
		return []string{manifest.GoProgramName(name)}
	}
	folder, pattern := s.workingFolderContext().CanonicalPath(name, false)
	if pattern {
		return nil
	}
	for dir, n := folder, 0; n < maxParentFolders; dir, n = path.Dir(dir), n+1 {
		if text, ok := s.fileText(path.Join(dir, "go.mod")); ok {
			if module := manifest.GoModulePath(text); module != "" {
				return append(names, manifest.GoProgramName(path.Join(module, strings.TrimPrefix(folder, dir))))
			}
			return names
		}
		if dir == path.Dir(dir) {
			break
		}
	}
	return names
}

// fileText returns the content of a file: the content that the analysed command wrote to it, or else that on the
// disk. ok is false if the content is unknown.
func (s *analysisState) fileText(file string) (text string, ok bool) {
	if vals := s.writtenFileContents(file, false); len(vals) > 0 {
		return vals[0].Text, vals[0].IsLiteral()
	}
	if s.initialPathContext.ReadScript == nil {
		return "", false
	}
	data, err := s.initialPathContext.ReadScript(file)
	return string(data), err == nil
}

// recordShieldRename records that shield's program is renamed, so that it is no longer found under its name.
func (s *analysisState) recordShieldRename(base string, sources []abstract.Value, writes []abstract.OutputTarget, at effect.CommandTextSpan) {
	for _, v := range sources {
		p, _ := s.workingFolderContext().CanonicalPath(v.Text, v.IsGlobPattern)
		if programName(p) != shieldProgramName || !isBinFolder(path.Base(path.Dir(p))) || s.workingFolderContext().IsInsideRoots(p, v.IsGlobPattern, false) {
			continue
		}
		for _, w := range writes {
			if name := path.Base(w.Path); programName(name) != shieldProgramName && !isBinFolder(name) {
				s.recordShieldTampering(base, "renames shield's program", at)
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
func (s *analysisState) recordShieldStop(base string, argv []abstract.Value, use command.Interpretation) {
	if !slices.Contains(use.Effects, effect.StopProcess) && !slices.Contains(use.Effects, effect.ChangeSystem) {
		return
	}
	for _, v := range argv[1:] {
		text := strings.ToLower(v.String())
		for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t$()`\"'/=[]^:.,", c) }) {
			if word == shieldProgramName || word == shieldProgramName+"d" {
				s.recordShieldTampering(base, "stops shield", wordsSpan(argv))
				return
			}
		}
		if base == "systemctl" && sessionUnitPattern().MatchString(text) && slices.ContainsFunc(argv, func(v abstract.Value) bool { return unitStopCommands[v.Text] }) {
			s.recordShieldTampering(base, "stops the session of the agent's host", wordsSpan(argv))
			return
		}
	}
}

// unitStopCommands are the subcommands of systemctl that stop the processes of a unit.
var unitStopCommands = map[string]bool{"stop": true, "kill": true, "freeze": true, "restart": true, "try-restart": true, "clean": true}

// sessionUnitPattern matches the systemd units that contain a user's processes.
var sessionUnitPattern = prefilter.LazyRegexp(`^(?:(?:user|session|app|background|system|-)(?:[@-].*)?\.(?:slice|scope)|user@.*\.service)$`)

package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// isEnvFile reports whether a path is an environment file of a project (.env).
func isEnvFile(p string) bool {
	base := path.Base(p)
	return base == ".env" || strings.HasPrefix(base, ".env.")
}

// markUnprintedReads marks files that a program reads but does not print: workspace settings given in an option,
// settings of which only the names are printed, and the program's own login key.
func (s *state) markUnprintedReads(base string, argv []abstract.Value, use command.Interpretation, from int) {
	keys := printsOnlyKeys(base, argv)
	for i := from; i < len(s.effects); i++ {
		e := &s.effects[i]
		if e.Kind != effect.ReadFile || e.Pattern || e.Recursive {
			continue
		}
		at := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.From == e.Span })
		if isLoginKey(base, argv, e.Path) || at > 0 && isEnvFile(e.Path) && s.inWorkspace(e.Path) && (keys || isSettingsFileArgument(base, argv, at, use)) {
			e.Cause = effect.CauseValuesNotShown
		}
	}
}

// isLoginKey reports whether a file is the private key with which a program logs in, or that it manages. No other
// argument may have the same file name.
func isLoginKey(base string, argv []abstract.Value, file string) bool {
	named, key := 0, false
	for i, v := range argv[1:] {
		if path.Base(v.Text) == path.Base(file) {
			named++
			key = base == "ssh-keygen" || slices.Contains([]string{"ssh", "scp", "sftp"}, base) && argv[i].Text == "-i"
		}
	}
	return named == 1 && key
}

// isSettingsFileArgument reports whether the argument with a given index names a settings file that
// a program only loads for the project, as in docker compose --env-file.
func isSettingsFileArgument(base string, argv []abstract.Value, at int, use command.Interpretation) bool {
	option, _, ok := strings.Cut(argv[at].Text, "=")
	if !ok {
		option = argv[at-1].Text
	}
	if !command.SettingsOptions[option] {
		return false
	}
	for _, n := range use.Nested {
		if n.Language != "file" { // other code could print them
			return false
		}
	}
	composes := base != "docker" && base != "podman" || len(argv) > 1 && argv[1].Text == "compose"
	return composes && !slices.ContainsFunc(argv, func(v abstract.Value) bool { return !v.Known() || v.Text == "config" || v.Text == "convert" })
}

// printsOnlyKeys reports whether a program prints only the names of NAME=VALUE lines in a settings file.
func printsOnlyKeys(base string, argv []abstract.Value) bool {
	last := len(argv) - 1
	return last > 1 && argv[last].Known() && isEnvFile(argv[last].Text) && printsOnlyNames(base, argv[:last])
}

// printsOnlyNames reports whether a program's arguments make it print only the names of NAME=VALUE lines.
func printsOnlyNames(base string, argv []abstract.Value) bool {
	var words []string
	for _, v := range argv[1:] {
		if !v.Known() {
			return false
		}
		words = append(words, v.Text)
	}
	expr := keyListingPatterns[base]
	return expr != nil && expr().MatchString(strings.Join(words, "\x00"))
}

// keyListingPatterns match the arguments (NUL-separated, without the file) with which a program prints no values.
var keyListingPatterns = map[string]func() *regexp.Regexp{
	"cut":  prefilter.Lazy(`^(-d\x00?=\x00-f\x00?1|-f\x00?1\x00-d\x00?=|--delimiter==\x00--fields=1)$`),
	"sed":  prefilter.Lazy(`^(-i\x00(-[Er]\x00)?(-e\x00)?(s/[^/\n\\]*/[^/\n\\]*/|s\|[^|\n\\]*\|[^|\n\\]*\||s#[^#\n\\]*#[^#\n\\]*#)g?|(-[Er]\x00)?(s/=\.\*\$?/[^/&\\]*/|s\|=\.\*\$?\|[^|&\\]*\|)g?)$`),
	"awk":  prefilter.Lazy(`^-F\x00?=\x00(NF|/[^/]*/|!/[^/]*/)? *\{ *print \$1;? *\}$`),
	"grep": prefilter.Lazy(`^(-o|-oE|-Eo|-E\x00-o|-o\x00-E|-oP|-Po)\x00\^\(?(\[[A-Za-z0-9_-]+\]|\[\^=\]|\[\^#=\]|\\w)+[*+]?([A-Za-z0-9_\[\]-]*[*+])?\)?(=|\(\?==\))?$|^-[qcl]\x00\^?([A-Za-z_][A-Za-z0-9_]*=?|[.=]?)$`),
	"wc":   prefilter.Lazy(`^-[lcw]$`),
}

// markLoadedSettings marks the workspace's .env files that the shell has loaded in the effects from
// a given index. The parameter since is the shell's state before the load: each variable that
// differs from it stores the file that set it, for recordShownVariable.
func (s *state) markLoadedSettings(at int, since *Shell) {
	for i := at; i < len(s.effects); i++ {
		e := &s.effects[i]
		if e.Kind != effect.ReadFile || e.Pattern || !isEnvFile(e.Path) || !s.inWorkspace(e.Path) {
			continue
		}
		read := *e
		s.loadedSettings = append(slices.Clip(s.loadedSettings), read)
		for name, v := range s.vars.byName {
			if !v.equal(since.vars.get(name)) {
				v.settingsRead = &read
				s.Shell.setVariable(name, v)
			}
		}
		e.Cause = effect.CauseValuesNotShown
	}
}

// recordShownVariable records the use of a variable. If it may come from loaded settings, they count as printed.
func (s *state) recordShownVariable(name string) {
	if len(s.loadedSettings) == 0 {
		return
	}
	v, ok := s.vars.byName[name]
	if ok && v.settingsRead != nil {
		s.emitOnce(*v.settingsRead)
	}
	if !ok && s.environmentValue(name)[0].FullyUnknown {
		for _, read := range s.loadedSettings {
			s.emitOnce(read)
		}
	}
}

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

// markNonPrintingFileReads marks files that a program reads but does not print: workspace settings given in an option,
// settings of which only the names are printed, and the program's own login key.
func (s *analysisState) markNonPrintingFileReads(base string, argv []abstract.Value, use command.Interpretation, firstEffect int) {
	keys := printsOnlyDotenvNames(base, argv)
	for i := firstEffect; i < len(s.effects); i++ {
		e := &s.effects[i]
		if e.Kind != effect.ReadFile || e.PathIsPattern || e.Recursive {
			continue
		}
		at := slices.IndexFunc(argv, func(v abstract.Value) bool { return v.SourceSpan == e.Span })
		if isSSHPrivateKeyArgument(base, argv, e.Path) || at > 0 && isEnvFile(e.Path) && s.inWorkspace(e.Path) && (keys || isSettingsFileArgument(base, argv, at, use)) {
			e.Cause = effect.CauseUnprintedFileRead
		}
	}
}

// isSSHPrivateKeyArgument reports whether a file is the private key with which a program logs in,
// or which it manages. It returns false if several arguments have the same file name.
func isSSHPrivateKeyArgument(base string, argv []abstract.Value, file string) bool {
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
	for _, n := range use.NestedCommandsAndCode {
		if n.Language != "file" { // a command or code that the program runs could print the settings file
			return false
		}
	}
	composes := base != "docker" && base != "podman" || len(argv) > 1 && argv[1].Text == "compose"
	return composes && !slices.ContainsFunc(argv, func(v abstract.Value) bool { return !v.IsLiteral() || v.Text == "config" || v.Text == "convert" })
}

// printsOnlyDotenvNames reports whether a program prints only the names of NAME=VALUE lines in a settings file.
func printsOnlyDotenvNames(programBaseName string, argv []abstract.Value) bool {
	last := len(argv) - 1
	return last > 1 && argv[last].IsLiteral() && isEnvFile(argv[last].Text) && printsOnlyVariableNames(programBaseName, argv[:last])
}

// printsOnlyVariableNames reports whether a program's arguments make it print only the names of NAME=VALUE lines.
func printsOnlyVariableNames(base string, argv []abstract.Value) bool {
	var words []string
	for _, v := range argv[1:] {
		if !v.IsLiteral() {
			return false
		}
		words = append(words, v.Text)
	}
	expr := variableNamePrintingArgPatterns[base]
	return expr != nil && expr().MatchString(strings.Join(words, "\x00"))
}

// variableNamePrintingArgPatterns maps a program to a pattern of arguments with which it prints no values of
// NAME=VALUE lines. The pattern matches the arguments joined with NUL bytes, without the name of the file that
// the program reads.
var variableNamePrintingArgPatterns = map[string]func() *regexp.Regexp{
	"cut":  prefilter.LazyRegexp(`^(-d\x00?=\x00-f\x00?1|-f\x00?1\x00-d\x00?=|--delimiter==\x00--fields=1)$`),
	"sed":  prefilter.LazyRegexp(`^(-i\x00(-[Er]\x00)?(-e\x00)?(s/[^/\n\\]*/[^/\n\\]*/|s\|[^|\n\\]*\|[^|\n\\]*\||s#[^#\n\\]*#[^#\n\\]*#)g?|(-[Er]\x00)?(s/=\.\*\$?/[^/&\\]*/|s\|=\.\*\$?\|[^|&\\]*\|)g?)$`),
	"awk":  prefilter.LazyRegexp(`^-F\x00?=\x00(NF|/[^/]*/|!/[^/]*/)? *\{ *print \$1;? *\}$`),
	"grep": prefilter.LazyRegexp(`^(-o|-oE|-Eo|-E\x00-o|-o\x00-E|-oP|-Po)\x00\^\(?(\[[A-Za-z0-9_-]+\]|\[\^=\]|\[\^#=\]|\\w)+[*+]?([A-Za-z0-9_\[\]-]*[*+])?\)?(=|\(\?==\))?$|^-[qcl]\x00\^?([A-Za-z_][A-Za-z0-9_]*=?|[.=]?)$`),
	"wc":   prefilter.LazyRegexp(`^-[lcw]$`),
}

// recordSourcedDotenvVariables marks the reads of .env files in the workspace, among the effects from
// index firstEffect on, as reads that print nothing, because the shell only loaded the files.
// shellBeforeSourcing is the state of the shell before the load. Each variable that has changed since then
// stores the effect that read its file; recordShownVariable uses this effect.
func (s *analysisState) recordSourcedDotenvVariables(firstEffect int, shellBeforeSourcing *Shell) {
	for i := firstEffect; i < len(s.effects); i++ {
		e := &s.effects[i]
		if e.Kind != effect.ReadFile || e.PathIsPattern || !isEnvFile(e.Path) || !s.inWorkspace(e.Path) {
			continue
		}
		read := *e
		s.dotenvFileReadEffects = append(slices.Clip(s.dotenvFileReadEffects), read)
		for name, v := range s.vars.byName {
			if !v.equal(shellBeforeSourcing.vars.get(name)) {
				v.dotEnvFileReadEffect = &read
				s.Shell.setVariable(name, v)
			}
		}
		e.Cause = effect.CauseUnprintedFileRead
	}
}

// recordShownVariable records that the command uses the value of a variable, and so may show it. If the value
// may come from a .env file that the shell loaded, the content of this file counts as printed.
func (s *analysisState) recordShownVariable(name string) {
	if len(s.dotenvFileReadEffects) == 0 {
		return
	}
	v, ok := s.vars.byName[name]
	if ok && v.dotEnvFileReadEffect != nil {
		s.emitOnce(*v.dotEnvFileReadEffect)
	}
	if !ok && s.environmentValue(name)[0].FullyUnknown {
		for _, read := range s.dotenvFileReadEffects {
			s.emitOnce(read)
		}
	}
}

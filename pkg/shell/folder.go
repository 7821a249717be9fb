package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// programNameInUnknownFolder returns the name of a program whose folder is unknown because it is in a variable,
// as in $JAVA_HOME/bin/java. ok is false if the program is not listed and the folder is not a bin folder, or if
// the analysed text wrote to the path.
//
// If the command word is an unknown number, or a text with spaces that only zsh leaves unsplit, its display text
// is returned as the name: no program has this name.
func (s *analysisState) programNameInUnknownFolder(argv []abstract.Value) (base string, ok bool) {
	v := argv[0]
	if v.IsNumber() && !s.canNumberBeCommandName() || s.dialect.isReadAsZsh && !s.dialect.isKnown && hasInnerBlank(v.Text) {
		return v.String(), true
	}
	slash := strings.LastIndexByte(v.Text, '/')
	if slash < 0 || !hasOnlyEnvironmentUnknowns(v) || strings.ContainsAny(v.Text[slash+1:], `*?[\\`) {
		return "", false
	}
	base = programName(v.Text)
	words := commandWords(argv)
	words[0].Text, words[0].IsGlobPattern = base, false
	switch path.Base(v.Text[:slash]) {
	case "bin", "sbin", "Scripts":
	default:
		if use := command.Interpret(words); !use.Understood && use.Class == effect.UnknownClass {
			return "", false
		}
	}
	p, pattern := s.workingFolderContext().CanonicalPath(v.Text, true)
	return base, base != "" && len(s.writtenFileContents(p, pattern)) == 0
}

// hasInnerBlank reports whether a name begins with a word, without slashes and wildcards, and a space, as an
// unsplit variable does in zsh. No program has such a name.
func hasInnerBlank(name string) bool {
	first, _, blank := strings.Cut(name, " ")
	return blank && first != "" && !strings.ContainsAny(first, `/*?[{\\`)
}

// canNumberBeCommandName reports whether a number may be the name of a command: of an alias, a function, or a program in a
// changed $PATH. No system program has such a name.
func (s *analysisState) canNumberBeCommandName() bool {
	number := func(name string) bool { return name != "" && strings.Trim(name, "-0123456789") == "" }
	if s.mayCommandTextAssign(nonSystemPATHVariable) || slices.ContainsFunc(s.aliases, func(a alias) bool { return number(a.name) }) {
		return true
	}
	for name := range s.possibleFunctionsByName {
		if number(name) {
			return true
		}
	}
	return false
}

// runProgramInUnknownFolder runs a program whose folder is not known. Its name tells how it reads its arguments, but not that it
// is the real program.
func (s *analysisState) runProgramInUnknownFolder(base string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	words := commandWords(argv)
	words[0].Text, words[0].IsGlobPattern = base, false
	use := command.Interpret(words)
	s.recordExecuteEffect(argv, base, effect.UnknownClass, use.Harms...)
	if use.Class == effect.UnknownClass {
		s.recordPossibleUpload(abstract.Concat(append([]abstract.Value{io.Stdin}, argv[1:]...)...), base, wordsSpan(argv))
	}
	return s.recordProgramEffects(base, argv, use, io)
}

// onlyFoldersUnknown reports whether all unknown parts of a text are folders at the start of words, taken from the user's
// variables.
func onlyFoldersUnknown(v abstract.Value) bool {
	if !hasOnlyEnvironmentUnknowns(v) || v.FullyUnknown {
		return false
	}
	for word := range strings.FieldsSeq(v.Text) {
		rest, _ := strings.CutPrefix(word, "**/")
		if strings.Contains(rest, "*") {
			return false
		}
	}
	return true
}

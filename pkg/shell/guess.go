package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkCommandOfUnknownWrapper looks for a command among the arguments of an unknown program, which may be a wrapper such as
// "bundle exec CMD".
func (s *analysisState) walkCommandOfUnknownWrapper(words []abstract.Value, io abstract.Streams) {
	s.walkCommandValuedOptions(words)
	for i, v := range words {
		if i > 8 {
			return
		}
		if !v.IsLiteral() {
			continue
		}
		if strings.HasPrefix(v.Text, "-") && v.Text != "--" || strings.Contains(v.Text, "=") {
			continue
		}
		if v.Text == "--" {
			if i+1 < len(words) {
				s.resolveAndWalkArgv(words[i+1:], io)
			}
			return
		}
		name := programName(v.Text)
		if name == "exec" || name == "run" || name == "x" { // subcommands such as bundle exec and poetry run
			continue
		}
		if command.EverydayWords[name] {
			return
		}
		if strings.ContainsRune(v.Text, '/') && !isSystemFolder(v.Text[:strings.LastIndexByte(v.Text, '/')+1]) {
			continue
		}
		if _, ok := builtinWalker(name); ok && name != "eval" && name != "exec" && name != "command" {
			continue
		}
		if canInterpretAsProgram(words[i:], name) {
			mark := len(s.effects)
			s.resolveAndWalkArgv(words[i:], io)
			if i > 0 && strings.HasPrefix(words[i-1].Text, "-") { // the word may be the value of that option
				s.markEffectsPossible(mark)
			}
			return
		}
	}
}

// walkCommandValuedOptions walks commands in the options of an unknown program if the option's name suggests that it runs
// them: "--hooks.before='npm test'".
func (s *analysisState) walkCommandValuedOptions(words []abstract.Value) {
	for i, v := range words[:min(len(words), 32)] {
		name, text, attached := strings.Cut(v.Text, "=")
		if !v.IsLiteral() || !strings.HasPrefix(name, "-") || !isCommandValuedOption(name) {
			continue
		}
		if !attached && i+1 < len(words) && words[i+1].IsLiteral() {
			text = words[i+1].Text
		}
		if first, _, _ := strings.Cut(text, " "); isMultiWordCommandLine(text) && canInterpretAsProgram([]abstract.Value{{Text: first}}, first) {
			s.walkExecutedText("shell", abstract.Value{Text: text, Taint: v.Taint, SourceSpan: v.SourceSpan}, "an option", v.SourceSpan, nil)
		}
	}
}

// isCommandValuedOption reports whether an option's name suggests that its value is run as a command.
func isCommandValuedOption(name string) bool {
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if command.HookWords[word] {
			return true
		}
	}
	return false
}

// canInterpretAsProgram reports whether package command understands the arguments of a program, knows its class,
// or finds in them commands, code or operands with an effect, such as files or hosts.
func canInterpretAsProgram(argv []abstract.Value, replacementArgv0 string) bool {
	ws := commandWords(argv)
	ws[0].Text = replacementArgv0
	use := command.Interpret(ws)
	return use.Understood || use.Class != effect.UnknownClass || len(use.NestedCommandsAndCode) > 0 || len(use.OperandEffects) > 0
}

// unknownCodeCause returns why a value that is run as code is unknown. Unfilled template placeholders do not count as
// code.
func (s *analysisState) unknownCodeCause(v abstract.Value) effect.EffectCause {
	if s.hasReplacedTemplatePlaceholders {
		return v.CauseOfUnknownParts()
	}
	return v.CauseOfUnknownCode()
}

// unknownProgramNameCause returns why the name of a program or script is unknown. It replaces CauseCodeIsVariableValue
// by CauseVariableNotSetByCommand if a variable names a program by convention (EDITOR, PAGER, CC), or if no
// variable has an upper-case name: environment variables have upper-case names, and other variables
// that the text does not set are empty.
func (s *analysisState) unknownProgramNameCause(v abstract.Value) effect.EffectCause {
	cause := s.unknownCodeCause(v)
	if cause != effect.CauseCodeIsVariableValue {
		return cause
	}
	names := variableNamePattern().FindAllString(v.String(), 8)
	capital := func(name string) bool {
		return name == strings.ToUpper(name) && name != strings.ToLower(name) || name == abstract.UnknownPlaceholderVariable
	}
	if slices.ContainsFunc(names, capital) && !slices.ContainsFunc(names, variableNameImpliesProgram) {
		return cause
	}
	return effect.CauseVariableNotSetByCommand
}

var variableNamePattern = prefilter.LazyRegexp(`[A-Za-z_][A-Za-z_0-9]*`)

// variableNameImpliesProgram reports whether a variable's name tells which program it names.
func variableNameImpliesProgram(variableName string) bool {
	if len(knowledge.CodeLoadingGroupsOfVariable(variableName)) > 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.ToLower(variableName), "_") {
		part = strings.TrimRight(part, "0123456789")
		if part == "" || command.HookWords[part] {
			continue
		}
		usual := !command.EverydayWords[part] || command.Compilers[part] || len(command.CodeFileLoaders(part, nil)) > 0
		if usual && canInterpretAsProgram([]abstract.Value{{Text: part}}, part) {
			return true
		}
	}
	return false
}

// markEffectsPossible downgrades the effects from index firstEffect on from certain to possible.
func (s *analysisState) markEffectsPossible(firstEffect int) {
	for i := firstEffect; i < len(s.effects); i++ {
		if e := &s.effects[i]; e.Certainty == effect.Certain {
			e.Certainty = effect.Possible
		}
	}
}

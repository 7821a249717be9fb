package shell

import (
	"bytes"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/dialect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/cmdexe"
	"github.com/shieldcli/shield/pkg/shell/internal/pwsh"
	"github.com/shieldcli/shield/pkg/shell/internal/recipe"
	"github.com/shieldcli/shield/pkg/shell/internal/script"
)

// A codeWalker walks code of one language, with its arguments, and returns its output.
type codeWalker func(s *analysisState, language, text string, at effect.CommandTextSpan, args []abstract.Value) abstract.Value

// walkerOf returns the walker of a language; languages are named as in
// [command.NestedCommandOrCode].
func walkerOf(language string) codeWalker {
	switch language {
	case "shell", "":
		return (*analysisState).walkShellCode
	case "powershell":
		return (*analysisState).walkPowerShellCode
	case "encoded":
		return (*analysisState).walkPowerShellEncodedCommand
	case "cmd":
		return (*analysisState).walkCmdCode
	case "ipython":
		return (*analysisState).walkNotebookCell
	}
	if command.IsQueryLanguage(language) {
		return (*analysisState).walkQueryCode
	}
	return (*analysisState).walkScriptCode // python, perl, ruby, node, php, awk, applescript, lua, code
}

// walkCode walks code in the given language; the code is executed.
func (s *analysisState) walkCode(language, text string, at effect.CommandTextSpan, args []abstract.Value) abstract.Value {
	if !s.spendSteps(1 + len(text)/512) {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	if language != "shell" {
		s.recordShieldStopSignalsInCode(language, text, at)
		s.otherLanguageDepth++
		defer func() { s.otherLanguageDepth-- }()
	}
	if language == "code" {
		s.recordSuspiciousUnparsedCode(text, at)
	}
	return walkerOf(language)(s, language, text, at, args)
}

func (s *analysisState) walkShellCode(_, text string, at effect.CommandTextSpan, args []abstract.Value) abstract.Value {
	walk := func(text string) abstract.Value { return s.walkNestedShellText(text, at) }
	if args == nil { // eval and the like use the shell's own arguments
		return s.translateFishAndWalk(text, at, walk)
	}
	s.setPositional(args)
	return s.translateFishAndWalk(text, at, walk)
}

// fishEvalPattern matches fish code that runs the output of a command or the value of a variable.
var fishEvalPattern = prefilter.LazyRegexp(`\|\s*(?:(?:builtin|command)\s+)?(?:source|\.)(?:\s+-)?\s*(?:[;|&)\n]|$)|\b(?:eval|source)\s[^;\n|]*[($]|\bpsub\b`)

// translateFishAndWalk walks text in the syntax of the current shell: fish code is first translated to the syntax of POSIX
// shells.
func (s *analysisState) translateFishAndWalk(text string, at effect.CommandTextSpan, walk func(string) abstract.Value) abstract.Value {
	if !s.dialect.isFish {
		return walk(text)
	}
	s.dialect.isFish = false
	s.setVariableContent("IFS", variableContent{val: abstract.Lit("\n")}) // fish splits the output of commands at newlines
	other, ok := dialect.ConvertFishToPOSIX(text)
	if !ok {
		cause := effect.CauseUnparseableText
		if fishEvalPattern().MatchString(text) {
			cause = effect.CauseUnanalysedCode
		}
		s.emitUnknownEffect(cause, "shield cannot translate the fish code to the syntax of other shells; instead: write the command for sh", at)
		return walk(text)
	}
	return walk(other)
}

func (s *analysisState) walkPowerShellCode(_, text string, at effect.CommandTextSpan, _ []abstract.Value) abstract.Value {
	return s.walkWithFixedEffectSpan(at, func() abstract.Value { return s.interpretPowerShellText(text) })
}

func (s *analysisState) walkCmdCode(_, text string, at effect.CommandTextSpan, _ []abstract.Value) abstract.Value {
	return s.walkWithFixedEffectSpan(at, func() abstract.Value { return s.interpretCmdExeText(text) })
}

// walkPowerShellEncodedCommand walks the operand of PowerShell's -EncodedCommand.
func (s *analysisState) walkPowerShellEncodedCommand(_, text string, at effect.CommandTextSpan, _ []abstract.Value) abstract.Value {
	decoded, ok := decodePowerShellCommand(text)
	if !ok {
		s.emitUnknownEffect(effect.CauseUnanalysedCode, "PowerShell runs an encoded command that cannot be decoded", at)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	return s.walkExecutedText("powershell", abstract.Value{Text: decoded, Taint: abstract.TaintDecoded}, "powershell", at, nil)
}

func (s *analysisState) walkScriptCode(language, text string, at effect.CommandTextSpan, _ []abstract.Value) abstract.Value {
	if !s.enterNesting(at) {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	defer s.leaveNesting()
	mark := len(s.writtenFiles)
	out := script.Interpret(embeddedCodeContext{s}, language, text, at)
	for _, f := range s.writtenFiles[min(mark, len(s.writtenFiles)):] {
		if !f.content.IsLiteral() && !f.isPathPattern { // the content is unknown: record the code, with its string literals, as the content
			s.recordWrittenFileText(f.path, abstract.Lit(text), "", false)
		}
	}
	return out
}

// walkNotebookCell walks a notebook cell: Python with shell lines.
func (s *analysisState) walkNotebookCell(_, text string, at effect.CommandTextSpan, args []abstract.Value) abstract.Value {
	steps, whole := recipe.CodeBlocks("notebook", text, nil)
	if !whole {
		s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, "the notebook cell runs more code than shield reads", at)
	}
	out := abstract.UnknownOutput("ipython", 0)
	for _, step := range steps {
		out = s.walkCode(step.Language, step.Text, at, args)
	}
	return out
}

// walkQueryCode walks code that only one program reads, such as SQL.
func (s *analysisState) walkQueryCode(language, text string, at effect.CommandTextSpan, _ []abstract.Value) abstract.Value {
	if command.HasOnlyFileWriteEffects(language) {
		s.walkInNestedTextScope(func() {
			s.scriptFileNestingDepth = 0 // at a depth > 0 recordPatch records no content; a patch that a file holds must be recorded, too
			s.recordPatch(abstract.Lit(text))
		})
	}
	use, ok := command.InterpretQuery(language, command.Word{Text: text, Span: at})
	if !ok || !s.enterNesting(at) {
		s.unanalyzedTextCount++
		return abstract.Value{}
	}
	defer s.leaveNesting()
	if !use.Understood {
		s.recordSuspiciousUnparsedCode(text, at)
	}
	_, base, _ := strings.Cut(language, ":")
	return s.recordProgramEffects(base, []abstract.Value{{Text: base, SourceSpan: at}}, use, abstract.Streams{})
}

// interpretPowerShellText walks PowerShell text.
func (s *analysisState) interpretPowerShellText(text string) abstract.Value {
	return pwsh.Interpret(embeddedCodeContext{s}, text, s.span(0, len(text)))
}

// interpretCmdExeText walks text for cmd.exe.
func (s *analysisState) interpretCmdExeText(text string) abstract.Value {
	return cmdexe.Interpret(embeddedCodeContext{s}, text, s.span)
}

// walkWithFixedEffectSpan walks text whose offsets are not offsets in the command. All effects of the text get
// the same given span.
func (s *analysisState) walkWithFixedEffectSpan(at effect.CommandTextSpan, walk func() abstract.Value) abstract.Value {
	if !s.enterNesting(at) {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	defer s.leaveNesting()
	var out abstract.Value
	s.walkInNestedTextScope(func() {
		s.spanOfNestedText = &at
		out = walk()
	})
	return out
}

// decodePowerShellCommand decodes the operand of -EncodedCommand: UTF-16 in base64. ok is false if it is invalid.
func decodePowerShellCommand(text string) (string, bool) {
	raw, ok := decode.Base64(text)
	if !ok || len(raw) < 2 {
		return "", false
	}
	return decode.DecodeUTF16LE(raw), true
}

// scriptLanguage returns the language of a script, by its first line (#!), else by its name.
func scriptLanguage(p string, data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	if _, language := parseShebang(string(line)); language != "" {
		return language
	}
	return languageOrShell(command.FileLanguage(p))
}

func languageOrShell(language string) string {
	if language == "" {
		return "shell"
	}
	return language
}

package command

import (
	"strings"

	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/pkg/effect"
)

// queryLanguagePrefix is the prefix of languages that only one program reads; the rest is the program's name.
const queryLanguagePrefix = "query:"

// IsQueryLanguage reports whether the name of a language has the form "query:PROGRAM", which means that only
// this program reads the language.
func IsQueryLanguage(language string) bool { return hasPrefix(language, queryLanguagePrefix) }

// queryLanguageStdinRole returns the role of code in a language that only one program reads.
func queryLanguageStdinRole(language string) argRole {
	name, ok := strings.CutPrefix(language, queryLanguagePrefix)
	if g := lookupProgram(name); ok && g != nil {
		return g.stdinRole
	}
	return argRoleNone
}

// CanRunShellCommands reports whether code in a language that only one program reads, such as make rules,
// can contain shell commands. Unknown code in such a language can run anything.
func CanRunShellCommands(queryLanguage string) bool {
	role := queryLanguageStdinRole(queryLanguage)
	return role == argRoleMakeRules || role == argRoleExEditorCommands
}

// HasOnlyFileWriteEffects reports whether code in a language that only one program reads only
// changes files, as a patch does.
func HasOnlyFileWriteEffects(language string) bool {
	return queryLanguageStdinRole(language) == argRoleDiffText
}

// InterpretQuery returns the effect of code that a program reads from standard input or a file; language is as in [Interpretation].
func InterpretQuery(language string, text Word) (Interpretation, bool) {
	input := queryLanguageStdinRole(language)
	if input == argRoleNone {
		return Interpretation{}, false
	}
	name := language[len(queryLanguagePrefix):]
	g := lookupProgram(name)
	r := argParserPool.Get().(*argParser)
	defer r.returnToPool()
	r.args = []Word{{Text: name, Span: text.Span}}
	r.enterSyntax(g)
	r.result.Stdin = StreamPlainData
	r.applyRole(input, text, false)
	r.deriveRemoteServiceChange()
	r.result.Understood = r.result.WhyNotUnderstood == ""
	r.result.Class = r.programClassRank.programClass()
	return r.result, true
}

// applyProgramSpecificRole applies the role of an operand that only few programs have: code and files in a
// language that only one program reads, hosts and databases that the command works on, and plugins.
func (r *argParser) applyProgramSpecificRole(role argRole, w Word) {
	switch role {
	case argRoleSubcommandLines:
		r.applySubcommandsInInputLines(w)
	case argRoleTextToSearchForPatterns:
		r.setStdinIsNotCode()
		r.applyTextPatternActions(r.syntaxBySubcommandDepth[0].argTextPatterns, w)
	case argRoleQueryLanguageFile:
		r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: queryLanguagePrefix + r.programName(), Words: []Word{w}})
	case argRoleTargetHostOrDatabase:
		r.targetHostsAndDatabases = append(r.targetHostsAndDatabases, w)
	case argRoleHTTPMethod:
		r.setRequestMethod(w.Text)
	case argRolePluginSource:
		r.addPlugin(w)
	case argRoleUnsetVariable:
		if hasPrefix(w.Text, "SHIELD_") {
			r.addEffect(effect.TamperWithShield)
		}
	case argRoleReadFileOrRunStdin:
		if isStdinPath(w.Text) {
			r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
		} else {
			r.addOperandEffect(effect.ReadFile, w, false)
		}
	case argRoleDryRunMode:
		if w.Text == "client" || w.Text == "server" || w.Text == "true" {
			r.activeActionFlags |= actionFlagDryRun
		}
	case argRoleOperandListFile:
		r.addOperandEffect(effect.ReadFile, w, false)
		r.result.OperandListFiles = append(r.result.OperandListFiles, w)
	case argRoleMakeRules:
		r.addMakeRecipes(w)
	case argRolePatchFile:
		if w.IsGlobPattern || urlScheme(w.Text) != "" {
			r.addOperandEffect(effect.ReadFile, w, false)
			break
		}
		r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: queryLanguagePrefix + "patch", Words: []Word{w}})
	case argRoleSettingsPath:
		r.addOperandEffect(effect.ReadFile, w, false)
		r.result.NestedCommandsAndCode = append(r.result.NestedCommandsAndCode, NestedCommandOrCode{Language: "place", VariableHoldingCode: "-", Words: []Word{w}})
	case argRoleProxyOrServer:
		r.addContactedProxyOrServer(w)
	case argRoleRequestBody:
		if r.requestMethod == "" {
			r.requestMethod = "POST"
		}
	case argRoleDiffText:
		r.setStdinIsNotCode()
		r.addPatchedFiles(w)
	case argRoleControlSocket:
		r.addOperandEffect(effect.ReadFile, w, false)
		r.setControlledLocalService(serviceAtSocket(w.Text))
	}
}

// setStdinIsNotCode records that the program's code comes from an argument and not from standard input.
func (r *argParser) setStdinIsNotCode() {
	if r.stdinIsCode {
		r.result.Stdin, r.stdinIsCode = StreamPlainData, false
	}
}

// maxQueryInputLines is the maximum number of lines of a text that are analysed.
const maxQueryInputLines = 4096

// addMakeRecipes records the lines of a makefile that a shell runs: those that are indented.
func (r *argParser) addMakeRecipes(w Word) {
	if w.IsGlobPattern {
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
		return
	}
	var code strings.Builder
	for line := range strings.Lines(w.Text) {
		if line[0] == '\t' || line[0] == ' ' {
			code.WriteString(strings.TrimLeft(line, " \t@-+"))
		}
	}
	if code.Len() > 0 {
		w.Text = code.String()
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
	}
}

// applySubcommandsInInputLines handles input lines that are subcommands of the program.
func (r *argParser) applySubcommandsInInputLines(inputText Word) {
	r.setStdinIsNotCode()
	n := 0
	for line := range strings.Lines(inputText.Text) {
		if n++; n > maxQueryInputLines {
			r.setNotUnderstood("the input of %s is too long", r.args[0].Text)
			r.raiseProgramClass(unknownProgramClassRank)
			return
		}
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		g := findEntry(r.syntaxBySubcommandDepth[0].subcommands, strings.ToLower(first))
		if g == nil && first != "" && first[0] != '#' {
			g = findEntry(r.syntaxBySubcommandDepth[0].subcommands, "*")
		}
		if g != nil && g.unconditionalAction != nil {
			r.applyAction(g.unconditionalAction)
			if g.unconditionalAction.actionFlags&actionFlagUnjudgeable != 0 {
				r.setNotUnderstood("cannot judge what %s does", first)
			}
		}
	}
}

// addPatchedFiles records the files that a patch changes.
func (r *argParser) addPatchedFiles(w Word) {
	for i, f := range patch.FindPatchedFiles(w.Text) {
		kind := effect.WriteFile
		if f.Op == patch.Delete {
			kind = effect.DeleteFile
		}
		if i == maxQueryInputLines {
			return // the whole folder is already recorded as written
		}
		w.Text = f.Path
		r.addOperandEffect(kind, w, false)
	}
}

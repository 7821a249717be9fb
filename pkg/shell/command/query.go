package command

import (
	"strings"

	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/pkg/effect"
)

// queryPrefix is the prefix of languages that only one program reads; the rest is the program's name.
const queryPrefix = "query:"

// IsQuery reports whether only one program reads the language.
func IsQuery(language string) bool { return hasPrefix(language, queryPrefix) }

// inputRole returns the role of code in a language that only one program reads.
func inputRole(language string) role {
	name, ok := strings.CutPrefix(language, queryPrefix)
	if g := lookupProgram(name); ok && g != nil {
		return g.input
	}
	return roleNone
}

// RunsCommands reports whether code of a one-program language contains shell commands, so that unknown code may
// run anything.
func RunsCommands(language string) bool {
	role := inputRole(language)
	return role == roleRecipes || role == roleEx
}

// OnlyWritesFiles reports whether code of a one-program language only changes the content of files, as a patch does.
func OnlyWritesFiles(language string) bool { return inputRole(language) == roleDiff }

// InterpretQuery returns the effect of code that a program reads from standard input or a file; language is as in [Interpretation].
func InterpretQuery(language string, text Word) (Interpretation, bool) {
	input := inputRole(language)
	if input == roleNone {
		return Interpretation{}, false
	}
	name := language[len(queryPrefix):]
	g := lookupProgram(name)
	r := argParserPool.Get().(*argParser)
	defer r.returnToPool()
	r.args = []Word{{Text: name, Span: text.Span}}
	r.enterSyntax(g)
	r.result.Stdin = Data
	r.applyRole(input, text, false)
	r.setRemoteChange()
	r.result.Understood = r.result.WhyNotUnderstood == ""
	r.result.Class = r.class.class()
	return r.result, true
}

// applyInputRole applies the role of an operand that only few programs have: code and files in a
// language that only one program reads, hosts and databases that the command works on, and plugins.
func (r *argParser) applyInputRole(role role, w Word) {
	switch role {
	case roleLines:
		r.applyInputLines(w)
	case roleTexts:
		r.setStdinIsData()
		r.applyMatchingTexts(r.levels[0].texts, w)
	case roleScriptInput:
		r.addNestedCode(Nested{Language: "file", FileLanguage: queryPrefix + r.programName(), Words: []Word{w}})
	case rolePlace:
		r.targets = append(r.targets, w)
	case roleMethod:
		r.setRequestMethod(w.Text)
	case rolePlugin:
		r.addPlugin(w)
	case roleUnset:
		if hasPrefix(w.Text, "SHIELD_") {
			r.addEffect(effect.ChangeGuard)
		}
	case roleReadInput:
		if isStdinPath(w.Text) {
			r.result.Stdin, r.stdinIsCode = Code, false
		} else {
			r.addOperandEffect(effect.ReadFile, w, false)
		}
	case roleDryRun:
		if w.Text == "client" || w.Text == "server" || w.Text == "true" {
			r.flags |= dry
		}
	case roleNames:
		r.addOperandEffect(effect.ReadFile, w, false)
		r.result.OperandFiles = append(r.result.OperandFiles, w)
	case roleRecipes:
		r.addMakeRecipes(w)
	case rolePatch:
		if w.Pattern || urlScheme(w.Text) != "" {
			r.addOperandEffect(effect.ReadFile, w, false)
			break
		}
		r.addNestedCode(Nested{Language: "file", FileLanguage: queryPrefix + "patch", Words: []Word{w}})
	case roleSettings:
		r.addOperandEffect(effect.ReadFile, w, false)
		r.result.Nested = append(r.result.Nested, Nested{Language: "place", Variable: "-", Words: []Word{w}})
	case roleServer:
		r.addServer(w)
	case roleBody:
		if r.requestMethod == "" {
			r.requestMethod = "POST"
		}
	case roleDiff:
		r.setStdinIsData()
		r.addPatchedFiles(w)
	case roleControl:
		r.addOperandEffect(effect.ReadFile, w, false)
		r.setControlledService(serviceAtSocket(w.Text))
	}
}

// setStdinIsData records that the program's code comes from an argument and not from standard input.
func (r *argParser) setStdinIsData() {
	if r.stdinIsCode {
		r.result.Stdin, r.stdinIsCode = Data, false
	}
}

// maxTextLines is the maximum number of lines of a text that are analysed.
const maxTextLines = 4096

// addMakeRecipes records the lines of a makefile that a shell runs: those that are indented.
func (r *argParser) addMakeRecipes(w Word) {
	if w.Pattern {
		r.addNestedCode(Nested{Language: "shell", Words: []Word{w}})
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
		r.addNestedCode(Nested{Language: "shell", Words: []Word{w}})
	}
}

// applyInputLines handles input lines that are subcommands of the program.
func (r *argParser) applyInputLines(w Word) {
	r.setStdinIsData()
	n := 0
	for line := range strings.Lines(w.Text) {
		if n++; n > maxTextLines {
			r.setNotUnderstood("the input of %s is too long", r.args[0].Text)
			r.raiseClass(anything)
			return
		}
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		g := findEntry(r.levels[0].subs, strings.ToLower(first))
		if g == nil && first != "" && first[0] != '#' {
			g = findEntry(r.levels[0].subs, "*")
		}
		if g != nil && g.base != nil {
			r.applyAction(g.base)
			if g.base.flags&reject != 0 {
				r.setNotUnderstood("cannot judge what %s does", first)
			}
		}
	}
}

// addPatchedFiles records the files that a patch changes.
func (r *argParser) addPatchedFiles(w Word) {
	for i, f := range patch.Files(w.Text) {
		kind := effect.WriteFile
		if f.Op == patch.Delete {
			kind = effect.DeleteFile
		}
		if i == maxTextLines {
			return // the whole folder is already recorded as written
		}
		w.Text = f.Path
		r.addOperandEffect(kind, w, false)
	}
}

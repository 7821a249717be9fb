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

// inputOf returns the role of code in a language that only one program reads.
func inputOf(language string) role {
	name, ok := strings.CutPrefix(language, queryPrefix)
	if g := lookup(name); ok && g != nil {
		return g.input
	}
	return roleNone
}

// RunsCommands reports whether code of a one-program language contains shell commands, so that unknown code may
// run anything.
func RunsCommands(language string) bool {
	role := inputOf(language)
	return role == roleRecipes || role == roleEx
}

// OnlyWrites reports whether code of a one-program language only changes the content of files, as a patch does.
func OnlyWrites(language string) bool { return inputOf(language) == roleDiff }

// Query returns the effect of code that a program reads from standard input or a file; language is as in [Use].
func Query(language string, text Word) (Use, bool) {
	input := inputOf(language)
	if input == roleNone {
		return Use{}, false
	}
	name := language[len(queryPrefix):]
	g := lookup(name)
	r := readers.Get().(*reader)
	defer r.release()
	r.args = []Word{{Text: name, From: text.From}}
	r.enter(g)
	r.use.Stdin = Data
	r.apply(input, text, false)
	r.elsewhere()
	r.use.Known = r.use.Reason == ""
	r.use.Class = r.class.class()
	return r.use, true
}

// applyInput applies roles of code and files that only one program reads, and of words that name the target of the
// work or add to the program.
func (r *reader) applyInput(role role, w Word) {
	switch role {
	case roleLines:
		r.lines(w)
	case roleTexts:
		r.stdinRead()
		r.matchTexts(r.levels[0].texts, w)
	case roleScriptInput:
		r.code(Nested{Language: "file", Of: queryPrefix + r.name(), Words: []Word{w}})
	case rolePlace:
		r.places = append(r.places, w)
	case roleMethod:
		r.method(w.Text)
	case rolePlugin:
		r.plugin(w)
	case roleUnset:
		if hasPrefix(w.Text, "SHIELD_") {
			r.effect(effect.ChangeGuard)
		}
	case roleReadInput:
		if isStdin(w.Text) {
			r.use.Stdin, r.codeRead = Code, false
		} else {
			r.touch(effect.ReadFile, w, false)
		}
	case roleDryRun:
		if w.Text == "client" || w.Text == "server" || w.Text == "true" {
			r.flags |= dry
		}
	case roleNames:
		r.touch(effect.ReadFile, w, false)
		r.use.Lists = append(r.use.Lists, w)
	case roleRecipes:
		r.recipes(w)
	case rolePatch:
		if w.Pattern || scheme(w.Text) != "" {
			r.touch(effect.ReadFile, w, false)
			break
		}
		r.code(Nested{Language: "file", Of: queryPrefix + "patch", Words: []Word{w}})
	case roleSettings:
		r.touch(effect.ReadFile, w, false)
		r.use.Nested = append(r.use.Nested, Nested{Language: "place", Variable: "-", Words: []Word{w}})
	case roleServer:
		r.server(w)
	case roleBody:
		if r.sends == "" {
			r.sends = "POST"
		}
	case roleDiff:
		r.stdinRead()
		r.diff(w)
	case roleControl:
		r.touch(effect.ReadFile, w, false)
		r.controls(controlSocket(w.Text))
	}
}

// stdinRead records that the program's code comes from an argument and not from standard input.
func (r *reader) stdinRead() {
	if r.codeRead {
		r.use.Stdin, r.codeRead = Data, false
	}
}

// maxLines is the maximum number of lines of a text that are analysed.
const maxLines = 4096

// recipes records the lines of a makefile that a shell runs: those that are indented.
func (r *reader) recipes(w Word) {
	if w.Pattern {
		r.code(Nested{Language: "shell", Words: []Word{w}})
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
		r.code(Nested{Language: "shell", Words: []Word{w}})
	}
}

// lines handles input lines that are subcommands of the program.
func (r *reader) lines(w Word) {
	r.stdinRead()
	n := 0
	for line := range strings.Lines(w.Text) {
		if n++; n > maxLines {
			r.doubt("the input of %s is too long", r.args[0].Text)
			r.raiseClass(anything)
			return
		}
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		g := find(r.levels[0].subs, strings.ToLower(first))
		if g == nil && first != "" && first[0] != '#' {
			g = find(r.levels[0].subs, "*")
		}
		if g != nil && g.base != nil {
			r.act(g.base)
			if g.base.flags&reject != 0 {
				r.doubt("cannot judge what %s does", first)
			}
		}
	}
}

// diff records the files that a patch changes.
func (r *reader) diff(w Word) {
	for i, f := range patch.Files(w.Text) {
		kind := effect.WriteFile
		if f.Op == patch.Delete {
			kind = effect.DeleteFile
		}
		if i == maxLines {
			return // the whole folder is already recorded as written
		}
		w.Text = f.Path
		r.touch(kind, w, false)
	}
}

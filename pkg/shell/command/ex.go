package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// applyExEditorCommands records the effects of a command line of vi, vim or ex. It knows only
// common editor commands.
func (r *argParser) applyExEditorCommands(w Word) {
	if w.IsGlobPattern || len(w.Text) > maxSedExOrSQLTextBytes {
		r.setNotUnderstood("unknown editor command %s", w.Text)
		return
	}
	if strings.Contains(w.Text, "\n") {
		r.setStdinIsNotCode()
		for line := range strings.Lines(w.Text) {
			w.Text = strings.TrimRight(line, "\n")
			r.applyExEditorCommands(w)
		}
		return
	}
	rest := w.Text
	for rest != "" {
		text := strings.TrimLeft(rest, ": \t%$.,0123456789")
		if i := strings.IndexByte(text, '!'); i >= 0 && isExShellEscape(text[:i]) {
			// The rest of the text is one command, including bars.
			w.Text = strings.TrimLeft(text[i+1:], " ")
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
			if program, _, _ := strings.Cut(w.Text, " "); hasPrefix(text, "w") && lookupProgram(program) != nil && lookupProgram(program).language != "" {
				r.addEffect(effect.UnknownEffect) // ":w !python" runs the edited text, which is unknown, as code
			}
			return
		}
		var command string
		command, rest, _ = strings.Cut(text, "|")
		r.applyExCommand(w, strings.TrimSpace(command))
	}
}

// isExShellEscape reports whether a command that ends in "!" runs a program: :!cmd, :r !cmd, :w !cmd, but not :q! and
// :wq!.
func isExShellEscape(commandBeforeBang string) bool {
	switch commandBeforeBang {
	case "", "e ", "E ", "r ", "read ", "w ", "write ", "r", "read", "silent ", "sil ", "silent! ":
		return true
	}
	return false
}

func (r *argParser) applyExCommand(w Word, text string) {
	name, operand, _ := strings.Cut(text, " ")
	w.Text = strings.TrimSpace(operand)
	switch strings.TrimSuffix(name, "!") {
	case "", "q", "qa", "quit", "qall", "set", "syntax", "syn", "number", "nu", "colorscheme", "norm", "normal", "filetype", "noh", "g", "s":
		if name == "normal" || name == "norm" || name == "g" || name == "set" && strings.ContainsAny(operand, "=") {
			r.setNotUnderstood("editor command %s can run code", text)
		}
	case "w", "wq", "wqa", "wa", "x", "xa", "write", "saveas", "sav":
		r.raiseProgramClass(localWriteProgramClassRank)
		r.addOperandEffect(effect.WriteFile, w, false)
	case "e", "edit", "r", "read", "view", "sp", "split", "vs", "vsplit", "tabe", "tabedit":
		r.addOperandEffect(effect.ReadFile, w, false)
	case "so", "source", "luafile", "pyfile", "py3file":
		r.addNestedCode(NestedCommandOrCode{Language: "file", Words: []Word{w}})
	case "py", "py3", "python", "python3", "pythonx", "pyx":
		r.addNestedCode(NestedCommandOrCode{Language: "python", Words: []Word{w}})
	case "lua":
		r.addNestedCode(NestedCommandOrCode{Language: "lua", Words: []Word{w}})
	case "perl":
		r.addNestedCode(NestedCommandOrCode{Language: "perl", Words: []Word{w}})
	case "ruby":
		r.addNestedCode(NestedCommandOrCode{Language: "ruby", Words: []Word{w}})
	case "term", "terminal", "sh", "shell":
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
	default:
		if !hasPrefix(name, "s/") && !hasPrefix(name, "s#") {
			r.setNotUnderstood("unknown editor command %s", text)
		}
	}
}

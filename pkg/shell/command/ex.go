package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// applyExText records the effects of a command line of vi, vim or ex, as far as common commands go.
func (r *argParser) applyExText(w Word) {
	if w.Pattern || len(w.Text) > maxScriptBytes {
		r.setNotUnderstood("unknown editor command %s", w.Text)
		return
	}
	if strings.Contains(w.Text, "\n") {
		r.setStdinIsData()
		for line := range strings.Lines(w.Text) {
			w.Text = strings.TrimRight(line, "\n")
			r.applyExText(w)
		}
		return
	}
	rest := w.Text
	for rest != "" {
		text := strings.TrimLeft(rest, ": \t%$.,0123456789")
		if i := strings.IndexByte(text, '!'); i >= 0 && isShellEscape(text[:i]) {
			// The rest of the text is one command, including bars.
			w.Text = strings.TrimLeft(text[i+1:], " ")
			r.addNestedCode(Nested{Language: "shell", Words: []Word{w}})
			if program, _, _ := strings.Cut(w.Text, " "); hasPrefix(text, "w") && lookupProgram(program) != nil && lookupProgram(program).language != "" {
				r.addEffect(effect.Dynamic) // ":w !python" runs the edited text, which is unknown, as code
			}
			return
		}
		var command string
		command, rest, _ = strings.Cut(text, "|")
		r.applyExCommand(w, strings.TrimSpace(command))
	}
}

// isShellEscape reports whether a command that ends in "!" runs a program: :!cmd, :r !cmd, :w !cmd, but not :q! and
// :wq!.
func isShellEscape(before string) bool {
	switch before {
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
		r.raiseClass(localWrite)
		r.addOperandEffect(effect.WriteFile, w, false)
	case "e", "edit", "r", "read", "view", "sp", "split", "vs", "vsplit", "tabe", "tabedit":
		r.addOperandEffect(effect.ReadFile, w, false)
	case "so", "source", "luafile", "pyfile", "py3file":
		r.addNestedCode(Nested{Language: "file", Words: []Word{w}})
	case "py", "py3", "python", "python3", "pythonx", "pyx":
		r.addNestedCode(Nested{Language: "python", Words: []Word{w}})
	case "lua":
		r.addNestedCode(Nested{Language: "lua", Words: []Word{w}})
	case "perl":
		r.addNestedCode(Nested{Language: "perl", Words: []Word{w}})
	case "ruby":
		r.addNestedCode(Nested{Language: "ruby", Words: []Word{w}})
	case "term", "terminal", "sh", "shell":
		r.addNestedCode(Nested{Language: "shell", Words: []Word{w}})
	default:
		if !hasPrefix(name, "s/") && !hasPrefix(name, "s#") {
			r.setNotUnderstood("unknown editor command %s", text)
		}
	}
}

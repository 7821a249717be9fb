package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// printf folds the shell's printf.
func (s *state) printf(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	words := argv[1:]
	if len(words) > 0 && words[0].Known() && len(words[0].Text) > 2 && strings.HasPrefix(words[0].Text, "-v") {
		name := words[0]
		name.Text = name.Text[2:]
		words = append([]abstract.Value{abstract.Lit("-v"), name}, words[1:]...)
	}
	if len(words) > 1 && words[0].Text == "-v" {
		v := format(words[2:])
		s.assignTo(words[1], v)
		return abstract.Value{}
	}
	if len(words) > 0 && words[0].Text == "--" {
		words = words[1:]
	}
	return format(words)
}

// format returns what printf writes: texts are put in their places, and a number is only that.
func format(words []abstract.Value) abstract.Value {
	if len(words) == 0 {
		return abstract.Value{}
	}
	form, args := words[0], words[1:]
	if len(args) == 1 && args[0].IsPattern && args[0].Origin == 0 && !args[0].Bare && oneEach[form.Text] { // what a glob matches
		args[0].Lines = true
		return args[0]
	}
	if !form.Known() {
		return vague("$(printf)", words...)
	}
	var b abstract.Builder
	b.Taint = form.Taint
	for turn := 0; turn == 0 || len(args) > 0; turn++ {
		before := len(args)
		for rest := form.Text; ; {
			text, verb, more := strings.Cut(rest, "%")
			b.Literal(plain.ANSIC(text))
			if !more {
				break
			}
			flags := len(verb) - len(strings.TrimLeft(verb, "-+ #0123456789."))
			if flags == len(verb) {
				return vague("$(printf)", words...)
			}
			if rest = verb[flags+1:]; verb[0] == '%' {
				b.Literal("%")
				continue
			}
			arg := abstract.Value{}
			if len(args) > 0 {
				arg, args = args[0], args[1:]
			}
			switch c := verb[flags]; {
			case c == 's' && flags == 0:
				b.Add(arg)
			case strings.IndexByte("diuxXofeg", c) >= 0:
				b.Taint |= arg.Taint
				b.Add(abstract.Short("$(printf)", abstract.FromCommand))
			default:
				return vague("$(printf)", words...)
			}
		}
		if turn > abstract.MaxFields || len(args) == before && len(args) > 0 {
			return vague("$(printf)", words...)
		}
	}
	return b.Value()
}

// fold returns what a program writes if that is certain: filters and decoders of
// known text.
func (s *state) fold(base string, argv []abstract.Value, in abstract.Value, f flow) (abstract.Value, bool) {
	if (base == "dirname" || base == "basename") && len(argv) > 1 && argv[1].IsPattern {
		return nameOf(base, argv[1:])
	}
	if listers[base] {
		if v, ok := s.listing(base, argv, f); ok || base == "git" {
			return v, ok
		}
	}
	var flags []string
	var operands []abstract.Value
	for _, v := range argv[1:] {
		if !v.Known() {
			return abstract.Value{}, false
		}
		if strings.HasPrefix(v.Text, "-") && len(v.Text) > 1 {
			flags = append(flags, v.Text)
		} else {
			operands = append(operands, v)
		}
	}
	switch base {
	case "echo":
		return s.echo(argv, abstract.Streams{}), true
	case "printf":
		return format(argv[1:]), true
	case "basename", "dirname":
		return foldName(base, flags, operands)
	case "mktemp":
		return abstract.Value{Text: "/tmp/tmp.*", Show: "$(mktemp)", IsPattern: true}.Of(abstract.FromCommand), true
	case "date", "nproc", "whoami", "id", "uname", "hostname", "arch", "tty", "wc", "uuidgen", "logname":
		return abstract.Short("$("+base+")", abstract.FromCommand), true
	case "which":
		if len(operands) == 1 {
			return found(operands[0]), true
		}
	case "cat", "tee", "tac", "sort", "uniq", "head", "tail", "rev", "tr", "sed", "cut", "xxd", "base64", "gbase64", "base32", "openssl", "gzip", "gunzip", "zcat", "uudecode", "hexdump", "od", "nl", "fold", "paste", "dd", "pv", "sponge", "perl", "awk", "python3", "grep", "egrep", "fgrep", "rg", "shuf":
	default:
		return abstract.Value{}, false
	}
	text := in
	if f.nreads > 0 {
		text = f.reads
	}
	if text.Lines && picks(base, flags, operands, f) {
		return text, true
	}
	if !text.Known() || len(text.Text) > abstract.MaxValue || !s.step(1+len(text.Text)/512) {
		return abstract.Value{}, false
	}
	out, ok := plain.Filter(base, flags, texts(operands), text.Text)
	if decodes(base, flags) {
		text.Taint |= abstract.Decoded
	}
	if !ok {
		return vague("$("+base+")", text).Of(abstract.FromText | abstract.FromCommand), textFilters[base]
	}
	text.Text = out
	return text, true
}

// textFilters are the programs whose output is their input in another form: of a text that is written out, the text hides it.
var textFilters = map[string]bool{"tac": true, "sort": true, "uniq": true, "head": true, "tail": true, "rev": true, "tr": true, "sed": true, "cut": true, "xxd": true, "base64": true, "gbase64": true, "base32": true, "nl": true, "fold": true, "paste": true, "awk": true, "shuf": true}

// setsUpShell reports whether a program writes settings for the shell that asks
// for them, which is meant to run them: eval "$(ssh-agent -s)". They set
// variables, aliases and completions. listed says that the program is known.
func setsUpShell(base string, argv []abstract.Value, listed bool) bool {
	first := ""
	if len(argv) > 1 {
		first = argv[1].Text
	}
	if command.ShellSetup[base+"/"+first] {
		return true
	}
	return listed && len(argv) > 2 && (first == "completion" || first == "completions") &&
		(argv[2].Text == "bash" || argv[2].Text == "zsh" || argv[2].Text == "fish")
}

func decodes(base string, flags []string) bool {
	switch base {
	case "base64", "gbase64", "base32", "xxd", "openssl", "gunzip", "zcat", "gzip", "rev", "uudecode":
		return len(flags) > 0 || base == "rev" || base == "zcat" || base == "gunzip"
	case "tr":
		return true
	}
	return false
}

// foldName computes basename and dirname.
func foldName(base string, flags []string, operands []abstract.Value) (abstract.Value, bool) {
	if len(operands) == 0 || len(operands) > 2 || len(flags) > 0 {
		return abstract.Value{}, false
	}
	v := operands[0]
	v.From.Start, v.From.End = 0, 0
	i := strings.LastIndexByte(strings.TrimRight(v.Text, "/"), '/')
	switch {
	case base == "basename":
		if v.Text = v.Text[i+1:]; len(operands) > 1 {
			v.Text = strings.TrimSuffix(v.Text, operands[1].Text)
		}
	case len(operands) > 1:
		return abstract.Value{}, false
	case i < 0:
		v.Text = "."
	case i == 0:
		v.Text = "/"
	default:
		v.Text = v.Text[:i]
	}
	v.Text += "\n"
	return v, true
}

func texts(values []abstract.Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Text
	}
	return out
}

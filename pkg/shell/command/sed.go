package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// maxScript is the maximum length of an analysed script, in bytes.
const maxScript = 64 << 10

// sed records the effects of a sed script beyond changing text: w writes a file, r reads one, e runs a command,
// and so do the flags w and e of s.
func (r *reader) sed(w Word) {
	if w.Pattern || len(w.Text) > maxScript {
		r.doubt("unknown sed script %s", w.Text)
		return
	}
	s := sedScript{text: w.Text}
	if !s.parse() {
		r.doubt("cannot read the sed script %s", w.Text)
	}
	for _, f := range s.files {
		w.Text = f.name
		r.touch(f.kind, w, false)
	}
	for _, command := range s.commands {
		w.Text = command
		r.code(Nested{Language: "shell", Words: []Word{w}})
	}
	if s.runsInput {
		r.use.Stdin, r.codeRead = Code, false
		r.raiseClass(localWrite)
		r.doubt("sed runs the output of the script %s as commands", w.Text)
	}
}

// A sedScript is a sed script being parsed; at is the next byte.
type sedScript struct {
	text      string
	at        int
	files     []sedFile
	commands  []string
	runsInput bool
}

// A sedFile is a file that a script reads or writes.
type sedFile struct {
	kind effect.Kind
	name string
}

func (s *sedScript) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *sedScript) skip(set string) {
	for s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

// line returns the rest of the line, without spaces in front.
func (s *sedScript) line() string {
	s.skip(" \t")
	rest := s.text[s.at:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	s.at += len(rest)
	return rest
}

// delimited skips text up to an unescaped delimiter, and reports whether there is one. In a bracket expression the
// delimiter is plain text.
func (s *sedScript) delimited(delim byte, regex bool) bool {
	for bracket := false; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == '\\':
			s.at++
		case bracket:
			bracket = c != ']'
		case c == delim:
			s.at++
			return true
		case c == '[' && regex:
			end := s.at + 1
			if end < len(s.text) && s.text[end] == '^' {
				end++
			}
			if end < len(s.text) && s.text[end] == ']' {
				end++
			}
			// A bracket that is never closed is a plain character.
			limit := min(len(s.text), end+256)
			if end <= limit && strings.IndexByte(s.text[end:limit], ']') >= 0 {
				bracket = true
				s.at = end - 1
			}
		}
	}
	return false
}

// address skips the address of a command.
func (s *sedScript) address() bool {
	switch c := s.peek(); {
	case c == '/':
		s.at++
		if !s.delimited('/', true) {
			return false
		}
		s.skip("IM")
	case c == '\\':
		s.at += 2
		if s.at > len(s.text) || !s.delimited(s.text[s.at-1], true) {
			return false
		}
		s.skip("IM")
	case c == '$':
		s.at++
	default:
		s.skip("0123456789~+")
	}
	return true
}

// parse parses the script and reports whether all of it was understood.
func (s *sedScript) parse() bool {
	for {
		s.skip(" \t\n;{}")
		if s.at >= len(s.text) {
			return true
		}
		if !s.address() {
			return false
		}
		s.skip(" \t")
		if s.peek() == ',' {
			s.at++
			s.skip(" \t")
			if !s.address() {
				return false
			}
		}
		s.skip(" \t!")
		if s.at >= len(s.text) {
			return false
		}
		c := s.text[s.at]
		s.at++
		if !s.command(c) {
			return false
		}
	}
}

// command skips the arguments of a command.
func (s *sedScript) command(c byte) bool {
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case '#', 'b', 't', 'T', ':', 'v':
		if c == '#' {
			s.line()
			return true
		}
		rest := s.line()
		if i := strings.IndexAny(rest, ";}"); i >= 0 && c != ':' {
			s.at -= len(rest) - i
		}
	case 'a', 'i', 'c':
		for strings.HasSuffix(s.line(), `\`) && s.at < len(s.text) {
			s.at++
		}
	case 'l', 'L', 'q', 'Q':
		s.skip(" 0123456789")
	case 'r', 'R':
		s.file(effect.ReadFile)
	case 'w', 'W':
		s.file(effect.WriteFile)
	case 'e':
		s.run(s.line())
	case 's':
		return s.substitute()
	case 'y':
		delim := s.peek()
		s.at++
		return delim != 0 && s.delimited(delim, false) && s.delimited(delim, false)
	default:
		return false
	}
	return true
}

// substitute skips s/regex/text/flags.
func (s *sedScript) substitute() bool {
	delim := s.peek()
	s.at++
	if delim == 0 || delim == '\n' || delim == '\\' || !s.delimited(delim, true) || !s.delimited(delim, false) {
		return false
	}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case 'g', 'p', 'i', 'I', 'm', 'M', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			s.at++
		case 'e':
			// The flag e runs the result of the substitution, which is unknown.
			s.at++
			s.run("")
		case 'w':
			s.at++
			s.file(effect.WriteFile)
			return true
		default:
			return strings.IndexByte(" \t\n;}#", c) >= 0
		}
	}
	return true
}

func (s *sedScript) file(k effect.Kind) {
	switch name := s.line(); name {
	case "/dev/stdout", "/dev/stderr", "/dev/stdin":
	default:
		s.files = append(s.files, sedFile{k, name})
	}
}

// run records a command that the script runs; "" is one that comes from the input.
func (s *sedScript) run(command string) {
	if command == "" {
		s.runsInput = true
	} else {
		s.commands = append(s.commands, command)
	}
}

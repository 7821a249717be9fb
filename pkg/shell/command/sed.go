package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// maxSedExOrSQLTextBytes is the maximum length of an analysed script, in bytes.
const maxSedExOrSQLTextBytes = 64 << 10

// applySedScript records the effects of a sed script beyond changing text: w writes a file, r reads one, e runs a command,
// and so do the flags w and e of s.
func (r *argParser) applySedScript(w Word) {
	if w.IsGlobPattern || len(w.Text) > maxSedExOrSQLTextBytes {
		r.setNotUnderstood("unknown sed script %s", w.Text)
		return
	}
	s := sedScript{text: w.Text}
	if !s.parse() {
		r.setNotUnderstood("cannot read the sed script %s", w.Text)
	}
	for _, f := range s.readOrWrittenFiles {
		w.Text = f.name
		r.addOperandEffect(f.kind, w, false)
	}
	for _, command := range s.shellCommands {
		w.Text = command
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
	}
	if s.runsInputAsShell {
		r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
		r.raiseProgramClass(localWriteProgramClassRank)
		r.setNotUnderstood("sed runs the output of the script %s as commands", w.Text)
	}
}

// A sedScript is the state of the parser of a sed script; pos is the offset of the next byte.
type sedScript struct {
	text               string
	pos                int
	readOrWrittenFiles []sedFile
	shellCommands      []string
	runsInputAsShell   bool
}

// A sedFile is a file that a script reads or writes.
type sedFile struct {
	kind effect.Kind
	name string
}

func (s *sedScript) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *sedScript) skip(set string) {
	for s.pos < len(s.text) && strings.IndexByte(set, s.text[s.pos]) >= 0 {
		s.pos++
	}
}

// readLine returns the rest of the line, without spaces in front.
func (s *sedScript) readLine() string {
	s.skip(" \t")
	rest := s.text[s.pos:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	s.pos += len(rest)
	return rest
}

// skipPastUnescapedDelimiter skips text up to an unescaped delimiter, and reports whether there is one. In a bracket expression the
// delimiter is plain text.
func (s *sedScript) skipPastUnescapedDelimiter(delim byte, isRegexp bool) bool {
	for bracket := false; s.pos < len(s.text); s.pos++ {
		c := s.text[s.pos]
		switch {
		case c == '\\':
			s.pos++
		case bracket:
			bracket = c != ']'
		case c == delim:
			s.pos++
			return true
		case c == '[' && isRegexp:
			end := s.pos + 1
			if end < len(s.text) && s.text[end] == '^' {
				end++
			}
			if end < len(s.text) && s.text[end] == ']' {
				end++
			}
			// A "[" without a "]" in the next 256 bytes is a plain character.
			limit := min(len(s.text), end+256)
			if end <= limit && strings.IndexByte(s.text[end:limit], ']') >= 0 {
				bracket = true
				s.pos = end - 1
			}
		}
	}
	return false
}

// skipAddress skips the address of a command.
func (s *sedScript) skipAddress() bool {
	switch c := s.peek(); {
	case c == '/':
		s.pos++
		if !s.skipPastUnescapedDelimiter('/', true) {
			return false
		}
		s.skip("IM")
	case c == '\\':
		s.pos += 2
		if s.pos > len(s.text) || !s.skipPastUnescapedDelimiter(s.text[s.pos-1], true) {
			return false
		}
		s.skip("IM")
	case c == '$':
		s.pos++
	default:
		s.skip("0123456789~+")
	}
	return true
}

// parse parses the script and reports whether all of it was understood.
func (s *sedScript) parse() bool {
	for {
		s.skip(" \t\n;{}")
		if s.pos >= len(s.text) {
			return true
		}
		if !s.skipAddress() {
			return false
		}
		s.skip(" \t")
		if s.peek() == ',' {
			s.pos++
			s.skip(" \t")
			if !s.skipAddress() {
				return false
			}
		}
		s.skip(" \t!")
		if s.pos >= len(s.text) {
			return false
		}
		c := s.text[s.pos]
		s.pos++
		if !s.parseCommand(c) {
			return false
		}
	}
}

// parseCommand skips the arguments of a command.
func (s *sedScript) parseCommand(c byte) bool {
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case '#', 'b', 't', 'T', ':', 'v':
		if c == '#' {
			s.readLine()
			return true
		}
		rest := s.readLine()
		if i := strings.IndexAny(rest, ";}"); i >= 0 && c != ':' {
			s.pos -= len(rest) - i
		}
	case 'a', 'i', 'c':
		for strings.HasSuffix(s.readLine(), `\`) && s.pos < len(s.text) {
			s.pos++
		}
	case 'l', 'L', 'q', 'Q':
		s.skip(" 0123456789")
	case 'r', 'R':
		s.addFile(effect.ReadFile)
	case 'w', 'W':
		s.addFile(effect.WriteFile)
	case 'e':
		s.addShellCommand(s.readLine())
	case 's':
		return s.parseSubstitute()
	case 'y':
		delim := s.peek()
		s.pos++
		return delim != 0 && s.skipPastUnescapedDelimiter(delim, false) && s.skipPastUnescapedDelimiter(delim, false)
	default:
		return false
	}
	return true
}

// parseSubstitute skips s/regex/text/flags.
func (s *sedScript) parseSubstitute() bool {
	delim := s.peek()
	s.pos++
	if delim == 0 || delim == '\n' || delim == '\\' || !s.skipPastUnescapedDelimiter(delim, true) || !s.skipPastUnescapedDelimiter(delim, false) {
		return false
	}
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case 'g', 'p', 'i', 'I', 'm', 'M', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			s.pos++
		case 'e':
			// The flag e of sed's command s runs the result of the substitution as a shell command. This result
			// is unknown.
			s.pos++
			s.addShellCommand("")
		case 'w':
			s.pos++
			s.addFile(effect.WriteFile)
			return true
		default:
			return strings.IndexByte(" \t\n;}#", c) >= 0
		}
	}
	return true
}

func (s *sedScript) addFile(k effect.Kind) {
	switch name := s.readLine(); name {
	case "/dev/stdout", "/dev/stderr", "/dev/stdin":
	default:
		s.readOrWrittenFiles = append(s.readOrWrittenFiles, sedFile{k, name})
	}
}

// addShellCommand records a shell command that the sed script runs. "" means that sed runs text
// from its input as a command.
func (s *sedScript) addShellCommand(shellCommand string) {
	if shellCommand == "" {
		s.runsInputAsShell = true
	} else {
		s.shellCommands = append(s.shellCommands, shellCommand)
	}
}

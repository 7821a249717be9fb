package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkReadBuiltin walks read, mapfile and readarray: the variables get unknown values with the taint of the input.
func (s *analysisState) walkReadBuiltin(argv []abstract.Value, io abstract.Streams) abstract.Value {
	in, lines := io.Stdin, argv[0].Text != "read"
	if s.sharedInput != nil {
		s.sharedInput.isPartlyRead = true
	}
	values, array := "dnNptui", lines
	if lines {
		values = "dnOsuCc"
	}
	var names []abstract.Value
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if !v.IsLiteral() || len(v.Text) < 2 || v.Text[0] != '-' {
			names = append(names, v)
			continue
		}
		letter := v.Text[len(v.Text)-1]
		array = array || letter == 'a' || letter == 'A'
		value, at := v, strings.IndexAny(v.Text, values)
		if at < 0 {
			continue
		}
		if value.Text = v.Text[at+1:]; value.Text == "" && i+1 < len(argv) {
			i++
			value = argv[i]
		}
		switch v.Text[at] {
		case 'C': // mapfile -C CODE: the shell appends the index and the text of a line to CODE and runs it
			s.walkExecutedText("shell", abstract.Concat(value, abstract.Lit(" "), abstract.UnknownTextWithoutSlash("index", abstract.OriginUnsetVariable)), argv[0].Text, value.SourceSpan, nil)
		case 'u':
			if d, ok := s.findDescriptor(value.Text); ok {
				in = d.readableContent
				d.readableContent = inputAfterPartialRead(in)
			}
		}
	}
	if len(names) == 0 {
		names = []abstract.Value{abstract.Lit("REPLY")}
		if lines {
			names[0].Text = "MAPFILE"
		}
	}
	for i, n := range names {
		if i == 0 && !lines { // in zsh, the text after ? is the prompt
			n.Text, _, _ = strings.Cut(n.Text, "?")
		}
		v := abstract.Unknown("$"+n.String(), in.Taint|abstract.TaintUnknownText).WithOrigin(abstract.OriginStdin)
		if i == 0 {
			v = anyListedPathOrFallback(in, v)
		}
		s.assignByNameWord(n, v)
		if c, ok := s.lookup(n.Text); ok && array {
			c.isArray = true
			s.setVariableContent(n.Text, c)
		}
	}
	return abstract.Value{}
}

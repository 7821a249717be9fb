package shell

import (
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"

	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// parse reads text as bash, else as the other shells of its family.
func parse(text string) (*syntax.File, error) {
	p := parsers.Get().(*syntax.Parser)
	f, err := p.Parse(strings.NewReader(text), "")
	parsers.Put(p)
	if err == nil {
		return f, nil
	}
	for _, lang := range [...]syntax.LangVariant{syntax.LangMirBSDKorn, syntax.LangPOSIX, syntax.LangZsh} {
		if f, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), ""); err == nil {
			return f, nil
		}
	}
	return nil, err
}

// source walks shell text and returns what it writes to standard output.
func (s *state) source(text string) abstract.Value {
	if why := tooDeep(text); why != "" {
		s.dynamic(why, s.span(0, len(text)))
		return abstract.Unknown("…", abstract.Foreign)
	}
	f, err := parse(text)
	if err != nil {
		// The text may hold places that somebody was meant to fill in. The shell
		// runs nothing from there on; what comes before is walked as it is.
		if filled := withoutPlaceholders(withoutTemplates(text)); filled != text {
			if f2, err2 := parse(filled); err2 == nil {
				mark := len(s.effects)
				s.untilError(text)
				if len(s.effects) == mark {
					return s.stmts(f2.Stmts, abstract.Value{})
				}
				mark = len(s.effects)
				out := s.stmts(f2.Stmts, abstract.Value{})
				s.dropRepeated(mark)
				return out
			}
		}
	}
	if err != nil {
		s.dynamic("the shell text cannot be parsed: "+parseError(err), s.span(0, len(text)))
		s.untilError(text)
		s.suspects(text)
		return abstract.Unknown("…", abstract.Foreign)
	}
	return s.stmts(f.Stmts, abstract.Value{})
}

// untilError walks the statements before a syntax error: a shell runs them
// before it comes to the error.
func (s *state) untilError(text string) {
	p := parsers.Get().(*syntax.Parser)
	var list []*syntax.Stmt
	for st, err := range p.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			break
		}
		list = append(list, st)
	}
	parsers.Put(p)
	s.stmts(list, abstract.Value{})
}

// withoutPlaceholders does the same for each <name> of a manual.
func withoutPlaceholders(text string) string {
	b := []byte(text)
	for i := 0; i < len(b); i++ {
		if b[i] != '<' {
			continue
		}
		end := i + 1
		for end < len(b) && end-i < 64 && (isWordByte(b[end]) || strings.IndexByte(" -./:|,", b[end]) >= 0) {
			end++
		}
		if end < i+2 || end >= len(b) || b[end] != '>' || b[i+1] == ' ' || b[i+1] == '/' {
			continue
		}
		copy(b[i:], "${"+strings.Repeat("_", end-i-2)+"}")
		i = end
	}
	return string(b)
}

// withoutTemplates puts a variable that nothing sets in place of each ${{ … }}
// of a workflow file. Lengths stay, so that spans do.
func withoutTemplates(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "${{")
		end := strings.Index(text[max(i, 0):], "}}")
		if i < 0 || end < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i] + "${" + strings.Repeat("_", end-1) + "}")
		text = text[i+end+2:]
	}
}

func parseError(err error) string {
	msg := err.Error()
	if len(msg) > 120 {
		msg = msg[:120]
	}
	return msg
}

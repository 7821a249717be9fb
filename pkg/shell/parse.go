package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// parsed walks shell text and returns its standard output.
func (s *state) parsed(text string) abstract.Value {
	if why := parse.TooDeep(text); why != "" {
		s.dynamic(effect.CauseLimit, why, s.span(0, len(text)))
		return abstract.Unknown("…", abstract.Foreign)
	}
	f, err := parse.Shell(text)
	if err != nil {
		// The text may contain unfilled template placeholders. A shell stops with a syntax error there; the statements
		// before it are walked first.
		if filled := parse.WithoutPlaceholders(parse.WithoutTemplates(text)); filled != text {
			if f2, err2 := parse.Shell(filled); err2 == nil {
				mark := len(s.effects)
				s.untilError(text)
				before := len(s.effects)
				var out abstract.Value
				s.within(func() {
					s.filled = true
					out = s.stmts(f2.Stmts, abstract.Value{})
				})
				if before > mark {
					s.dropRepeated(before)
				}
				return out
			}
		}
	}
	if err != nil {
		s.dynamic(effect.CauseSyntax, "the shell text cannot be parsed: "+parse.Error(err), s.span(0, len(text)))
		unread := s.unread
		s.untilError(text)
		if s.unread > unread {
			// A shell that reads line by line has already run the code before the syntax error.
			s.dynamic(effect.CauseUnresolved, "unknown code runs before text that cannot be parsed", s.span(0, len(text)))
		}
		s.recordSuspectWords(text)
		return abstract.Unknown("…", abstract.Foreign)
	}
	var out abstract.Value
	s.within(func() {
		s.lists = 0
		out = s.stmts(f.Stmts, abstract.Value{})
	})
	return out
}

// untilError walks the statements before a syntax error, because a shell runs them before it finds the error.
func (s *state) untilError(text string) {
	p := parse.Parsers.Get().(*syntax.Parser)
	var list []*syntax.Stmt
	for st, err := range p.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			break
		}
		list = append(list, st)
	}
	parse.Parsers.Put(p)
	s.stmts(list, abstract.Value{})
}

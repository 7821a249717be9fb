package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// asZsh reports whether the text is read as zsh means it. Where nothing says of which
// shell it is, it is walked a second time if that makes a difference.
func (s *state) asZsh() bool {
	s.differs = s.differs || !s.shellNamed
	return s.zsh
}

// unusual reports whether options may make zsh read the text as other shells do.
func (s *state) unusual() bool { return s.zsh && s.posix }

// subscripted returns the parts of a word as zsh reads them: what stands in brackets behind
// the name of a variable is a subscript, be it in braces or not.
func (s *state) subscripted(parts []syntax.WordPart) []syntax.WordPart {
	for i := range parts {
		p, isParam := parts[i].(*syntax.ParamExp)
		if isParam && p.Exp != nil && hasBrace(p.Exp.Word) && s.asZsh() { // it ends at another brace
			s.param(p)
			return append(slices.Clone(parts[:i]), unknownPart())
		}
		if i+1 == len(parts) {
			break
		}
		l, isLit := parts[i+1].(*syntax.Lit)
		if isParam && isLit && p.Short && p.Param != nil && p.Index == nil {
			if other := s.modified(p, l); other != nil {
				return slices.Concat(parts[:i], other, parts[i+2:])
			}
		}
		if !isParam || !isLit || !p.Short || p.Index != nil || !strings.HasPrefix(l.Value, "[") || !s.asZsh() {
			continue
		}
		sub, rest, whole := strings.Cut(l.Value[1:], "]")
		member := *p
		if _, err := strconv.Atoi(sub); err == nil && whole && p.Param != nil && syntax.ValidName(p.Param.Value) {
			member.Index = literal(sub, l)
			parts = slices.Concat(parts[:i], []syntax.WordPart{&member}, literal(rest, l).Parts, parts[i+2:])
			continue
		}
		member.Index = &syntax.Word{Parts: []syntax.WordPart{unknownPart()}}
		for _, p := range parts[i+2:] {
			s.part(p)
		}
		return append(slices.Clone(parts[:i]), &member) // not worked out, nor where it ends
	}
	return parts
}

func unknownPart() *syntax.ParamExp {
	return &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: abstract.UnsetName}}
}

// hasBrace reports whether a word holds a brace that is not quoted.
func hasBrace(w *syntax.Word) bool {
	return w != nil && slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.Contains(l.Value, "{")
	})
}

func literal(text string, at *syntax.Lit) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: at.ValuePos, Value: text}}}
}

// merged returns what either of two walks of a text shows.
func merged(a, b effect.Result) effect.Result {
	a.Effects = added(a.Effects, b.Effects)
	have := map[string]bool{}
	for line := range strings.SplitSeq(a.Words, "\n") {
		have[line] = true
	}
	for line := range strings.SplitSeq(b.Words, "\n") {
		if !have[line] {
			a.Words += "\n" + line
		}
	}
	for _, f := range b.Files {
		if !slices.ContainsFunc(a.Files, func(o effect.File) bool {
			return o.Path == f.Path && o.Tree == f.Tree && slices.Equal(o.Labels, f.Labels)
		}) {
			a.Files = append(a.Files, f)
		}
	}
	for _, w := range b.Writes {
		if !slices.Contains(a.Writes, w) {
			a.Writes = append(a.Writes, w)
		}
	}
	return a
}

// added appends those effects that are not there yet.
func added(to, more []effect.Effect) []effect.Effect {
	type place struct {
		kind effect.Kind
		path string
		from effect.Span
	}
	have := map[place][]int{}
	for i := range to {
		at := place{to[i].Kind, to[i].Path, to[i].From}
		have[at] = append(have[at], i)
	}
	for i := range more {
		at := place{more[i].Kind, more[i].Path, more[i].From}
		if !slices.ContainsFunc(have[at], func(n int) bool { return sameEffect(&to[n], &more[i]) }) {
			to = append(to, more[i])
		}
	}
	return to
}

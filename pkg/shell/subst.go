package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// substitution walks $(…) and returns its output.
func (s *state) substitution(c *syntax.CmdSubst) abstract.Value {
	out := s.capture(func() abstract.Value { return s.subshell(c.Stmts, s.input) })
	if out.Known() {
		out.Text = strings.TrimRight(out.Text, "\n")
		return out
	}
	out.Text = strings.TrimRight(out.Text, "\n")
	if out.Text == "" {
		out.Text, out.Bare = "**", true
	}
	out.Show = s.shown(int(c.Pos().Offset()), int(c.End().Offset()))
	return out.Of(abstract.FromCommand | out.Origin&(abstract.FromText|abstract.Forgotten))
}

// shown returns a piece of the walked text for messages.
func (s *state) shown(start, end int) string {
	start, end = start+s.base, end+s.base
	if s.fixed != nil || start < 0 || end > len(s.text) || start >= end {
		return "$(…)"
	}
	if end-start > 200 {
		end = start + 200
	}
	return s.text[start:end]
}

// procSubst walks <(…) and >(…). The word is the path of a descriptor with the output of the commands, or one that
// feeds them.
func (s *state) procSubst(p *syntax.ProcSubst) abstract.Value {
	path := "/dev/fd/" + strconv.Itoa(63-len(s.files)%40) + "." + strconv.Itoa(len(s.files))
	show := s.shown(int(p.Pos().Offset()), int(p.End().Offset()))
	if p.Op == syntax.CmdOut {
		s.addFile(file{path: path, consumer: p, fixed: s.fixed, base: s.base})
		return abstract.Value{Text: path, From: s.spanOf(p)}
	}
	var out abstract.Value
	s.walkConcurrent(func() { out = s.capture(func() abstract.Value { return s.subshell(p.Stmts, s.input) }) })
	if out.IsPattern {
		out = out.Of(abstract.FromCommand | out.Origin&(abstract.FromText|abstract.Forgotten))
		out.Show = show
	}
	s.addFile(file{path: path, val: out})
	return abstract.Value{Text: path, From: s.spanOf(p), Taint: out.Taint &^ abstract.Foreign}
}

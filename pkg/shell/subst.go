package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkCommandSubstitution walks $(…) and returns its output.
func (s *analysisState) walkCommandSubstitution(c *syntax.CmdSubst) abstract.Value {
	out := s.walkWithCapturedOutput(func() abstract.Value { return s.walkSubshellStmts(c.Stmts, s.statementStdin) })
	if out.IsLiteral() {
		out.Text = strings.TrimRight(out.Text, "\n")
		return out
	}
	out.Text = strings.TrimRight(out.Text, "\n")
	if out.Text == "" {
		out.Text, out.FullyUnknown = "**", true
	}
	out.Display = s.analyzedTextExcerptForDisplay(int(c.Pos().Offset()), int(c.End().Offset()))
	return out.WithOrigin(abstract.OriginCommandOutput | out.Origin&(abstract.OriginUnanalysedComputation|abstract.OriginAssignmentToUnknownName))
}

// analyzedTextExcerptForDisplay returns a piece of the walked text for messages.
func (s *analysisState) analyzedTextExcerptForDisplay(start, end int) string {
	start, end = start+s.offsetInAnalyzedText, end+s.offsetInAnalyzedText
	if s.spanOfNestedText != nil || start < 0 || end > len(s.analyzedText) || start >= end {
		return "$(…)"
	}
	if end-start > 200 {
		end = start + 200
	}
	return s.analyzedText[start:end]
}

// walkProcessSubstitution returns the path of a file descriptor for <(…) or >(…). For <(…) it walks the
// commands, and their output is read from this path. For >(…) the commands are walked later, with the data
// written to the path as their input.
func (s *analysisState) walkProcessSubstitution(p *syntax.ProcSubst) abstract.Value {
	path := "/dev/fd/" + strconv.Itoa(63-len(s.writtenFiles)%40) + "." + strconv.Itoa(len(s.writtenFiles))
	show := s.analyzedTextExcerptForDisplay(int(p.Pos().Offset()), int(p.End().Offset()))
	if p.Op == syntax.CmdOut {
		s.addFile(writtenFile{path: path, consumingProcessSubstitution: p, spanAroundProcessSubstitution: s.spanOfNestedText, processSubstitutionTextOffset: s.offsetInAnalyzedText})
		return abstract.Value{Text: path, SourceSpan: s.spanOf(p)}
	}
	var out abstract.Value
	s.walkConcurrent(func() {
		out = s.walkWithCapturedOutput(func() abstract.Value { return s.walkSubshellStmts(p.Stmts, s.statementStdin) })
	})
	if out.IsGlobPattern {
		out = out.WithOrigin(abstract.OriginCommandOutput | out.Origin&(abstract.OriginUnanalysedComputation|abstract.OriginAssignmentToUnknownName))
		out.Display = show
	}
	s.addFile(writtenFile{path: path, content: out})
	return abstract.Value{Text: path, SourceSpan: s.spanOf(p), Taint: out.Taint &^ abstract.TaintUnknownText}
}

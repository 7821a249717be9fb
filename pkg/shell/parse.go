package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// parseAndWalkShellText walks shell text and returns its standard output.
func (s *analysisState) parseAndWalkShellText(text string) abstract.Value {
	if why := parse.ExceededLimitReason(text); why != "" {
		s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, why, s.span(0, len(text)))
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	f, err := parse.Shell(text)
	if err != nil {
		// The text may contain unfilled template placeholders. A shell stops with a syntax error there; the statements
		// before it are walked first.
		if filled := parse.ReplaceAnglePlaceholdersWithVariables(parse.ReplaceGitHubExpressionsByVariables(text)); filled != text {
			if f2, err2 := parse.Shell(filled); err2 == nil {
				mark := len(s.effects)
				s.walkStatementsBeforeSyntaxError(text)
				before := len(s.effects)
				var out abstract.Value
				s.walkInNestedTextScope(func() {
					s.hasReplacedTemplatePlaceholders = true
					out = s.walkStmts(f2.Stmts, abstract.Value{})
				})
				if before > mark {
					s.dropRepeatedEffects(before)
				}
				return out
			}
		}
	}
	if err != nil {
		s.emitUnknownEffect(effect.CauseUnparseableText, "the shell text cannot be parsed: "+parse.ShortError(err), s.span(0, len(text)))
		unread := s.unknownExecutedTextCount
		s.walkStatementsBeforeSyntaxError(text)
		if s.unknownExecutedTextCount > unread {
			// A shell that reads line by line has already run the code before the syntax error.
			s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "the shell runs unknown code before it reaches the syntax error; instead: correct the syntax", s.span(0, len(text)))
		}
		s.recordPathsAndURLsInText(text)
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	var out abstract.Value
	s.walkInNestedTextScope(func() {
		s.statementListDepth = 0
		out = s.walkStmts(f.Stmts, abstract.Value{})
	})
	return out
}

// walkStatementsBeforeSyntaxError walks the statements before a syntax error, because a shell runs them before it finds the error.
func (s *analysisState) walkStatementsBeforeSyntaxError(text string) {
	p := parse.BashParsers.Get().(*syntax.Parser)
	var list []*syntax.Stmt
	for st, err := range p.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			break
		}
		list = append(list, st)
	}
	parse.BashParsers.Put(p)
	s.walkStmts(list, abstract.Value{})
}

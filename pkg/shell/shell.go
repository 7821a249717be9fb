package shell

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// Analyze returns the effects of running text in the context at. Text that cannot be parsed has an
// effect of the certainty Unknown; Analyze never fails or panics.
//
// Every command at any depth has an Execute effect. For an effect on an unknown path, Path is empty
// and PathIsPattern is true.
func Analyze(text string, at *effect.PathContext) effect.CommandAnalysis {
	if at == nil {
		at = &effect.PathContext{}
	}
	s := newState(text, at)
	defer s.returnToPool()
	return s.analyze()
}

// statePool keeps the memory of finished analyses for reuse.
var statePool = sync.Pool{New: func() any { return new(analysisState) }}

func newState(text string, at *effect.PathContext) *analysisState {
	s := statePool.Get().(*analysisState)
	s.analyzedText, s.initialPathContext, s.Shell, s.hasPlusSignInText = text, at, newShell(), strings.Contains(text, "+")
	return s
}

// returnToPool returns the state to the pool. Only the results may be used afterwards.
func (s *analysisState) returnToPool() {
	effects := s.effects
	clear(effects)
	*s = analysisState{effects: effects[:0]}
	statePool.Put(s)
}

// analyze walks a text to its end.
func (s *analysisState) analyze() (r effect.CommandAnalysis) {
	text := s.analyzedText
	s.resolvedCommandLines.Grow(min(len(text), parse.MaxCommandBytes) + 32)
	// A panic in the parser or in this package must not let a command through.
	defer func() {
		if recover() != nil {
			s.effects = append(s.effects, effect.Effect{
				Certainty: effect.Unknown, Cause: effect.CauseAnalysisFailure, Reason: "the command could not be analysed", Span: effect.CommandTextSpan{End: len(text)},
			})
			r = s.result()
		}
	}()
	own := -1
	switch {
	case looksPowerShell(text):
		s.otherLanguageDepth++
		s.interpretPowerShellText(text)
	case s.initialPathContext.IsCommandTextPowerShell: // the payload or the tool's name says PowerShell, which can be wrong
		if looksLikeCmdExe(text) {
			s.walkSubshell(func() {
				s.otherLanguageDepth++
				s.interpretCmdExeText(text)
			})
		}
		own = s.walkAsPowerShellThenPOSIX(text)
	case looksLikeCmdExe(text):
		s.otherLanguageDepth++
		s.interpretCmdExeText(text)
		if strings.ContainsAny(text, ";`") || strings.Contains(text, "$(") || isPowerShellCommandContainingSingleQuote(text) { // it may be written for a POSIX shell
			s.otherLanguageDepth--
			s.parseAndWalkShellText(text)
		}
	case mayBePowerShell(text):
		own = s.walkAsPowerShellThenPOSIX(text)
	default:
		s.parseAndWalkShellText(text)
	}
	s.walkTrapsAndUncalledFunctions()
	s.recordWrittenFileRunEffects()
	s.recordPackageSourceEdits()
	if own >= 0 {
		s.dropPowerShellMisreadEffects(own)
	}
	return s.result()
}

func (s *analysisState) result() effect.CommandAnalysis {
	return effect.CommandAnalysis{Effects: slices.Clone(s.effects), ResolvedCommandText: strings.TrimSuffix(s.resolvedCommandLines.String(), "\n"), LabelledFiles: s.writtenFilesWithTaintLabels(), Writes: s.writtenFileTexts, TextsCoveredByNoEffect: s.argumentsWithoutRecordedEffect}
}

package shell

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// Analyze returns what running text would do in a place. Text that cannot be
// read has a Dynamic effect; no text makes it fail or panic.
//
// Every command at any depth has an Execute effect. An effect on a path of
// which nothing is known has an empty Path and Pattern set.
func Analyze(text string, at *effect.Place) effect.Result {
	if at == nil {
		at = &effect.Place{}
	}
	s := newState(text, at)
	defer s.end()
	r := s.analyze()
	if s.differs && !s.gaveUp {
		again := newState(text, at)
		defer again.end()
		again.zsh = true
		r = merged(r, again.analyze())
	}
	return r
}

// statePool keeps the room of analyses that have ended: for effects and variables.
var statePool = sync.Pool{New: func() any { return new(state) }}

func newState(text string, at *effect.Place) *state {
	s := statePool.Get().(*state)
	s.text, s.at = text, at
	return s
}

// end ends an analysis: nothing of it may be used any more, but what its results hold.
func (s *state) end() {
	effects, vars := s.effects, s.vars
	clear(effects)
	clear(vars)
	*s = state{effects: effects[:0], vars: vars[:0]}
	statePool.Put(s)
}

// analyze walks a text to its end.
func (s *state) analyze() (r effect.Result) {
	text := s.text
	s.lastpipe = strings.Contains(text, "lastpipe") // bash takes it as an option and from its environment, too
	s.words.Grow(min(len(text), parse.MaxText) + 32)
	// A panic in the parser or in this package must not let a command through.
	defer func() {
		if recover() != nil {
			s.effects = append(s.effects, effect.Effect{
				Kind: effect.Dynamic, Cause: effect.CauseFailure, Reason: "the command could not be analysed", From: effect.Span{End: len(text)},
			})
			r = s.result()
		}
	}()
	own := -1
	switch {
	case looksPowerShell(text):
		s.foreign++
		s.powershell(text)
	case looksCmd(text):
		s.foreign++
		s.cmdexe(text)
		if strings.ContainsAny(text, ";`") || strings.Contains(text, "$(") || quotesCode(text) { // it may be meant for a POSIX shell
			s.foreign--
			s.source(text)
		}
	case mayBePowerShell(text):
		own = s.eitherShell(text)
	default:
		s.source(text)
	}
	s.finish()
	s.writtenFiles()
	s.rewritten()
	if own >= 0 {
		s.dropExpressions(own)
	}
	return s.result()
}

func (s *state) result() effect.Result {
	return effect.Result{Effects: slices.Clone(s.effects), Words: strings.TrimSuffix(s.words.String(), "\n"), Files: s.labelled(), Writes: s.writes}
}

package shell

import (
	"strings"

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
	s := &state{text: text, at: at, effects: make([]effect.Effect, 0, 8)}
	r := s.analyze()
	if s.differs && !s.gaveUp {
		again := &state{text: text, at: at, zsh: true}
		r = merged(r, again.analyze())
	}
	return r
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
	return effect.Result{Effects: s.effects, Words: strings.TrimSuffix(s.words.String(), "\n"), Files: s.labelled(), Writes: s.writes}
}

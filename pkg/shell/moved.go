package shell

import (
	"path"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A move is what the text moved somewhere.
type move struct{ from, to effect.Effect }

// moved notes that a command moves files to the places it writes: anyone who
// deletes these deletes the files.
func (s *state) moved(from []effect.Effect, writes []abstract.Target) {
	for _, f := range from {
		for _, w := range writes {
			if len(s.moves) == maxNames || f.Path == "" || w.Path == "" || s.remote > 0 {
				return
			}
			s.moves = append(s.moves, move{f, effect.Effect{Path: w.Path, Pattern: w.Pattern, Recursive: true}})
		}
	}
}

// loses records that deleting a path deletes what the text moved there before.
func (s *state) loses(e effect.Effect) { s.losesBefore(e, len(s.moves)) }

func (s *state) losesBefore(e effect.Effect, n int) {
	for i := n - 1; i >= 0; i-- {
		m := s.moves[i]
		if !s.step(1) {
			return
		}
		if !effect.Overlap(reachOf(&e), reachOf(&m.to), s.at.FoldCase) {
			continue
		}
		lost := e
		lost.Path, lost.Pattern, lost.Tree, lost.Recursive = m.from.Path, m.from.Pattern, m.from.Tree, true
		s.once(lost)
		s.losesBefore(lost, i)
	}
}

// reachOf returns what an effect touches as a pattern.
func reachOf(e *effect.Effect) string {
	p := asPattern(e.Path, e.Pattern)
	if e.Recursive {
		p = path.Clean(p) + "/**"
	}
	return p
}

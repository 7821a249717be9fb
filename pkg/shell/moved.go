package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A move is a file or folder that the text moved, and its new path.
type move struct{ from, to effect.Effect }

// recordMoves records the old and new paths of moved files, so that a later deletion of the new
// paths counts as deletion of these files.
func (s *state) recordMoves(from []effect.Effect, writes []abstract.Target) {
	for _, f := range from {
		for _, w := range writes {
			if len(s.moves) == maxItems || f.Path == "" || w.Path == "" || s.remoteDepth > 0 {
				return
			}
			s.moves = append(s.moves, move{f, effect.Effect{Path: w.Path, Pattern: w.Pattern, Recursive: true}})
			if f.Pattern && !w.Pattern && s.isNotFolder(w.Path) {
				s.emitOnce(effect.Effect{Kind: effect.Destroy, Program: "mv", Span: f.Span,
					Reason: "each file overwrites the one before, because the target folder does not exist: " + abstract.Clip(w.Path)})
			}
		}
	}
}

// isNotFolder reports whether a path is certainly not a folder: it is a file or does not exist, and the text does not
// create it.
func (s *state) isNotFolder(p string) bool {
	before := s.effects
	for i := len(before) - 1; i >= 0; i-- { // exclude the effects of the current program
		if before[i].Kind == effect.Execute {
			before = before[:i]
			break
		}
	}
	if s.startPlace.ReadScript == nil || slices.ContainsFunc(before, func(e effect.Effect) bool {
		return e.Kind == effect.CreateDirectory && (e.Pattern || e.Path == p || strings.HasPrefix(p, e.Path+"/") || strings.HasPrefix(e.Path, p+"/")) || e.Certainty == effect.Unknown || e.Kind == effect.WriteFile && (e.Recursive || strings.HasPrefix(e.Path, p+"/"))
	}) {
		return false
	}
	if _, err := s.startPlace.ReadScript(s.startPlace.CWD); errors.Is(err, fs.ErrNotExist) {
		return false // the file system is unknown
	}
	_, err := s.startPlace.ReadScript(p)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// recordMovedFileLoss records that deleting a path also deletes the files that the text moved there.
func (s *state) recordMovedFileLoss(e effect.Effect) { s.recordMovedFileLossBefore(e, len(s.moves)) }

func (s *state) recordMovedFileLossBefore(e effect.Effect, n int) {
	for i := n - 1; i >= 0; i-- {
		m := s.moves[i]
		if !s.spendSteps(1) {
			return
		}
		if !effect.Overlap(touchedPattern(&e), touchedPattern(&m.to), s.startPlace.FoldCase) {
			continue
		}
		lost := e
		lost.Path, lost.Pattern, lost.Tree, lost.Recursive = m.from.Path, m.from.Pattern, m.from.Tree, true
		s.emitOnce(lost)
		s.recordMovedFileLossBefore(lost, i)
	}
}

// touchedPattern returns a pattern of all paths that an effect touches.
func touchedPattern(e *effect.Effect) string {
	p := asPattern(e.Path, e.Pattern)
	if e.Recursive {
		p = path.Clean(p) + "/**"
	}
	return p
}

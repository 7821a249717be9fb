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

// A fileMove is a file or folder that the text moved, and its new path.
type fileMove struct{ from, to effect.Effect }

// recordMoves records the old and new paths of moved files, so that a later deletion of the new
// paths counts as deletion of these files.
func (s *analysisState) recordMoves(from []effect.Effect, writes []abstract.OutputTarget) {
	for _, f := range from {
		for _, w := range writes {
			if len(s.moves) == maxItemsPerAnalyzedList || f.Path == "" || w.Path == "" || s.remoteOrContainerDepth > 0 {
				return
			}
			s.moves = append(s.moves, fileMove{f, effect.Effect{Path: w.Path, PathIsPattern: w.PathIsGlobPattern, Recursive: true}})
			if f.PathIsPattern && !w.PathIsGlobPattern && s.isNotFolder(w.Path) {
				s.emitOnce(effect.Effect{Kind: effect.DestroyData, Program: "mv", Span: f.Span,
					Reason: "each file overwrites the one before, because the target folder does not exist: " + abstract.ClipForMessage(w.Path)})
			}
		}
	}
}

// isNotFolder reports whether a path is certainly not a folder: it is a file or does not exist, and the text does not
// create it.
func (s *analysisState) isNotFolder(p string) bool {
	before := s.effects
	for i := len(before) - 1; i >= 0; i-- { // exclude the effects of the current program
		if before[i].Kind == effect.Execute {
			before = before[:i]
			break
		}
	}
	if s.initialPathContext.ReadScript == nil || slices.ContainsFunc(before, func(e effect.Effect) bool {
		return e.Kind == effect.CreateDirectory && (e.PathIsPattern || e.Path == p || strings.HasPrefix(p, e.Path+"/") || strings.HasPrefix(e.Path, p+"/")) || e.Certainty == effect.Unknown || e.Kind == effect.WriteFile && (e.Recursive || strings.HasPrefix(e.Path, p+"/"))
	}) {
		return false
	}
	if _, err := s.initialPathContext.ReadScript(s.initialPathContext.CWD); errors.Is(err, fs.ErrNotExist) {
		return false // the file system is unknown
	}
	_, err := s.initialPathContext.ReadScript(p)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// recordMovedFileLoss records that deleting a path also deletes the files that the text moved there.
func (s *analysisState) recordMovedFileLoss(e effect.Effect) {
	s.recordEarlierMovedFileLoss(e, len(s.moves))
}

func (s *analysisState) recordEarlierMovedFileLoss(e effect.Effect, moveCount int) {
	for i := moveCount - 1; i >= 0; i-- {
		m := s.moves[i]
		if !s.spendSteps(1) {
			return
		}
		if !effect.PatternsOverlap(effectPathsGlob(&e), effectPathsGlob(&m.to), s.initialPathContext.FoldCase) {
			continue
		}
		lost := e
		lost.Path, lost.PathIsPattern, lost.DoubleStarExcludesDotDot, lost.Recursive = m.from.Path, m.from.PathIsPattern, m.from.DoubleStarExcludesDotDot, true
		s.emitOnce(lost)
		s.recordEarlierMovedFileLoss(lost, i)
	}
}

// effectPathsGlob returns a pattern of all paths that an effect touches.
func effectPathsGlob(e *effect.Effect) string {
	p := quoteUnlessPattern(e.Path, e.PathIsPattern)
	if e.Recursive {
		p = path.Clean(p) + "/**"
	}
	return p
}

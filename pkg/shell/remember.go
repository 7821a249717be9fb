package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// Earlier actions of the session leave labels on files: see [effect.PathContext].

// labelsFromEarlierActions returns the labels that a file has from earlier actions.
func (s *state) labelsFromEarlierActions(path string, isPattern bool) []effect.Label {
	if s.initialPathContext.OriginLabels == nil || path == "" || isPattern || s.remoteOrContainerDepth > 0 {
		return nil
	}
	return s.initialPathContext.OriginLabels(path)
}

// taintsFromEarlierActions returns the taints of a file that earlier actions labelled.
func (s *state) taintsFromEarlierActions(path string, isPattern bool) (t abstract.Taint) {
	for _, l := range s.labelsFromEarlierActions(path, isPattern) {
		for i := range taintLabels {
			if taintLabels[i].label == l {
				t |= taintLabels[i].taint
			}
		}
	}
	return t
}

// recordRunOfEarlierDownload records that a program runs a file that an earlier action
// downloaded, decoded or cloned.
func (s *state) recordRunOfEarlierDownload(programBaseName, path string, at effect.Span) {
	s.recordUntrustedFileRun(programBaseName, path, s.labelsFromEarlierActions(path, false), at)
}

// recordUntrustedFileRun records that a program runs a file if a label says that it was downloaded, decoded or cloned. It
// reports whether one does.
func (s *state) recordUntrustedFileRun(base, path string, labels []effect.Label, at effect.Span) bool {
	for _, l := range labels {
		if l == effect.LabelNetwork || l == effect.LabelDecoded || l == effect.LabelUntrusted {
			s.emitOnce(effect.Effect{
				Kind: effect.RunCode, Program: base, Path: path, Labels: []effect.Label{l},
				Reason: base + " runs code that an earlier action downloaded, decoded or cloned", Span: at,
			})
			return true
		}
	}
	return false
}

// writtenFilesWithTaintLabels returns the files that the analysed text writes and whose content has provenance
// labels, such as network or secret.
func (s *state) writtenFilesWithTaintLabels() (out []effect.File) {
	var done []string // paths whose final content is known
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		name, suffixed := strings.CutSuffix(f.path, effect.AnySuffix)
		if f.isPathPattern && (!suffixed || effect.Quote(name) != name) || f.consumingSubstitution != nil || strings.HasPrefix(f.path, "/dev/") || slices.Contains(done, f.path) {
			continue
		}
		if !f.isUncertain && !f.appends {
			done = append(done, f.path)
		}
		l := labelsOf(f.val.Taint)
		if f.isFromCodeHost {
			l = []effect.Label{effect.LabelUntrusted}
		}
		if len(l) > 0 {
			out = append(out, effect.File{Path: f.path, IncludesDescendants: f.isFolder, Labels: l})
		}
	}
	return out
}

package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// Earlier actions of the session leave labels on files: see [effect.PathContext].

// labelsFromEarlierActions returns the labels that a file has from earlier actions.
func (s *analysisState) labelsFromEarlierActions(path string, isPattern bool) []effect.TaintLabel {
	if s.initialPathContext.OriginLabels == nil || path == "" || isPattern || s.remoteOrContainerDepth > 0 {
		return nil
	}
	return s.initialPathContext.OriginLabels(path)
}

// taintsFromEarlierActions returns the taints of a file that earlier actions labelled.
func (s *analysisState) taintsFromEarlierActions(path string, isPattern bool) (t abstract.Taint) {
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
func (s *analysisState) recordRunOfEarlierDownload(programBaseName, path string, at effect.CommandTextSpan) {
	s.recordUntrustedFileRun(programBaseName, path, s.labelsFromEarlierActions(path, false), at)
}

// recordUntrustedFileRun records that a program runs a file if one of the file's labels says that
// the file was downloaded, decoded or cloned. It reports whether there is such a label.
func (s *analysisState) recordUntrustedFileRun(base, path string, labels []effect.TaintLabel, at effect.CommandTextSpan) bool {
	for _, l := range labels {
		if l == effect.LabelFromNetwork || l == effect.LabelDecoderOutput || l == effect.LabelUntrusted {
			s.emitOnce(effect.Effect{
				Kind: effect.RunCode, Program: base, Path: path, DataLabels: []effect.TaintLabel{l},
				Reason: base + " runs code that an earlier action downloaded, decoded or cloned", Span: at,
			})
			return true
		}
	}
	return false
}

// writtenFilesWithTaintLabels returns the files that the analysed text writes and whose content has provenance
// labels, such as network or secret.
func (s *analysisState) writtenFilesWithTaintLabels() (out []effect.LabelledFile) {
	var done []string // paths whose final content is known
	for i := len(s.writtenFiles) - 1; i >= 0; i-- {
		f := &s.writtenFiles[i]
		name, suffixed := strings.CutSuffix(f.path, effect.AnyFileSuffixPattern)
		if f.isPathPattern && (!suffixed || effect.QuoteGlobMeta(name) != name) || f.consumingProcessSubstitution != nil || strings.HasPrefix(f.path, "/dev/") || slices.Contains(done, f.path) {
			continue
		}
		if !f.isWriteUncertain && !f.appends {
			done = append(done, f.path)
		}
		l := labelsOf(f.content.Taint)
		if f.isFromCodeHost {
			l = []effect.TaintLabel{effect.LabelUntrusted}
		}
		if len(l) > 0 {
			out = append(out, effect.LabelledFile{Path: f.path, IncludesDescendants: f.isFolder, Labels: l})
		}
	}
	return out
}

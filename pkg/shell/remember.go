package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// Earlier actions of the session leave labels on files: see [effect.Place].

// origin returns the labels that a file has from earlier actions.
func (s *state) origin(path string, pattern bool) []effect.Label {
	if s.at.Origin == nil || path == "" || pattern || s.remote > 0 {
		return nil
	}
	return s.at.Origin(path)
}

// held returns the taints of a file that earlier actions labelled.
func (s *state) held(path string, pattern bool) (t abstract.Taint) {
	for _, l := range s.origin(path, pattern) {
		for i := range labelled {
			if labelled[i].label == l {
				t |= labelled[i].taint
			}
		}
	}
	return t
}

// broughtBefore records that a program runs a file that an earlier action
// downloaded, decoded or cloned.
func (s *state) broughtBefore(base, path string, at effect.Span) {
	s.runsBrought(base, path, s.origin(path, false), at)
}

// runsBrought records that a program runs a file if a label says that it was downloaded, decoded or cloned. It
// reports whether one does.
func (s *state) runsBrought(base, path string, labels []effect.Label, at effect.Span) bool {
	for _, l := range labels {
		if l == effect.LabelNetwork || l == effect.LabelDecoded || l == effect.LabelUntrusted {
			s.emitOnce(effect.Effect{
				Kind: effect.RunCode, Program: base, Path: path, Labels: []effect.Label{l},
				Reason: base + " runs code that an earlier action downloaded, decoded or cloned", From: at,
			})
			return true
		}
	}
	return false
}

// labelled returns the files with labels that the text leaves behind.
func (s *state) labelled() (out []effect.File) {
	var done []string // paths whose final content is known
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		name, suffixed := strings.CutSuffix(f.path, effect.AnySuffix)
		if f.pattern && (!suffixed || effect.Quote(name) != name) || f.consumer != nil || strings.HasPrefix(f.path, "/dev/") || slices.Contains(done, f.path) {
			continue
		}
		if !f.weak && !f.append {
			done = append(done, f.path)
		}
		l := labels(f.val.Taint)
		if f.hosted {
			l = []effect.Label{effect.LabelUntrusted}
		}
		if len(l) > 0 {
			out = append(out, effect.File{Path: f.path, Tree: f.tree, Labels: l})
		}
	}
	return out
}

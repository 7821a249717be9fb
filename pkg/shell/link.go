package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A fileLink is a symbolic or hard link that the text creates.
type fileLink struct {
	linkPath, targetPath string
	isLinkPathPattern    bool // linkPath is a pattern; only a path that begins with exactly this pattern leads through the link
}

const maxItemsPerAnalyzedList = 64

// recordLink records that a path becomes a link to the file that a word names. An effect on the
// link's path is always recorded for that path. Links after the first maxItemsPerAnalyzedList, and links to
// unknown paths, are not followed: effects through them are not recorded for their targets.
func (s *analysisState) recordLink(linkPath string, isLinkPathPattern bool, target abstract.Value) {
	if len(s.fileLinks) == maxItemsPerAnalyzedList || linkPath == "" || !target.IsLiteral() || s.remoteOrContainerDepth > 0 {
		return
	}
	path, pattern := s.workingFolderContext().CanonicalPath(target.Text, false)
	if !pattern && path != linkPath {
		s.fileLinks = append(s.fileLinks, fileLink{linkPath, path, isLinkPathPattern})
	}
}

// emitForFileLinkTargets repeats an effect on a path for the target of each link in the path.
func (s *analysisState) emitForFileLinkTargets(e effect.Effect) {
	for _, l := range s.fileLinks {
		at, to := l.linkPath, l.targetPath
		switch {
		case l.isLinkPathPattern && !e.PathIsPattern:
			continue
		case e.PathIsPattern:
			to = effect.QuoteGlobMeta(to)
			if !l.isLinkPathPattern {
				at = effect.QuoteGlobMeta(at)
			}
		}
		rest, ok := strings.CutPrefix(e.Path, at)
		if ok && (rest == "" || rest[0] == '/') {
			e := e
			e.Path = strings.TrimSuffix(to, "/") + rest
			s.emitOnce(e)
		}
	}
}

// recordFileLinks records the links that ln creates.
func (s *analysisState) recordFileLinks(base string, sources []abstract.Value, writes []abstract.OutputTarget) {
	switch base {
	case "ln", "gln", "link":
	default:
		return
	}
	for _, src := range sources[:min(len(sources), maxItemsPerAnalyzedList)] {
		for _, w := range writes[:min(len(writes), maxItemsPerAnalyzedList)] {
			s.recordLink(w.Path, w.PathIsGlobPattern, src)
		}
	}
}

// linksToSecret reports whether a path goes through a link that the analysed command creates to a file that
// holds credentials.
func (s *analysisState) linksToSecret(p string) bool {
	for _, l := range s.fileLinks {
		rest, ok := strings.CutPrefix(p, l.linkPath)
		if ok && (rest == "" || rest[0] == '/') && effect.IsSecretPath(strings.TrimSuffix(l.targetPath, "/")+rest, false) {
			return true
		}
	}
	return false
}

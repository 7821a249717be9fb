package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A GlobExpansion is the list of paths on the disk that the path pattern (glob) of an effect
// matches.
type GlobExpansion struct {
	Paths              []string // canonical, with symbolic links resolved
	DotFilesAmongPaths []string // paths of Paths that a shell omits unless globs match leading dots
	Complete           bool     // Paths is complete, and the action itself does not change that
}

const (
	maxExpandedPaths         = 512  // paths
	maxNamesComparedWithGlob = 8192 // names that are compared with the pattern
)

// ExpandPathGlob returns the paths on the disk that the pattern of an effect matches.
func (c *ActionCase) ExpandPathGlob(e *effect.Effect) GlobExpansion {
	if c.files == nil || !e.PathIsPattern || strings.HasPrefix(e.Path, "*") {
		return GlobExpansion{}
	}
	key := globExpansionKey{e.Path, e.DoubleStarExcludesDotDot}
	if x, ok := c.globExpansions[key]; ok {
		return x
	}
	if c.globExpansions == nil {
		c.globExpansions = map[globExpansionKey]GlobExpansion{}
	}
	w := globExpander{disk: localNoSymlinkDisk{c.files}, foldCase: c.executionContext.FoldCase, found: GlobExpansion{Complete: true}, matchDotFiles: e.DoubleStarExcludesDotDot}
	wild := strings.IndexAny(e.Path, `*?[\`)
	cut := strings.LastIndexByte(e.Path[:max(wild, 0)], '/')
	if cut <= 0 || strings.Contains(e.Path, "**") && !e.DoubleStarExcludesDotDot {
		return GlobExpansion{}
	}
	dir, err := c.files.resolvePath(e.Path[:cut])
	switch {
	case err == nil:
		w.expandFolder(dir, strings.Split(e.Path[cut+1:], "/"), false)
	case !errors.Is(err, fs.ErrNotExist):
		w.found.Complete = false
	}
	w.found.Complete = w.found.Complete && !slices.ContainsFunc(c.Effects, mayRewriteGitHistory) && !c.mayActionCreateGlobMatch(e)
	c.globExpansions[key] = w.found
	return w.found
}

// A globExpansionKey identifies a pattern in the cache.
type globExpansionKey struct {
	globPath               string
	globStarMatchesFolders bool
}

// mayActionCreateGlobMatch reports whether the action may create a file that an effect's pattern matches, or a folder above
// one.
func (c *ActionCase) mayActionCreateGlobMatch(e *effect.Effect) bool {
	return slices.ContainsFunc(c.Effects, func(o effect.Effect) bool {
		switch o.Kind {
		case effect.WriteFile, effect.CreateDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
			return o.Path == "" || effect.PatternsOverlap(strings.TrimSuffix(effectPathPattern(&o), "/**")+"/**", effectPathPattern(e), true)
		}
		return false
	})
}

// A globExpander walks the folders that a pattern matches.
type globExpander struct {
	disk          localNoSymlinkDisk
	foldCase      bool
	matchDotFiles bool // wildcards match leading dots
	namesWalked   int
	found         GlobExpansion
}

// expandFolder adds the paths in a folder that the segments of a pattern match. The folder's path has no symbolic
// links.
func (w *globExpander) expandFolder(dir string, segments []string, hidden bool) {
	names, err := w.disk.ReadDir(dir, maxNamesComparedWithGlob-w.namesWalked+1)
	w.namesWalked += len(names)
	if err != nil || w.namesWalked > maxNamesComparedWithGlob {
		w.found.Complete = w.found.Complete && errors.Is(err, fs.ErrNotExist)
		return
	}
	for _, n := range names {
		w.addPathsMatchingEntry(dir, n, segments, hidden)
		if segments[0] == "**" && len(segments) > 1 {
			w.addPathsMatchingEntry(dir, n, segments[1:], hidden)
		}
		if !w.found.Complete {
			return
		}
	}
}

// addPathsMatchingEntry adds the paths that the segments match, starting with one entry of a folder.
func (w *globExpander) addPathsMatchingEntry(dir string, n fs.DirEntry, segments []string, hidden bool) {
	name, first, rest := n.Name(), segments[0], segments[1:]
	if !effect.PatternsOverlap(first, effect.QuoteGlobMeta(name), w.foldCase) {
		return
	}
	at := path.Join(dir, name)
	hidden = hidden || name[0] == '.' && first[0] != '.' && !w.matchDotFiles
	if first == "**" {
		if n.IsDir() {
			w.expandFolder(at, segments, hidden)
		}
		if len(rest) > 0 {
			return
		}
	}
	link := n.Type()&fs.ModeSymlink != 0
	if len(rest) == 0 {
		w.addPath(at, hidden)
	} else if n.IsDir() {
		w.expandFolder(at, rest, hidden)
	}
	if !link {
		return
	}
	real, err := w.disk.files.resolvePath(at)
	switch {
	case err != nil:
		w.found.Complete = w.found.Complete && errors.Is(err, fs.ErrNotExist)
	case len(rest) == 0:
		w.addPath(real, hidden)
	default:
		w.expandFolder(real, rest, hidden)
	}
}

func (w *globExpander) addPath(at string, hidden bool) {
	if len(w.found.Paths)+len(w.found.DotFilesAmongPaths) == maxExpandedPaths {
		w.found.Complete = false
		return
	}
	if hidden {
		w.found.DotFilesAmongPaths = append(w.found.DotFilesAmongPaths, at)
	} else {
		w.found.Paths = append(w.found.Paths, at)
	}
}

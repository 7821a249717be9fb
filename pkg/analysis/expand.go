package analysis

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// An Expansion is the list of paths on the disk that the pattern of an effect matches.
type Expansion struct {
	Paths        []string // canonical, with symbolic links resolved
	DotFilePaths []string // paths of Paths that a shell omits unless globs match leading dots
	Complete     bool     // Paths is complete, and the action itself does not change that
}

const (
	maxExpandedPaths = 512  // paths
	maxWalkedNames   = 8192 // names that are compared with the pattern
)

// Expand returns the paths on the disk that the pattern of an effect matches.
func (c *ActionCase) Expand(e *effect.Effect) Expansion {
	if c.files == nil || !e.PathIsPattern || strings.HasPrefix(e.Path, "*") {
		return Expansion{}
	}
	key := expansionKey{e.Path, e.DoubleStarExcludesDotDot}
	if x, ok := c.expansions[key]; ok {
		return x
	}
	if c.expansions == nil {
		c.expansions = map[expansionKey]Expansion{}
	}
	w := expander{disk: disk{c.files}, foldCase: c.executionContext.FoldCase, found: Expansion{Complete: true}, matchDotFiles: e.DoubleStarExcludesDotDot}
	wild := strings.IndexAny(e.Path, `*?[\`)
	cut := strings.LastIndexByte(e.Path[:max(wild, 0)], '/')
	if cut <= 0 || strings.Contains(e.Path, "**") && !e.DoubleStarExcludesDotDot {
		return Expansion{}
	}
	dir, err := c.files.resolvePath(e.Path[:cut])
	switch {
	case err == nil:
		w.expandFolder(dir, strings.Split(e.Path[cut+1:], "/"), false)
	case !errors.Is(err, fs.ErrNotExist):
		w.found.Complete = false
	}
	w.found.Complete = w.found.Complete && !slices.ContainsFunc(c.Effects, mayRewriteGitHistory) && !c.mayCreate(e)
	c.expansions[key] = w.found
	return w.found
}

// An expansionKey identifies a pattern in the cache.
type expansionKey struct {
	path                   string
	globStarMatchesFolders bool
}

// mayCreate reports whether the action may create a file that an effect's pattern matches, or a folder above
// one.
func (c *ActionCase) mayCreate(e *effect.Effect) bool {
	return slices.ContainsFunc(c.Effects, func(o effect.Effect) bool {
		switch o.Kind {
		case effect.WriteFile, effect.CreateDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
			return o.Path == "" || effect.Overlap(strings.TrimSuffix(effectPathPattern(&o), "/**")+"/**", effectPathPattern(e), true)
		}
		return false
	})
}

// An expander walks the folders that a pattern matches.
type expander struct {
	disk          disk
	foldCase      bool
	matchDotFiles bool // wildcards match leading dots
	namesWalked   int
	found         Expansion
}

// expandFolder adds the paths in a folder that the segments of a pattern match. The folder's path has no symbolic
// links.
func (w *expander) expandFolder(dir string, segments []string, hidden bool) {
	names, err := w.disk.ReadDir(dir, maxWalkedNames-w.namesWalked+1)
	w.namesWalked += len(names)
	if err != nil || w.namesWalked > maxWalkedNames {
		w.found.Complete = w.found.Complete && errors.Is(err, fs.ErrNotExist)
		return
	}
	for _, n := range names {
		w.matchName(dir, n, segments, hidden)
		if segments[0] == "**" && len(segments) > 1 {
			w.matchName(dir, n, segments[1:], hidden)
		}
		if !w.found.Complete {
			return
		}
	}
}

// matchName adds the paths that the segments match, starting with one entry of a folder.
func (w *expander) matchName(dir string, n fs.DirEntry, segments []string, hidden bool) {
	name, first, rest := n.Name(), segments[0], segments[1:]
	if !effect.Overlap(first, effect.Quote(name), w.foldCase) {
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

func (w *expander) addPath(at string, hidden bool) {
	if len(w.found.Paths)+len(w.found.DotFilePaths) == maxExpandedPaths {
		w.found.Complete = false
		return
	}
	if hidden {
		w.found.DotFilePaths = append(w.found.DotFilePaths, at)
	} else {
		w.found.Paths = append(w.found.Paths, at)
	}
}

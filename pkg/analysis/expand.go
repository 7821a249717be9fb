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
	Paths  []string // canonical, with symbolic links resolved
	Hidden []string // paths of Paths that a shell omits unless globs match leading dots
	Whole  bool     // Paths is complete, and the action itself does not change that
}

const (
	maxExpanded = 512  // paths
	maxWalked   = 8192 // names that are compared with the pattern
)

// Expand returns the paths on the disk that the pattern of an effect matches.
func (c *Case) Expand(e *effect.Effect) Expansion {
	if c.files == nil || !e.Pattern || strings.HasPrefix(e.Path, "*") {
		return Expansion{}
	}
	key := expansionKey{e.Path, e.Tree}
	if x, ok := c.expansions[key]; ok {
		return x
	}
	if c.expansions == nil {
		c.expansions = map[expansionKey]Expansion{}
	}
	w := expander{disk: disk{c.files}, fold: c.place.FoldCase, found: Expansion{Whole: true}, tree: e.Tree}
	wild := strings.IndexAny(e.Path, `*?[\`)
	cut := strings.LastIndexByte(e.Path[:max(wild, 0)], '/')
	if cut <= 0 || strings.Contains(e.Path, "**") && !e.Tree {
		return Expansion{}
	}
	dir, err := c.files.follow(e.Path[:cut])
	switch {
	case err == nil:
		w.folder(dir, strings.Split(e.Path[cut+1:], "/"), false)
	case !errors.Is(err, fs.ErrNotExist):
		w.found.Whole = false
	}
	w.found.Whole = w.found.Whole && !slices.ContainsFunc(c.Effects, makesHistoryUnknown) && !c.mayCreate(e)
	c.expansions[key] = w.found
	return w.found
}

// An expansionKey identifies a pattern in the cache.
type expansionKey struct {
	path string
	tree bool
}

// mayCreate reports whether the action may create a file that an effect's pattern matches, or a folder above
// one.
func (c *Case) mayCreate(e *effect.Effect) bool {
	return slices.ContainsFunc(c.Effects, func(o effect.Effect) bool {
		switch o.Kind {
		case effect.WriteFile, effect.CreateDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
			return o.Path == "" || effect.Overlap(strings.TrimSuffix(touchedPattern(&o), "/**")+"/**", touchedPattern(e), true)
		}
		return false
	})
}

// An expander walks the folders that a pattern matches.
type expander struct {
	disk   disk
	fold   bool
	tree   bool // wildcards match leading dots
	walked int
	found  Expansion
}

// folder adds the paths in a folder that the segments of a pattern match. The folder's path has no symbolic
// links.
func (w *expander) folder(dir string, segments []string, hidden bool) {
	names, err := w.disk.ReadDir(dir, maxWalked-w.walked+1)
	w.walked += len(names)
	if err != nil || w.walked > maxWalked {
		w.found.Whole = w.found.Whole && errors.Is(err, fs.ErrNotExist)
		return
	}
	for _, n := range names {
		w.matchName(dir, n, segments, hidden)
		if segments[0] == "**" && len(segments) > 1 {
			w.matchName(dir, n, segments[1:], hidden)
		}
		if !w.found.Whole {
			return
		}
	}
}

// matchName adds the paths that the segments match, starting with one entry of a folder.
func (w *expander) matchName(dir string, n fs.DirEntry, segments []string, hidden bool) {
	name, first, rest := n.Name(), segments[0], segments[1:]
	if !effect.Overlap(first, effect.Quote(name), w.fold) {
		return
	}
	at := path.Join(dir, name)
	hidden = hidden || name[0] == '.' && first[0] != '.' && !w.tree
	if first == "**" {
		if n.IsDir() {
			w.folder(at, segments, hidden)
		}
		if len(rest) > 0 {
			return
		}
	}
	link := n.Type()&fs.ModeSymlink != 0
	if len(rest) == 0 {
		w.add(at, hidden)
	} else if n.IsDir() {
		w.folder(at, rest, hidden)
	}
	if !link {
		return
	}
	real, err := w.disk.files.follow(at)
	switch {
	case err != nil:
		w.found.Whole = w.found.Whole && errors.Is(err, fs.ErrNotExist)
	case len(rest) == 0:
		w.add(real, hidden)
	default:
		w.folder(real, rest, hidden)
	}
}

func (w *expander) add(at string, hidden bool) {
	if len(w.found.Paths)+len(w.found.Hidden) == maxExpanded {
		w.found.Whole = false
		return
	}
	if hidden {
		w.found.Hidden = append(w.found.Hidden, at)
	} else {
		w.found.Paths = append(w.found.Paths, at)
	}
}

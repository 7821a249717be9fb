package effect

import (
	"slices"
	"strings"
	"sync"
)

// PathList is a sorted list of canonical paths that caches selections from it. Goroutines share it; nil is
// empty.
type PathList struct {
	all     []string
	version int // number of the change that led to this list, counted from 0
	cache   *pathListSelectCache

	byBaseNameOnce sync.Once
	byBaseName     map[string][]string
}

// pathListSelectCache caches the results of [PathList.Select] for the versions of a list that changes over time.
type pathListSelectCache struct {
	mu                 sync.Mutex
	selections         map[any]pathListSelectResult
	addedPaths         []pathListAddition
	newestListVersion  int // version of the newest list that shares this cache
	lastRemovalVersion int // number of the last change that removed a path
}

type pathListSelectResult struct {
	listVersion int // version of the list from which the paths were selected
	paths       []string
}

type pathListAddition struct {
	listVersion int
	path        string
}

// Limits of a [pathListSelectCache].
const (
	maxCachedSelectResults = 256  // selections
	maxPathListAdditions   = 4096 // paths added by all changes together
)

// NewPathList returns a PathList with the paths of a sorted list. The caller must not change the
// list afterwards.
func NewPathList(sorted []string) *PathList {
	return &PathList{all: sorted, cache: &pathListSelectCache{selections: map[any]pathListSelectResult{}}}
}

// Update returns a PathList with the paths of a sorted list that differs little from the paths of
// p. It reuses the cached selections of p.
func (p *PathList) Update(sorted []string) *PathList {
	if p == nil {
		return NewPathList(sorted)
	}
	c := p.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(p.all, sorted) {
		return p
	}
	added, gone := diffSorted(p.all, sorted)
	if p.version != c.newestListVersion || len(c.addedPaths)+len(added) > maxPathListAdditions {
		return NewPathList(sorted)
	}
	c.newestListVersion++
	for _, path := range added {
		c.addedPaths = append(c.addedPaths, pathListAddition{c.newestListVersion, path})
	}
	if gone {
		c.lastRemovalVersion = c.newestListVersion
	}
	return &PathList{all: sorted, version: c.newestListVersion, cache: c}
}

// diffSorted returns the texts that sorted has and old has not, and whether a text of old is gone. Both are
// sorted.
func diffSorted(old, sorted []string) (added []string, gone bool) {
	for _, text := range sorted {
		for len(old) > 0 && old[0] < text {
			old, gone = old[1:], true
		}
		if len(old) > 0 && old[0] == text {
			old = old[1:]
		} else {
			added = append(added, text)
		}
	}
	return added, gone || len(old) > 0
}

// All returns all paths.
func (p *PathList) All() []string {
	if p == nil {
		return nil
	}
	return p.all
}

// Select returns the paths that choose accepts, in order. The result is cached under key, so a different
// choose needs a different key.
func (p *PathList) Select(key any, choose func(path string) bool) (out []string) {
	if p == nil || len(p.all) == 0 {
		return nil
	}
	c := p.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, ok := c.selections[key]
	switch {
	case ok && kept.listVersion == p.version:
		return kept.paths
	case ok && kept.listVersion < p.version:
		out = p.updateSelection(kept, choose)
	default:
		for _, path := range p.all {
			if choose(path) {
				out = append(out, path)
			}
		}
	}
	if !ok && len(c.selections) == maxCachedSelectResults {
		clear(c.selections)
	}
	if !ok || kept.listVersion < p.version {
		c.selections[key] = pathListSelectResult{p.version, out}
	}
	return out
}

// updateSelection updates a cached selection: it adds accepted new paths and drops removed ones.
func (p *PathList) updateSelection(kept pathListSelectResult, choose func(path string) bool) []string {
	c, out := p.cache, slices.Clone(kept.paths)
	first, _ := slices.BinarySearchFunc(c.addedPaths, kept.listVersion+1, func(a pathListAddition, at int) int { return a.listVersion - at })
	for _, a := range c.addedPaths[first:] {
		if a.listVersion <= p.version && choose(a.path) {
			out = append(out, a.path)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if c.lastRemovalVersion > kept.listVersion {
		out = slices.DeleteFunc(out, func(path string) bool { _, there := slices.BinarySearch(p.all, path); return !there })
	}
	return out
}

// WithBaseName returns the paths whose last name is name, in order.
func (p *PathList) WithBaseName(name string) []string {
	if p == nil || len(p.all) == 0 {
		return nil
	}
	p.byBaseNameOnce.Do(func() {
		p.byBaseName = make(map[string][]string, len(p.all))
		for _, path := range p.all {
			last := path[strings.LastIndexByte(path, '/')+1:]
			p.byBaseName[last] = append(p.byBaseName[last], path)
		}
	})
	return p.byBaseName[name]
}

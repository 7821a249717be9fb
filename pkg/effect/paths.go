package effect

import (
	"slices"
	"strings"
	"sync"
)

// Paths is a sorted list of canonical paths that caches selections from it. Goroutines share it; nil is
// empty.
type Paths struct {
	all     []string
	at      int // number of the change that led to this list, counted from 0
	choices *choices

	once  sync.Once
	named map[string][]string
}

// choices caches the selections from a list that changes over time.
type choices struct {
	mu    sync.Mutex
	kept  map[any]choice
	added []addition
	last  int // number of the last change
	gone  int // number of the last change that removed a path
}

type choice struct {
	at    int // number of the change after which it was made
	paths []string
}

type addition struct {
	at   int
	path string
}

// Limits of the cache.
const (
	maxChosen = 256  // selections
	maxAdded  = 4096 // paths added by all changes together
)

// NewPaths returns Paths of a sorted list. The caller must not change the list afterwards.
func NewPaths(sorted []string) *Paths {
	return &Paths{all: sorted, choices: &choices{kept: map[any]choice{}}}
}

// Next returns Paths of a sorted list that differs little from that of p. It reuses the cached selections.
func (p *Paths) Next(sorted []string) *Paths {
	if p == nil {
		return NewPaths(sorted)
	}
	c := p.choices
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(p.all, sorted) {
		return p
	}
	added, gone := difference(p.all, sorted)
	if p.at != c.last || len(c.added)+len(added) > maxAdded {
		return NewPaths(sorted)
	}
	c.last++
	for _, path := range added {
		c.added = append(c.added, addition{c.last, path})
	}
	if gone {
		c.gone = c.last
	}
	return &Paths{all: sorted, at: c.last, choices: c}
}

// difference returns the texts that sorted has and old has not, and whether a text of old is gone. Both are
// sorted.
func difference(old, sorted []string) (added []string, gone bool) {
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
func (p *Paths) All() []string {
	if p == nil {
		return nil
	}
	return p.all
}

// Chosen returns the paths that choose accepts, in order. The result is cached under key, so a different
// choose needs a different key.
func (p *Paths) Chosen(key any, choose func(path string) bool) (out []string) {
	if p == nil || len(p.all) == 0 {
		return nil
	}
	c := p.choices
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, ok := c.kept[key]
	switch {
	case ok && kept.at == p.at:
		return kept.paths
	case ok && kept.at < p.at:
		out = p.since(kept, choose)
	default:
		for _, path := range p.all {
			if choose(path) {
				out = append(out, path)
			}
		}
	}
	if !ok && len(c.kept) == maxChosen {
		clear(c.kept)
	}
	if !ok || kept.at < p.at {
		c.kept[key] = choice{p.at, out}
	}
	return out
}

// since updates a cached selection: it adds accepted new paths and drops removed ones.
func (p *Paths) since(kept choice, choose func(path string) bool) []string {
	c, out := p.choices, slices.Clone(kept.paths)
	first, _ := slices.BinarySearchFunc(c.added, kept.at+1, func(a addition, at int) int { return a.at - at })
	for _, a := range c.added[first:] {
		if a.at <= p.at && choose(a.path) {
			out = append(out, a.path)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if c.gone > kept.at {
		out = slices.DeleteFunc(out, func(path string) bool { _, there := slices.BinarySearch(p.all, path); return !there })
	}
	return out
}

// Named returns the paths whose last name is name, in order.
func (p *Paths) Named(name string) []string {
	if p == nil || len(p.all) == 0 {
		return nil
	}
	p.once.Do(func() {
		p.named = make(map[string][]string, len(p.all))
		for _, path := range p.all {
			last := path[strings.LastIndexByte(path, '/')+1:]
			p.named[last] = append(p.named[last], path)
		}
	})
	return p.named[name]
}

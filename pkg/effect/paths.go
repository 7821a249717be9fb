package effect

import (
	"slices"
	"strings"
	"sync"
)

// Paths are canonical paths in their order. What was chosen of them is kept, so that
// looking for it again costs nothing. Goroutines share them; nil holds no path.
type Paths struct {
	all     []string
	at      int // the change after which these are the paths, counted from 0
	choices *choices

	once  sync.Once
	named map[string][]string
}

// choices are what was chosen of paths that change, and of those that came after them.
type choices struct {
	mu    sync.Mutex
	kept  map[any]choice
	added []addition
	last  int // the last change
	gone  int // the last change that removed any
}

type choice struct {
	at    int // the change that it was made after
	paths []string
}

type addition struct {
	at   int
	path string
}

// Bounds of what is kept.
const (
	maxChosen = 256  // choices
	maxAdded  = 4096 // paths, in all changes
)

// NewPaths returns paths that are sorted and do not change any more.
func NewPaths(sorted []string) *Paths {
	return &Paths{all: sorted, choices: &choices{kept: map[any]choice{}}}
}

// Next returns paths that are sorted, which are mostly those of p: of these, what was
// chosen is not looked for again.
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

// difference returns what sorted texts have that others have not, and whether any of
// those is gone.
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

// Chosen returns the paths that choose accepts, in their order. key stands for choose:
// what accepts other paths has another one.
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

// since returns an earlier choice with what was added since, and without what is gone.
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

// Named returns the paths with a last name, in their order.
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

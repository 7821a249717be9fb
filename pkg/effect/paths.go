package effect

import (
	"strings"
	"sync"
)

// Paths are canonical paths in their order. What was chosen of them is kept, so that
// looking for it again costs nothing. Goroutines share them; nil holds no path.
type Paths struct {
	all    []string
	mu     sync.Mutex
	chosen map[any][]string
	named  map[string][]string
}

// maxChosen is how many choices are kept.
const maxChosen = 256

// NewPaths returns paths that are sorted and do not change any more.
func NewPaths(sorted []string) *Paths { return &Paths{all: sorted} }

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
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok := p.chosen[key]; ok {
		return kept
	}
	for _, path := range p.all {
		if choose(path) {
			out = append(out, path)
		}
	}
	if p.chosen == nil || len(p.chosen) == maxChosen {
		p.chosen = map[any][]string{}
	}
	p.chosen[key] = out
	return out
}

// Named returns the paths with a last name, in their order.
func (p *Paths) Named(name string) []string {
	if p == nil || len(p.all) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.named == nil {
		p.named = make(map[string][]string, len(p.all))
		for _, path := range p.all {
			last := path[strings.LastIndexByte(path, '/')+1:]
			p.named[last] = append(p.named[last], path)
		}
	}
	return p.named[name]
}

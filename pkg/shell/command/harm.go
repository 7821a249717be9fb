package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// harms records the harm of an action.
func (r *reader) harms(h effect.Harm) {
	if h != "" && !slices.Contains(r.use.Harms, h) {
		r.use.Harms = append(r.use.Harms, h)
	}
}

// mayHarm records the harms of all subcommands and options in arguments that were not understood: a word after an
// unknown option may be its value or not.
func (r *reader) mayHarm() {
	r.depth, r.level = 1, r.levels[0]
	for _, w := range r.args[1:] {
		if w.Pattern || w.Text == "" {
			continue
		}
		name := w.Text
		if r.level.style&slash != 0 {
			name = strings.ToLower(name)
		}
		g := find(r.level.subs, name)
		if g == nil {
			g = findPrefixed(r.level.subs, name, 2)
		}
		if g != nil && r.depth < maxDepth {
			r.levels[r.depth], r.level = g, g
			r.depth++
			if g.base != nil {
				r.harms(g.base.harm)
			}
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		if a := r.lookup(name); a != nil {
			r.harms(a.harm)
			continue
		}
		if hasPrefix(name, "--") {
			if a := r.abbreviated(name); a != nil {
				r.harms(a.harm)
			}
			continue
		}
		r.lettersHarm(name)
	}
}

// lettersHarm records the harm of bundled option letters, one of which is unknown.
func (r *reader) lettersHarm(word string) {
	if len(word) < 3 || word[0] != '-' || word[1] == '-' {
		return
	}
	for k := 1; k < len(word); k++ {
		if a := r.lookup("-" + word[k:k+1]); a != nil {
			r.harms(a.harm)
		}
	}
}

// Names reports whether a word is a subcommand or option of a program, at any depth; listed is false for programs
// without an entry.
func Names(program, word string) (is, listed bool) {
	g := lookup(program)
	return g != nil && g.has(word, maxDepth), g != nil
}

func (g *syntax) has(word string, depth int) bool {
	if depth == 0 {
		return false
	}
	if find(g.subs, word) != nil || find(g.options, word) != nil || g.hasGroup(word) {
		return true
	}
	return slices.ContainsFunc(g.subs, func(s program) bool { return s.does.has(word, depth-1) })
}

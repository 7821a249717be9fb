package effect

import (
	"math/bits"
	"slices"
	"strings"
)

// Touches reports whether some path that an effect touches could match a glob, and the least index of such a
// glob. path, pattern and recursive are fields of the [Effect]. Case is ignored, so that a rule protects its
// files on every file system.
//
// A pattern or a recursively read folder may contain any file, so two cases need evidence: at least one name
// of the glob must also be in the path. These are a pattern with an unknown start ("**/id_rsa" matches
// "~/.ssh/id_rsa", but not "~/.ssh/**"), and a glob with a free start (a recursive read of "/src" does not
// match "**/.env", one of "/src/.git" matches "**/.git/hooks/**").
func (g *Globs) Touches(path string, pattern, recursive bool) (index int, ok bool) {
	f := finder{g: g, best: -1}
	f.touch(path, pattern, recursive)
	return f.best, f.best >= 0
}

// TouchesBelow is like [Globs.Touches] for a pattern whose "**" matches searched folders, which cannot lead
// outside, see [Effect.Tree].
func (g *Globs) TouchesBelow(path string, recursive bool) (index int, ok bool) {
	f := finder{g: g, best: -1, tree: true}
	f.touch(path, true, recursive)
	return f.best, f.best >= 0
}

// AppendTouched appends the indices of all globs that an effect could touch to
// dst, in ascending order.
func (g *Globs) AppendTouched(dst []int, path string, pattern, recursive bool) []int {
	f := finder{g: g, best: -1, all: true, found: dst}
	f.touch(path, pattern, recursive)
	return f.sorted(len(dst))
}

// Covers reports whether every path that an effect touches certainly matches one glob, and the least index of
// such a glob. Case matters, except in Windows paths. tree is [Effect.Tree].
func (g *Globs) Covers(path string, pattern, tree, recursive bool) (index int, ok bool) {
	f := finder{g: g, best: -1}
	f.cover(path, pattern, tree, recursive)
	return f.best, f.best >= 0
}

// AppendCovering appends the indices of all globs that cover an effect, see [Globs.Covers], to dst, in
// ascending order.
func (g *Globs) AppendCovering(dst []int, path string, pattern, tree, recursive bool) []int {
	f := finder{g: g, best: -1, all: true, found: dst}
	f.cover(path, pattern, tree, recursive)
	return f.sorted(len(dst))
}

// A finder is the state of matching one path with a set of globs.
type finder struct {
	g         *Globs
	best      int
	all       bool
	found     []int
	recursive bool
	pattern   bool
	tree      bool // "**" of the path stays inside the folder before it
	anywhere  bool // the start of the path is unknown
	covering  bool // search for rules that match with certainty
	folded    bool // the path's case is folded
}

func (f *finder) hit(r *rule) {
	if f.best < 0 || r.glob < f.best {
		f.best = r.glob
	}
	if f.all {
		f.found = append(f.found, r.glob)
	}
}

func (f *finder) sorted(from int) []int {
	slices.Sort(f.found[from:])
	return append(f.found[:from], slices.Compact(f.found[from:])...)
}

func (f *finder) touch(path string, pattern, recursive bool) {
	var buf [32]segment
	segs := split(buf[:0], foldPath(clipIf(path, pattern)), pattern)
	f.recursive, f.pattern = recursive, pattern
	if !pattern {
		f.literal(segs)
		return
	}
	first, second := unfold(segs)
	f.walk(first)
	if second != nil {
		f.walk(second)
	}
}

// clipIf limits the length of a pattern.
func clipIf(path string, pattern bool) string {
	if pattern {
		return clip(path)
	}
	return path
}

// literal finds the rules that match a path without wildcards.
func (f *finder) literal(path []segment) {
	g := f.g
	f.below(&g.abs, path)
	entered := -1 // length of the last matched home folder, since several may name the same
	for _, home := range g.homes {
		if len(home) == entered || len(g.home.all) == 0 {
			continue
		}
		if rest, ok := f.enter(home, path); ok {
			entered = len(home)
			f.below(&g.home, rest)
		}
	}
	f.floating(path)
}

// floating tries the rules that may match from any segment on.
func (f *finder) floating(path []segment) {
	float := &f.g.float
	for i := range path {
		if path[i].kind != literal {
			continue
		}
		f.named(float, path[i:])
	}
	for _, id := range float.wild {
		r := f.g.rule(id)
		if r.lone && len(path) > 0 {
			if last := &path[len(path)-1]; !f.covering && last.kind == literal && !r.open && !r.segs[0].may(last.text) {
				continue
			}
			f.try(r, path[len(path)-1:], 1)
		} else {
			f.try(r, path, 1)
		}
	}
}

// named tries the rules of an index that begin with the first name of a path.
func (f *finder) named(ix *index, path []segment) {
	name := f.key(path[0].text)
	for id := *ix.head(name); id >= 0; id = f.g.sources[id].next {
		if f.g.sources[id].first == name {
			f.try(f.g.rule(id), path, 1)
		}
	}
}

// key returns the text of a segment as the index stores it.
func (f *finder) key(text string) string {
	if f.covering {
		return foldPath(text)
	}
	return text
}

// enter returns the rest of a path below a folder. If the path is a recursively read parent of the folder,
// the rest is empty: everything below is touched.
func (f *finder) enter(folder, path []segment) (rest []segment, ok bool) {
	for i := range folder {
		if i == len(path) {
			return nil, f.recursive
		}
		if path[i].kind == anyRun {
			return path[i:], true
		}
		if !path[i].meets(&folder[i]) {
			return nil, false
		}
	}
	return path[len(folder):], true
}

// below tries the rules of an index on the rest of a path.
func (f *finder) below(ix *index, path []segment) {
	if len(path) == 0 && f.recursive || len(path) > 0 && path[0].kind != literal {
		for _, id := range ix.all {
			f.try(f.g.rule(id), path, 1)
		}
		return
	}
	if len(path) > 0 {
		f.named(ix, path)
	}
	for _, id := range ix.wild {
		if r := f.g.rule(id); f.covering || len(path) == 0 || len(r.segs) == 0 || r.segs[0].may(path[0].text) {
			f.try(r, path, 1)
		}
	}
}

// walk finds the rules that match a pattern.
func (f *finder) walk(path []segment) {
	g := f.g
	run := slices.IndexFunc(path, func(s segment) bool { return s.kind == anyRun })
	if run != 0 {
		f.below(&g.abs, path)
		for _, home := range g.homes {
			if rest, ok := f.enter(home, path); ok {
				f.below(&g.home, rest)
			}
		}
		for _, id := range g.float.all {
			f.try(g.rule(id), path, 1)
		}
	}
	if run < 0 || run > 0 && f.tree {
		return
	}
	// Unknown text may contain "..": "/src/$X/passwd" could be "/etc/passwd".
	f.anywhere = true
	for i := range g.sources {
		r := g.rule(int32(i))
		f.try(r, path[run+1:], 1<<(len(r.segs)+1)-1)
	}
}

// try matches a rule, starting from a set of its states.
func (f *finder) try(r *rule, path []segment, from uint64) {
	if f.covering {
		f.certain(r, path)
		return
	}
	if f.apart(r, path, from) {
		return
	}
	matched, proven := r.match(path, from)
	if !r.open && (f.anywhere || r.float && (f.pattern || f.recursive)) {
		matched = proven
	}
	if f.recursive && matched != 0 || matched>>len(r.segs)&1 != 0 {
		f.hit(r)
	}
}

// apart reports, after a cheap comparison, whether a rule cannot match: the last names differ, or literal
// names at the start of an anchored rule.
func (f *finder) apart(r *rule, path []segment, from uint64) bool {
	if len(path) == 0 || len(r.segs) == 0 {
		return false
	}
	last, want := &path[len(path)-1], &r.segs[len(r.segs)-1]
	if !f.recursive && want.kind != anyRun && last.kind != anyRun && !ends(last, want) {
		return true
	}
	if from != 1 || r.loop != 0 {
		return false
	}
	for i := range path {
		if i == len(r.segs) || path[i].kind != literal || r.segs[i].kind != literal {
			return false
		}
		if path[i].text != r.segs[i].text {
			return true
		}
	}
	return false
}

// ends reports whether the last name of a path or pattern could match that of a rule, comparing only first
// and last bytes.
func ends(last, want *segment) bool {
	switch {
	case last.kind == literal && want.kind == literal:
		return last.text == want.text
	case last.kind == literal:
		return want.may(last.text)
	case want.kind == literal:
		return want.text == "" || sameEnds(last.text, Quote(want.text))
	}
	return sameEnds(last.text, want.text)
}

// match returns the set of states of a rule after a path, as bits: state i is before segment i, the last
// state after all segments. proven are the states reached with evidence: the path contains a name of the
// rule.
func (r *rule) match(path []segment, from uint64) (matched, proven uint64) {
	end := uint64(1) << len(r.segs)
	matched = from | from&r.runs<<1
	for k := range path {
		s := &path[k]
		if s.kind == anyRun {
			matched, proven = smear(matched, end), smear(proven, end)
			continue
		}
		next, sure := matched&r.runs|r.loop, proven&r.runs
		for set := matched &^ r.runs &^ end; set != 0; set &= set - 1 {
			i := bits.TrailingZeros64(set)
			if !s.meets(&r.segs[i]) {
				continue
			}
			bit := uint64(1) << i
			next |= bit << 1
			if proven&bit != 0 || r.strong&bit != 0 && spells(s, &r.segs[i]) {
				sure |= bit << 1
			}
		}
		matched, proven = next|next&r.runs<<1, sure|sure&r.runs<<1
		if matched == 0 {
			return 0, 0
		}
	}
	return matched, proven
}

// smear returns the states after a "**" in the path: the lowest state and all after it.
func smear(set, end uint64) uint64 {
	if set == 0 {
		return 0
	}
	return (end | (end - 1)) &^ (set&-set - 1)
}

// spells reports whether a path's segment that matches a rule's contains enough of it to be evidence: its
// prefix, or its suffix if it starts with a star, or half of its letters. "*.json" is no evidence for
// "credentials.json".
func spells(s, rule *segment) bool {
	switch {
	case s.kind == literal:
		return rule.kind == literal || strings.Trim(rule.text, "*?") != ""
	case rule.kind == literal:
		return s.text[0] != '*' || 2*letters(s) >= letters(rule)
	case rule.text[0] != '*':
		return s.text[0] != '*'
	}
	return literalTail(s.text) > 0 && literalTail(rule.text) > 0
}

// letters returns the number of characters of a segment that are not stars.
func letters(s *segment) int {
	var buf [48]token
	n := 0
	for _, t := range s.tokens(buf[:0]) {
		if t.kind != tokenStar {
			n++
		}
	}
	return n
}

// cover finds the rules that match everything an effect touches. An approximation must make the path's
// pattern match more, never the rule's.
func (f *finder) cover(path string, pattern, tree, recursive bool) {
	var buf [32]segment
	segs := split(buf[:0], path, pattern)
	if pattern && (len(path) > maxPath || slices.ContainsFunc(segs, func(s segment) bool { return s.kind == anyRun && !tree || inner(s) })) {
		segs = append(segs[:0], segment{kind: anyRun}) // unknown text may contain ".."
	}
	f.covering, f.recursive, f.pattern = true, recursive, pattern
	f.folded = len(segs) > 0 && (segs[0].text == unc || isDrive(segs[0].text))
	f.below(&f.g.abs, segs)
	for _, home := range f.g.known {
		if len(segs) >= len(home) && slices.Equal(segs[:len(home)], home) {
			f.below(&f.g.home, segs[len(home):])
		}
	}
	f.floating(segs)
}

// certain is like [finder.try], but moves to the next state only if the rule matches every name that the
// path's segment matches.
func (f *finder) certain(r *rule, path []segment) {
	segs := r.exact
	if f.folded {
		segs = r.segs
	}
	end := uint64(1) << len(segs)
	set := 1 | r.runs&1<<1
	for k := range path {
		s := &path[k]
		next := set&r.runs | r.loop
		if s.kind != anyRun {
			for left := set &^ r.runs &^ end; left != 0; left &= left - 1 {
				if i := bits.TrailingZeros64(left); s.within(&segs[i]) {
					next |= 2 << i
				}
			}
		}
		if set = next | next&r.runs<<1; set == 0 {
			return
		}
	}
	if f.recursive {
		// Only a trailing "**" also matches everything below.
		set &= r.runs<<1 | r.loop
	}
	if set&end != 0 {
		f.hit(r)
	}
}

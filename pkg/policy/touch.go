package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A touched holds the deny and verify rules that match an effect.
type touched struct {
	sure    ruleSet
	perhaps ruleSet // rules that match depending on unknown parts: of a path, of a folder's content, or whether the effect happens
}

// pick returns the first rule of a set with an index in [from, to) that applies to an effect, or -1.
func (s *search) pick(set *ruleSet, from, to int, e *effect.Effect) (int, error) {
	for r := set.next(from); r >= 0 && r < to; r = set.next(r + 1) {
		ok, err := s.x.rules[r].facts.match(s, e)
		if ok && err == nil {
			ok, err = s.slow(r)
		}
		if err != nil {
			return -1, &ruleError{r, err}
		}
		if !ok {
			continue
		}
		out, err := s.excepted(r, e)
		if err != nil {
			return -1, err
		}
		if !out {
			return r, nil
		}
	}
	return -1, nil
}

// touched returns the rules whose types, paths and hosts an effect matches.
func (s *search) touched(e *effect.Effect) touched {
	typed := s.x.fits(s.c.Action, e)
	t := s.places(e)
	t.sure.keep(&typed)
	t.perhaps.keep(&typed)

	free := s.x.placeless
	free.keep(&typed)
	t.sure.addAll(&free)
	if e.Sure == effect.May {
		t.perhaps.addAll(&t.sure)
		t.sure.keep(&s.x.core) // for a possible effect only rules of the core apply with certainty: shield does not ask about harm to itself or the system
	}
	return t
}

// pair finds the rules with paths and hosts for which one effect matches the paths and one matches the hosts.
// Otherwise such a rule does not match.
func (s *search) pair() {
	want := s.x.byPath
	want.keep(&s.x.byHost)
	if want.empty() {
		return
	}
	var paths, hosts ruleSet
	for i := range s.c.Effects {
		e := &s.c.Effects[i]
		typed := s.x.fits(s.c.Action, e)
		p := s.paths(e)
		p.sure.addAll(&p.perhaps)
		p.sure.keep(&typed)
		paths.addAll(&p.sure)
		h := s.hosts(e)
		h.keep(&typed)
		hosts.addAll(&h)
	}
	s.both = want
	s.both.keep(&paths)
	s.both.keep(&hosts)
}

// places returns the rules with paths or hosts that match an effect, for any kind of effect.
func (s *search) places(e *effect.Effect) touched {
	t := s.paths(e)
	hosts := s.hosts(e)
	t.sure.addAll(&hosts)
	unpaired := s.x.byPath
	unpaired.keep(&s.x.byHost)
	unpaired.drop(&s.both)
	t.sure.drop(&unpaired)
	t.perhaps.drop(&unpaired)
	return t
}

func (s *search) hosts(e *effect.Effect) (set ruleSet) {
	if e.Host == "" || len(s.x.hosts) == 0 {
		return set
	}
	addr := effect.ParseAddr(e.Host)
	for i := range s.x.hosts {
		if s.x.hosts[i].Match(e.Host, addr) {
			set.add(s.x.hostRule[i])
		}
	}
	return set
}

// paths finds the rules whose globs match an effect's path, see [effect.Globs.Touches].
func (s *search) paths(e *effect.Effect) (t touched) {
	if e.Path == "" {
		return t
	}
	if !e.Pattern {
		s.literal(&t, e, e.Path, e.Recursive)
		return t
	}
	if sight := look(e.Path); sight != dark {
		s.pattern(&t, e, sight)
		s.onDisk(&t, e)
	}
	if folder, ok := emptied(e); ok && !strings.ContainsAny(folder, `*?[\`) {
		s.literal(&t, e, folder, true)
	}
	return t
}

// onDisk refines the match of a pattern by the files that it matches on the disk. In the workspace, if the
// expansion is complete, only these files count; otherwise they are added. If no rule could match the pattern
// itself, only deny rules are considered.
func (s *search) onDisk(t *touched, e *effect.Effect) {
	could := t.sure
	could.addAll(&t.perhaps)
	if could.empty() {
		if e.Tree {
			return // treat as a searched folder
		}
		for r := range s.denies {
			could.add(r)
		}
	}
	var known, hidden touched
	for _, set := range s.x.sets(e.Path, true) {
		for _, g := range set.compiled().AppendCovering(s.found[:0], e.Path, true, e.Tree, e.Recursive) {
			known.sure.add(set.rule[g])
		}
	}
	x := s.c.Expand(e)
	for _, name := range x.Paths {
		s.literal(&known, e, name, e.Recursive)
	}
	for _, name := range x.Hidden {
		s.literal(&hidden, e, name, e.Recursive)
	}
	hidden.sure.keep(&could)
	known.perhaps.addAll(&hidden.sure)
	switch at := s.c.At(); {
	case t.sure.empty() && t.perhaps.empty():
		known.sure.keep(&could)
		t.sure = known.sure
	case x.Whole && at.Inside(e.Path, true, e.Tree):
		*t = known
	case e.Tree && e.Kind == effect.ReadFile && at.Inside(e.Path, true, true) && weak(path.Base(e.Path)):
		s.literal(&known, e, folder(e.Path), true) // too many files: treat as if the whole folder were read
		*t = known
	case e.Tree && weak(path.Base(e.Path)): // treat as a searched folder
		t.perhaps.addAll(&known.sure)
	default:
		t.sure.addAll(&known.sure)
	}
}

// searches reports whether a folder is shared by many programs, such as ~/.config, and the action that reads
// it sends nothing.
func (s *search) searches(folder string) bool {
	return strings.HasSuffix(folder, "/.config") && !slices.ContainsFunc(s.c.Effects, func(e effect.Effect) bool {
		return e.Word() == effect.SendData || e.Kind == effect.HTTPRequest || e.Kind == effect.Connect || e.Kind == effect.SendMessage
	})
}

// literal adds the rules that match an effect on a known path. If the effect is a recursive read, or a write
// somewhere in a folder, a rule for a file below only possibly matches, unless the folder is the one where a
// program keeps that file.
func (s *search) literal(t *touched, e *effect.Effect, path string, recursive bool) {
	reads := e.Kind == effect.ReadFile || e.Kind == effect.ListDirectory
	writes := e.Kind == effect.WriteFile || e.Kind == effect.Persist
	above := recursive && (reads || writes)
	modes := recursive && e.Kind == effect.ChangePermissions
	for _, set := range s.x.sets(path, false) {
		var itself []int
		if above || modes {
			itself = set.compiled().AppendTouched(s.itself[:0], path, false, false)
		}
		for _, g := range set.compiled().AppendTouched(s.found[:0], path, false, recursive) {
			switch {
			case writes && set.names(g).single() && s.x.holdsLoneFiles(path):
				t.sure.add(set.rule[g])
			case above && (writes || !set.names(g).single()) && !slices.Contains(itself, g) && (!set.names(g).kept(path) || s.searches(path)):
				t.perhaps.add(set.rule[g])
			case modes && !slices.Contains(itself, g) && (set.names(g).ofOthers(path) || set.names(g).inHome(path) && !s.x.core.has(set.rule[g])):
				t.perhaps.add(set.rule[g])
			case !recursive || !set.names(g).single() || s.x.isSingle(path):
				t.sure.add(set.rule[g])
			case e.Kind == effect.ReadFile: // searching a folder does not count as reading a file in it
			default:
				t.sure.add(set.rule[g])
			}
		}
	}
}

// pattern adds the rules that match a partly unknown path. It is not enough that some path matches both
// pattern and glob: "$d/package.json" could be in ~/.ssh. The pattern must contain the literal names of the
// glob, or be inside it. If nothing below a folder is known ("$HOME/$f"), the path possibly matches every
// glob for that folder.
func (s *search) pattern(t *touched, e *effect.Effect, sight sight) {
	for _, set := range s.x.sets(e.Path, true) {
		for _, g := range set.compiled().AppendTouched(s.found[:0], e.Path, true, e.Recursive) {
			if e.Tree && set.names(g).outside(folder(e.Path)) {
				continue
			}
			switch set.names(g).named(e.Path) {
			case all:
				if e.Kind == effect.DeleteFile && !e.Recursive && !e.Tree && strings.HasSuffix(e.Path, "/**") {
					t.perhaps.add(set.rule[g]) // one file in a folder; the folder itself stays
				} else {
					t.sure.add(set.rule[g])
				}
			case maybe:
				t.perhaps.add(set.rule[g])
			case last:
				if !set.names(g).single() || e.Kind != effect.ReadFile {
					t.perhaps.add(set.rule[g])
				}
			case none:
			}
		}
		for _, g := range set.compiled().AppendCovering(s.found[:0], e.Path, true, e.Tree, e.Recursive) {
			t.sure.add(set.rule[g])
		}
		if sight != dim {
			continue
		}
		for _, g := range set.compiled().AppendTouched(s.found[:0], folder(e.Path), false, true) {
			if !set.names(g).floating() && (!set.names(g).single() || s.x.meetsSingle(e)) {
				t.perhaps.add(set.rule[g])
			}
		}
	}
}

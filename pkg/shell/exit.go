package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// An exit is what is known of the status that a command leaves.
type exit uint8

const (
	anyExit exit = iota
	success
	failure
)

// exitOf returns the exit of a condition that is known to hold or not.
func exitOf(holds, known bool) exit {
	switch {
	case !known:
		return anyExit
	case holds:
		return success
	}
	return failure
}

func (e exit) negated() exit {
	switch e {
	case success:
		return failure
	case failure:
		return success
	}
	return anyExit
}

// or returns what is known where it is one of two.
func (e exit) or(o exit) exit {
	if e == o {
		return e
	}
	return anyExit
}

// decided returns the exit of the condition that was just walked. Where the walk
// may have ended before, nothing is decided.
func (s *state) decided() exit {
	if s.left.any() || s.gaveUp {
		return anyExit
	}
	return s.exit
}

// either returns what is known of one of two that holds if any does.
func (e exit) either(o exit) exit {
	if e == success || o == success {
		return success
	}
	return e.or(o)
}

// notZero returns the exit of an arithmetic command.
func notZero(v abstract.Value) exit { return exitOf(v.Text != "0", v.Known() && v.Text != "") }

// trial walks a part of the text only to see what it would decide.
func (s *state) trial(walk func() (abstract.Value, exit)) (e exit) {
	funcs := len(s.funcs)
	s.quiet++
	s.unreached(func() { _, e = walk() })
	s.quiet--
	s.funcs = s.funcs[:min(funcs, len(s.funcs))]
	return e
}

// unreached walks a part of the text that does not run, for what it would do: that is
// shown to rules all the same, as far as it is known, but nothing of it lasts.
func (s *state) unreached(walk func()) {
	vars, files, fds := slices.Clone(s.vars), slices.Clone(s.files), slices.Clone(s.fds)
	aliases, traps, links, loaded, remotes := len(s.aliases), len(s.traps), len(s.links), len(s.loaded), len(s.remotes)
	stdin, way, consumed, remains, exit := s.stdin, s.left, s.consumed, s.remains, s.exit
	constants, strict, posix, wild := s.constants, s.strict, s.posix, s.wild
	before, mark := s.outcomes(), len(s.effects)
	locals := make([]map[string]int, len(s.frames))
	for i, f := range s.frames {
		locals[i] = maps.Clone(f.locals)
	}
	s.left.sure = stays
	walk()
	for i := range s.frames {
		s.frames[i].locals = locals[i]
	}
	s.effects = append(s.effects[:min(mark, len(s.effects))], slices.DeleteFunc(s.effects[min(mark, len(s.effects)):], func(e effect.Effect) bool {
		return !s.gaveUp && (e.Kind == effect.Dynamic || e.Kind == effect.RunInput)
	})...)
	s.uncertain(before)
	s.vars, s.files, s.fds = vars, files, fds
	s.aliases, s.traps, s.links = s.aliases[:min(aliases, len(s.aliases))], s.traps[:min(traps, len(s.traps))], s.links[:min(links, len(s.links))]
	s.loaded, s.remotes = s.loaded[:min(loaded, len(s.loaded))], s.remotes[:min(remotes, len(s.remotes))]
	s.stdin, s.left, s.consumed, s.remains, s.exit = stdin, way, consumed, remains, exit
	s.constants, s.strict, s.posix, s.wild = constants, strict, posix, wild
}

// endsShell names the commands whose redirections end some shells when they fail.
var endsShell = map[string]bool{
	":": true, ".": true, "eval": true, "exec": true, "export": true, "readonly": true, "set": true,
	"shift": true, "times": true, "trap": true, "unset": true,
}

// opens reports whether redirections are sure to succeed, so that the command runs.
func opens(list []*syntax.Redirect) bool {
	return !slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return false
		case syntax.DplOut:
			n := r.Word.Lit()
			return n != "1" && n != "2"
		}
		return r.Word.Lit() != "/dev/null"
	})
}

// assigned returns the exit of assignments without a command: that of the last command
// in them, or success where none of the names may be readonly.
func (s *state) assigned(list []*syntax.Assign) exit {
	if s.constants {
		return anyExit
	}
	for _, a := range list {
		if a.Name == nil || a.Index != nil || a.Array != nil || a.Naked || a.Value != nil && !simpleWord(a.Value) {
			return anyExit
		}
		if b, ok := s.attribute(a.Name.Value); ok && (b.kind > unset || b.array) {
			return anyExit
		}
	}
	return success
}

// simpleWord reports whether a word runs nothing and cannot fail when it is expanded.
func simpleWord(w syntax.Node) bool {
	simple := true
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			simple = false
		case *syntax.ParamExp:
			simple = simple && n.Slice == nil && n.Index == nil && !n.Excl && n.Flags == nil &&
				(n.Exp == nil || n.Exp.Op != syntax.ErrorUnset && n.Exp.Op != syntax.ErrorUnsetOrNull && n.Exp.Op != syntax.OtherParamOps)
		}
		return simple
	})
	return simple
}

// status returns the exit that a number after exit or return means.
func status(argv []abstract.Value) exit {
	if len(argv) != 2 || !argv[1].Known() {
		return anyExit
	}
	n, err := strconv.ParseUint(argv[1].Text, 10, 8)
	return exitOf(n == 0, err == nil)
}

// testExit returns the exit of test and [, as far as all shells agree on it.
func testExit(argv []abstract.Value) exit {
	words := argv[1:]
	if argv[0].Text == "[" {
		if len(words) == 0 || words[len(words)-1].Text != "]" {
			return anyExit
		}
		words = words[:len(words)-1]
	}
	if slices.ContainsFunc(words, func(v abstract.Value) bool { return !v.Known() }) {
		return anyExit
	}
	switch list := texts(words); len(list) {
	case 0:
		return failure
	case 1:
		return exitOf(list[0] != "", true)
	case 2:
		return unaryTest(list[0], list[1])
	case 3:
		if e := binaryTest(list[0], list[1], list[2]); e != anyExit || list[0] != "!" {
			return e
		}
		return unaryTest(list[1], list[2]).negated()
	case 4:
		if list[0] == "!" {
			return binaryTest(list[1], list[2], list[3]).negated()
		}
	}
	return anyExit
}

func unaryTest(op, text string) exit {
	switch op {
	case "-n":
		return exitOf(text != "", true)
	case "-z":
		return exitOf(text == "", true)
	case "!":
		return exitOf(text == "", true)
	}
	return anyExit
}

func binaryTest(a, op, b string) exit {
	switch op {
	case "=":
		return exitOf(a == b, true)
	case "!=":
		return exitOf(a != b, true)
	case "==": // an error in some shells
		return exitOf(false, a != b)
	}
	return compare(a, op, b)
}

// compare compares two numbers as people write them.
func compare(a, op, b string) exit {
	x, err1 := decimal(a)
	y, err2 := decimal(b)
	if err1 != nil || err2 != nil {
		return anyExit
	}
	switch op {
	case "-eq":
		return exitOf(x == y, true)
	case "-ne":
		return exitOf(x != y, true)
	case "-lt":
		return exitOf(x < y, true)
	case "-le":
		return exitOf(x <= y, true)
	case "-gt":
		return exitOf(x > y, true)
	case "-ge":
		return exitOf(x >= y, true)
	}
	return anyExit
}

// decimal reads a number that means the same everywhere.
func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && strconv.FormatInt(n, 10) != text {
		err = strconv.ErrSyntax
	}
	return n, err
}

// tested returns the exit of [[ … ]], whose expansions are walked.
func (s *state) tested(x syntax.TestExpr) exit {
	switch x := x.(type) {
	case *syntax.Word:
		v := s.word(x)
		return exitOf(v.Text != "", v.Known())
	case *syntax.ParenTest:
		return s.tested(x.X)
	case *syntax.UnaryTest:
		switch w, _ := x.X.(*syntax.Word); {
		case x.Op == syntax.TsNot:
			return s.tested(x.X).negated()
		case w == nil:
		case x.Op == syntax.TsEmpStr:
			v := s.word(w)
			return exitOf(v.Text == "", v.Known())
		case x.Op == syntax.TsNempStr:
			v := s.word(w)
			return exitOf(v.Text != "", v.Known())
		}
	case *syntax.BinaryTest:
		return s.testedPair(x)
	}
	return anyExit
}

func (s *state) testedPair(x *syntax.BinaryTest) exit {
	a, _ := x.X.(*syntax.Word)
	b, _ := x.Y.(*syntax.Word)
	switch x.Op {
	case syntax.AndTest, syntax.OrTest:
		l, r := s.tested(x.X), s.tested(x.Y)
		decides := failure
		if x.Op == syntax.OrTest {
			decides = success
		}
		if l == decides || r == decides {
			return decides
		}
		return l.or(r)
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		if a == nil || b == nil {
			return anyExit
		}
		v := s.word(a)
		e := s.matches(v, b)
		if x.Op == syntax.TsNoMatch {
			e = e.negated()
		}
		return e
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		if a == nil || b == nil {
			return anyExit
		}
		v, w := s.word(a), s.word(b)
		if v.Known() && w.Known() {
			return compare(v.Text, x.Op.String(), w.Text)
		}
	}
	return anyExit
}

// matches returns whether a text matches a pattern of case or [[, as far as all
// shells read the pattern alike.
func (s *state) matches(v abstract.Value, w *syntax.Word) exit {
	if !v.Known() || len(v.Text) > maxMatch {
		return anyExit
	}
	var b abstract.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "#^()|<>") || i == 0 && strings.HasPrefix(p.Value, "~") {
				return anyExit
			}
			b.Unescaped(p.Value)
		case *syntax.SglQuoted, *syntax.DblQuoted:
			v := s.part(part)
			if !v.Known() {
				return anyExit
			}
			b.Add(v)
		default:
			v := s.part(part)
			if !v.Known() || strings.ContainsAny(v.Text, "*?[\\#^()|<>~") { // a pattern in some shells
				return anyExit
			}
			b.Add(v)
		}
	}
	p := b.Value()
	glob := p.AsPattern()
	if !s.step(1 + len(v.Text)*len(glob)/256) {
		return anyExit
	}
	return exitOf(abstract.Match(glob, v.Text), true)
}

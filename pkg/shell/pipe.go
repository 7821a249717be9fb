package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// binary walks a && b, a || b and a | b. The tree leans to the left and may be
// as deep as the text is long, so it is unrolled.
func (s *state) binary(c *syntax.BinaryCmd, in abstract.Value) abstract.Value {
	var chain []*syntax.BinaryCmd
	first := (*syntax.Stmt)(nil)
	for {
		chain = append(chain, c)
		first = c.X
		next, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(c.X.Redirs) > 0 {
			break
		}
		c = next
	}
	jobs, files := len(s.jobs), len(s.files)
	defer func() { s.endPipe(jobs) }()
	lead := chain[len(chain)-1].Op
	var out abstract.Value
	if isPipe(lead) {
		out = s.piped(first, in, true, files)
	} else {
		out = s.side(first, in, false, false)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		c := chain[i]
		if s.gaveUp {
			break
		}
		into := i > 0 && isPipe(chain[i-1].Op)
		if isPipe(c.Op) {
			s.otherInputs(c.Y, out, true)
			if out = s.piped(c.Y, out, into, files); s.exit == success {
				s.exit = anyExit // the left side may count as well
			}
			continue
		}
		out = abstract.Concat(out, s.right(c, in, into, i == len(chain)-1))
	}
	return out
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

// side walks one side of a pipe or list. into says that what it writes goes into a pipe:
// then nothing that it assigns lasts, and of the last side of a pipe, it does in zsh only,
// or where bash is told so.
func (s *state) side(st *syntax.Stmt, in abstract.Value, piped, into bool) abstract.Value {
	if !piped {
		return s.captures(into, st, in)
	}
	mark, before, way, consumed, remains := len(s.vars), s.outcomes(), s.left, s.consumed, s.remains
	end, traps := s.apart(), len(s.traps)
	out := s.captures(into, st, in)
	if !into && (len(s.vars) > mark || len(s.traps) > traps) && (s.lastpipe || s.asZsh()) {
		end = func() {
			s.walkTraps(slices.Clone(s.traps[min(traps, len(s.traps)):])) // they may as well run later
			s.weaken(mark)
		}
	}
	end()
	if !into { // what it writes is there when the pipe has ended
		before.files = len(s.files)
	}
	s.uncertain(before)
	s.left, s.consumed, s.remains = way, consumed, remains
	return out
}

// captures walks a statement whose output may go into a pipe.
func (s *state) captures(into bool, st *syntax.Stmt, in abstract.Value) abstract.Value {
	if !into {
		return s.stmt(st, in)
	}
	s.captured++
	out := s.stmt(st, in)
	s.captured--
	if redirectsOutput(st.Redirs) && s.asZsh() { // it goes into the pipe as well
		out = abstract.Concat(out, s.produced)
	}
	return out
}

// piped walks a side of a pipe beside the jobs before it. What one of these has read may
// have been written here, and what they write then comes in here. Files since mark may be of
// another side.
func (s *state) piped(st *syntax.Stmt, in abstract.Value, into bool, mark int) abstract.Value {
	before, runs, written := len(s.jobs), s.job(st, in), s.outcomes()
	uncontested := s.contend(mark)
	out := s.side(st, in, true, into)
	uncontested()
	j := runs()
	others := s.files[min(mark, written.files, len(s.files)):min(written.files, len(s.files))]
	if slices.ContainsFunc(s.files[min(written.files, len(s.files)):], func(f file) bool {
		return slices.ContainsFunc(others, func(o file) bool { return o.path == f.path })
	}) {
		s.uncertain(written)
	}
	if slices.ContainsFunc(s.jobs[:min(before, len(s.jobs))], func(j *job) bool { return j.pipe && j.raced }) {
		effects := len(s.effects)
		out = maybe(abstract.Concat(out, s.side(st, maybe(in), true, into)))
		s.dropRepeated(effects)
	}
	if into {
		for _, j := range j {
			j.pipe = true
			s.jobs = append(s.jobs, j)
		}
	}
	return out
}

// endPipe forgets the sides of a pipe.
func (s *state) endPipe(mark int) {
	mark = min(mark, len(s.jobs))
	s.jobs = append(s.jobs[:mark:mark], slices.DeleteFunc(slices.Clone(s.jobs[mark:]), func(j *job) bool { return j.pipe })...)
}

package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A job is a part of the text that runs beside what follows it and has read files that the
// text wrote: if these are written again, that may be what it has read.
type job struct {
	st    *syntax.Stmt
	in    abstract.Value
	vars  []binding
	reads []string
	pipe  bool // a side of a pipe, which ends with it
	raced bool // one of the files was written
	fixed *effect.Span
	base  int
}

// beside starts a statement that runs beside what follows it, unless that waits for it: then
// nothing that it writes is sure to be there.
func (s *state) beside(st *syntax.Stmt, in abstract.Value) (end func()) {
	waited, before, runs := s.waited, s.outcomes(), s.job(st, in)
	s.waited = false
	return func() {
		j := runs()
		if !waited {
			s.uncertain(before)
			s.contend(before.files)
			s.jobs = append(s.jobs, j...)
			for i := min(before.fds, len(s.fds)); i < len(s.fds) && len(j) > 0; i++ { // it may read what is written later
				s.fds[i].val = vague("…", s.fds[i].val)
			}
		}
	}
}

// job starts a job. What it returns ends its walk: with the job, if it read such files.
func (s *state) job(st *syntax.Stmt, in abstract.Value) (end func() []*job) {
	j := &job{st: st, in: in, vars: s.vars[:len(s.vars):len(s.vars)], fixed: s.fixed, base: s.base}
	mark := len(s.reads)
	s.watched++
	return func() []*job {
		s.watched--
		if j.reads = slices.Clone(s.reads[min(mark, len(s.reads)):]); len(j.reads) == 0 {
			return nil
		}
		if s.watched == 0 {
			s.reads = nil
		}
		j.vars = slices.Clone(j.vars)
		return []*job{j}
	}
}

// reading notes that a file is read of which the text says what it holds.
func (s *state) reading(path string) {
	if s.watched > 0 && !slices.Contains(s.reads, path) {
		s.reads = append(s.reads, path)
	}
}

// overwrites walks those jobs once more that have read a file which was written now.
func (s *state) overwrites(path string) {
	for _, j := range s.jobs {
		if slices.Contains(j.reads, path) {
			j.raced = true
			s.again(j)
		}
	}
}

// contend notes that files since mark may be written at any time from now on. What ends it
// says that they are no longer.
func (s *state) contend(mark int) (end func()) {
	before := s.contested
	for _, f := range s.files[min(mark, len(s.files)):] {
		if f.consumer == nil {
			s.contested = append(s.contested[:len(s.contested):len(s.contested)], f.path)
		}
	}
	return func() { s.contested = before }
}

// again walks a job with the newest file as one that may be there.
func (s *state) again(j *job) {
	last := len(s.files) - 1
	was, effects, exit, remains, consumed := s.files[last].weak, len(s.effects), s.exit, s.remains, s.consumed
	vars, frames, jobs, reads, fixed, base := s.vars, s.frames, s.jobs, s.reads, s.fixed, s.base
	s.files[last].weak = true
	s.vars, s.frames, s.jobs, s.fixed, s.base = slices.Clone(j.vars), nil, nil, j.fixed, j.base
	uncontested := s.contend(last)
	before, end := s.outcomes(), s.apart()
	s.stmt(j.st, j.in)
	end()
	uncontested()
	s.dropRepeated(effects)
	s.uncertain(before)
	s.mayRead(remains)
	s.vars, s.frames, s.jobs, s.reads, s.fixed, s.base, s.exit, s.consumed = vars, frames, jobs, reads, fixed, base, exit, consumed
	s.files[last].weak = was
}

// waits reports whether a statement waits for all that runs beside it.
func waits(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == "wait" && len(call.Assigns) == 0 && len(st.Redirs) == 0 && !st.Background
}

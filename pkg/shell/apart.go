package shell

import (
	"maps"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// apart starts a part of the text whose assignments end with it, and returns
// what ends it. Functions stay, so that those never called are still looked at.
func (s *state) apart() (end func()) {
	mark, als, funcs, fds, stdin, way, traps := len(s.vars), len(s.aliases), len(s.funcs), len(s.fds), s.stdin, s.left, len(s.traps)
	s.left = left{}
	return func() {
		s.runTraps(traps)
		s.stdin, s.left = stdin, way
		s.vars = s.vars[:min(mark, len(s.vars))]
		for i := min(funcs, len(s.funcs)); i < len(s.funcs); i++ {
			s.funcs[i].weak = true
		}
		for _, f := range s.frames {
			maps.DeleteFunc(f.locals, func(_ string, at int) bool { return at >= mark })
		}
		s.aliases, s.fds = s.aliases[:min(als, len(s.aliases))], s.fds[:min(fds, len(s.fds))]
	}
}

// subshell walks statements in a shell of their own.
func (s *state) subshell(list []*syntax.Stmt, in abstract.Value) abstract.Value {
	end := s.apart()
	s.inner++
	out := s.stmts(list, in)
	s.inner--
	end()
	return out
}

// child starts another shell or program, which sees of the variables what is
// exported, and of the functions maybe some. What it assigns ends with it.
func (s *state) child(program string, argv []abstract.Value) (end func()) {
	leave, own, frames, round, zsh, named, posix := s.apart(), s.ownFuncs, s.frames, s.round, s.zsh, s.shellNamed, s.posix
	globs, fish := s.extGlobs, s.fish
	s.extGlobs, s.fish = false, program == "fish"
	shared := s.shared
	s.inner++
	s.shared = false
	s.ownFuncs, s.frames, s.round, s.zsh, s.shellNamed, s.posix = len(s.funcs), nil, -1, program == "zsh", true, program != "zsh" && program != "bash"
	if option, sets := setsZsh(argv); sets && s.zsh {
		s.zshOption(option)
	}
	s.bind(binding{kind: boundary})
	s.bind(binding{name: "IFS", val: abstract.Lit(usualIFS)}) // which no shell takes from its environment
	s.bind(binding{name: zeroName, val: abstract.Variable("0", 0)})
	s.setPositional(nil)
	return func() {
		s.inner--
		s.shared = shared
		leave()
		s.ownFuncs, s.frames, s.round, s.zsh, s.shellNamed, s.posix = own, frames, round, zsh, named, posix
		s.extGlobs, s.fish = globs, fish
	}
}

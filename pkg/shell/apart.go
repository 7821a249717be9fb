package shell

import (
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkChildProcess walks what a new shell or program runs. The child sees only exported variables, and possibly
// the functions. Its assignments end with it.
func (s *state) walkChildProcess(program string, argv []abstract.Value, walk func()) {
	s.apart(func() {
		s.inner++
		s.dialect = dialectOf{zsh: program == "zsh", named: true, posix: program != "zsh" && program != "bash", fish: program == "fish"}
		s.dialect.odd = program == "zsh" && setsZsh(argv)
		seen := &table{names: map[string]variable{}, lost: s.vars.lost}
		for name, v := range s.vars.names {
			if !v.exported && name[0] != 0 && len(v.may) > 0 && !(len(v.may) == 1 && v.may[0].gone) { // the child sees the value from the environment, or this one
				v.may = []content{{val: abstract.Variable(name, v.any("").Taint), open: true}}
			}
			seen.set(name, v)
		}
		s.vars, s.frames, s.traps = seen, nil, nil
		for name, d := range s.funcs {
			s.define(name, defined{may: d.may, none: true})
		}
		s.hold("IFS", content{val: abstract.Lit(usualIFS)}) // no shell imports IFS from its environment
		s.hold(zeroName, content{val: abstract.Variable("0", 0)})
		s.setPositional(nil)
		walk()
	})
}

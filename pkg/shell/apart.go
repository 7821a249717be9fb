package shell

import (
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkChildProcess walks what a new shell or program runs. The child sees only exported variables, and possibly
// the functions. Its assignments end with it.
func (s *analysisState) walkChildProcess(program string, argv []abstract.Value, walk func()) {
	s.walkSubshell(func() {
		s.childShellDepth++
		s.dialect = shellDialect{isReadAsZsh: program == "zsh", isKnown: true, mayBePOSIX: program != "zsh" && program != "bash", isFish: program == "fish"}
		s.dialect.zshOptionsChanged = program == "zsh" && changesZshParsing(argv)
		seen := &variableTable{byName: map[string]variable{}, hasAssignmentToUnknownName: s.vars.hasAssignmentToUnknownName}
		for name, v := range s.vars.byName {
			if !v.isExported && name[0] != 0 && len(v.possibleContents) > 0 && !(len(v.possibleContents) == 1 && v.possibleContents[0].isUnset) { // an unexported variable: in the child shell its value is unknown, or it is unset
				v.possibleContents = []variableContent{{val: abstract.UnsetVariableValue(name, v.valueCoveringPossibleContents("").Taint), mayBeUnset: true}}
			}
			seen.set(name, v)
		}
		s.vars, s.frames, s.traps = seen, nil, nil
		for name, d := range s.possibleFunctionsByName {
			s.setFunction(name, possibleFunctions{functions: d.functions, mayAlsoBeNonFunction: true})
		}
		s.setVariableContent("IFS", variableContent{val: abstract.Lit(defaultIFS)}) // no shell imports IFS from its environment
		s.setVariableContent(dollarZeroName, variableContent{val: abstract.UnsetVariableValue("0", 0)})
		s.setPositional(nil)
		walk()
	})
}

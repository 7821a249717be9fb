package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

func (s *analysisState) walkExecBuiltin(argv []abstract.Value, io abstract.Streams) abstract.Value {
	rest := argv[1:]
	for len(rest) > 0 && rest[0].IsLiteral() && strings.HasPrefix(rest[0].Text, "-") {
		if rest[0].Text == "-a" && len(rest) > 1 {
			rest = rest[1:]
		}
		if argv[0].Text == "builtin" && strings.Contains(rest[0].Text, "f") { // builtin -f of ksh
			s.emitUnknownEffect(effect.CauseUnanalysedCode, "loads code into the shell", wordsSpan(argv))
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		if io.InputRedirected {
			s.stdin = &io.Stdin
		}
		if io.Out != nil || io.HasDuplicatedOutputDescriptor { // the output of later commands is redirected
			s.possibleExits.mayHaveExitedShell = true
		}
		if io.Out != nil {
			s.fds = append(slices.Clip(s.fds), descriptor{"exec", &openFile{out: io.Out}})
			return abstract.Unknown("…", 0)
		}
		return abstract.Value{}
	}
	s.recordPossibleExit()
	if _, ok := s.possibleFunctionsByName[rest[0].Text]; ok && s.readsAsZsh() { // zsh's exec runs the function
		return s.resolveAndWalkArgv(rest, io)
	}
	return s.invokeBuiltinOrProgram(rest, io)
}

// walkCommandAfterPrefixBuiltin walks the command after command, builtin, noglob or nocorrect.
func (s *analysisState) walkCommandAfterPrefixBuiltin(argv []abstract.Value, io abstract.Streams) abstract.Value {
	rest := argv[1:]
	for len(rest) > 0 && rest[0].IsLiteral() && strings.HasPrefix(rest[0].Text, "-") {
		if strings.ContainsAny(rest[0].Text, "vV") {
			if len(rest) == 2 {
				return computeWhichOutput(rest[1]) // the path of the program, or its name
			}
			return abstract.Unknown("$(command -v)", 0).WithOrigin(abstract.OriginCommandOutput)
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return abstract.Value{}
	}
	if argv[0].Text != "command" && argv[0].Text != "builtin" {
		return s.resolveAndWalkArgv(rest, io)
	}
	if _, own := builtinWalker(rest[0].Text); own && argv[0].Text == "command" && s.readsAsZsh() { // in zsh, command runs a program of that name instead of the builtin
		var out abstract.Value
		s.walkCodeThatMayRun(func() { out = s.invokeBuiltinOrProgram(rest, io) })
		return outputOfPossiblySkippedCommand(out)
	}
	return s.invokeBuiltinOrProgram(rest, io)
}

// recordSetOptionChangingParsing records an option of set that changes how the rest of the text is parsed.
func (s *analysisState) recordSetOptionChangingParsing(option abstract.Value) {
	switch {
	case option.Text == "keyword" || strings.HasPrefix(option.Text, "-") && strings.Contains(option.Text, "k"):
		s.emitUnknownEffect(effect.CauseUnanalysedCode, "set -k turns every NAME=VALUE argument into a variable", option.SourceSpan)
	case option.Text == "braceexpand" || strings.HasPrefix(option.Text, "+") && strings.Contains(option.Text, "B"):
		s.dialect.mayBePOSIX = true
	}
}

// invokeBuiltinOrProgram runs a command as a builtin or a program, even if a function or an alias
// has its name. Entries of the command hash table (hash -p) still apply.
func (s *analysisState) invokeBuiltinOrProgram(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return s.walkArgv(argv, io, func(name string, argv []abstract.Value, io abstract.Streams) abstract.Value {
		var outs []abstract.Value
		var walks []func()
		if slices.ContainsFunc(s.aliases, func(a alias) bool { return a.name == name && a.isCommandHashEntry }) {
			walks = append(walks, func() { outs = append(outs, s.recordUnexpandedAliasCall(argv)) })
		}
		if walks = append(walks, func() { outs = append(outs, s.runBuiltinOrProgram(name, argv, io)) }); len(walks) == 1 {
			walks[0]()
			return outs[0]
		}
		s.walkAlternativeBranches(false, walks...)
		return outputOfPossiblySkippedCommand(abstract.Concat(outs...))
	})
}

package classify

import (
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	programs "github.com/shieldcli/shield/pkg/shell/command"
)

// A patternMatchCondition says when a pattern's match in a command counts. A commit message, a search expression or a document
// that quotes an attack is data: the match counts only if the text is run, or passed to a reader who might
// obey it.
type patternMatchCondition uint8

const (
	matchConditionNone              patternMatchCondition = iota // the match always counts
	matchConditionTextIsExecuted                                 // the text is run, or passed to an unknown program
	matchConditionTextReachesReader                              // the text is sent to a model, a person or another machine
	matchConditionTextInRequest                                  // the text is part of a request that an application parses
)

// A commandTextUseBits says whether a text is run, read or sent.
type commandTextUseBits uint8

const (
	commandTextIsExecuted            commandTextUseBits = 1 << iota // run, or possibly run
	commandTextReachesReader                                        // read by a person or a model
	commandTextReachesServer                                        // parsed by a server
	commandTextReachesUnknownProgram                                // passed to an unknown program, which may run or send it
)

// satisfies reports whether the match of a pattern with the condition n counts in a text that is used in the
// ways l (ok). perhaps reports whether this is uncertain, because only an unknown program gets the text; it is
// always false for matchConditionTextIsExecuted, and it has no meaning if ok is false.
func (l commandTextUseBits) satisfies(n patternMatchCondition) (ok, perhaps bool) {
	switch n {
	case matchConditionNone:
		return true, false
	case matchConditionTextIsExecuted:
		return l&(commandTextIsExecuted|commandTextReachesUnknownProgram) != 0, false
	case matchConditionTextInRequest:
		return l&(commandTextReachesServer|commandTextReachesUnknownProgram) != 0, l&commandTextReachesServer == 0
	case matchConditionTextReachesReader:
	}
	return l&(commandTextReachesReader|commandTextReachesUnknownProgram) != 0, l&commandTextReachesReader == 0
}

// commandTextUse returns how the whole text of a command is used. Parts that could not be analysed
// may run or send the text; a text that is sent as a message or written to an instructions file for
// agents is read.
func commandTextUse(c *analysis.ActionCase) commandTextUseBits {
	var l commandTextUseBits
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.RunsUnanalysedCode():
			l |= commandTextIsExecuted | commandTextReachesUnknownProgram
		case e.Kind == effect.SendMessage:
			l |= commandTextReachesReader
		case (e.Kind == effect.WriteFile || e.Kind == effect.Persist) && touchesAgentInstructionFile(e):
			l |= commandTextReachesReader
		}
	}
	return l
}

// argumentTextUse returns whether the arguments of a program are run, read, parsed by a server, or
// passed to an unknown program.
func argumentTextUse(e *effect.Effect) commandTextUseBits {
	var l commandTextUseBits
	if e.Class == effect.UnknownClass {
		l |= commandTextReachesUnknownProgram
	}
	if programs.Evaluators[e.Program] || programs.InterpreterLanguage(e.Program) != "" {
		l |= commandTextIsExecuted
	}
	switch {
	case programs.Requesters[e.Program]:
		l |= commandTextReachesReader | commandTextReachesServer
	case programs.Tellers[e.Program]:
		l |= commandTextReachesReader
	}
	return l
}

// touchesAgentInstructionFile reports whether an effect touches a file that agents read as instructions.
func touchesAgentInstructionFile(e *effect.Effect) bool {
	_, ok := agentInstructionFileGlobs().FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
	return ok
}

var agentInstructionFileGlobs = sync.OnceValue(func() *effect.Globs {
	return mustGlobs(expandNamedListReferences([]string{"@agent_reads"}, knowledge.GlobsOfPathList), nil)
})

package classify

import (
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	programs "github.com/shieldcli/shield/pkg/shell/command"
)

// A matchCondition says when a pattern's match in a command counts. A commit message, a search expression or a document
// that quotes an attack is data: the match counts only if the text is run, or passed to a reader who might
// obey it.
type matchCondition uint8

const (
	needNothing matchCondition = iota // the match always counts
	needCode                          // the text is run, or passed to an unknown program
	needReader                        // the text is sent to a model, a person or another machine
	needRequest                       // the text is part of a request that an application parses
)

// A textUse says whether a text is run, read or sent.
type textUse uint8

const (
	textIsRun            textUse = 1 << iota // run, or possibly run
	textIsRead                               // read by a person or a model
	textIsParsedByServer                     // parsed by a server
	textGoesToUnknown                        // passed to an unknown program, which may run or send it
)

// satisfies reports whether a pattern's match counts in a text that is used this way (ok), and
// whether that is uncertain (perhaps).
func (l textUse) satisfies(n matchCondition) (ok, perhaps bool) {
	switch n {
	case needNothing:
		return true, false
	case needCode:
		return l&(textIsRun|textGoesToUnknown) != 0, false
	case needRequest:
		return l&(textIsParsedByServer|textGoesToUnknown) != 0, l&textIsParsedByServer == 0
	case needReader:
	}
	return l&(textIsRead|textGoesToUnknown) != 0, l&textIsRead == 0
}

// commandTextUse returns how the whole text of a command is used. Parts that could not be analysed
// may run or send the text; a text that is sent as a message or written to an instructions file for
// agents is read.
func commandTextUse(c *analysis.Case) textUse {
	var l textUse
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.RunsText():
			l |= textIsRun | textGoesToUnknown
		case e.Kind == effect.SendMessage:
			l |= textIsRead
		case (e.Kind == effect.WriteFile || e.Kind == effect.Persist) && agentReads(e):
			l |= textIsRead
		}
	}
	return l
}

// argumentTextUse returns whether the arguments of a program are run, read, parsed by a server, or
// passed to an unknown program.
func argumentTextUse(e *effect.Effect) textUse {
	var l textUse
	if e.Class == effect.UnknownClass {
		l |= textGoesToUnknown
	}
	if programs.Evaluators[e.Program] || programs.InterpreterLanguage(e.Program) != "" {
		l |= textIsRun
	}
	switch {
	case programs.Requesters[e.Program]:
		l |= textIsRead | textIsParsedByServer
	case programs.Tellers[e.Program]:
		l |= textIsRead
	}
	return l
}

// agentReads reports whether an effect touches a file that agents read as instructions.
func agentReads(e *effect.Effect) bool {
	_, ok := agentFiles().Touches(e.Path, e.Pattern, e.Recursive)
	return ok
}

var agentFiles = sync.OnceValue(func() *effect.Globs { return mustGlobs(expandLists([]string{"@agent_reads"}, knowledge.Paths), nil) })

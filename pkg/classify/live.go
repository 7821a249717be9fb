package classify

import (
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	programs "github.com/shieldcli/shield/pkg/shell/command"
)

// A need says when a pattern's match in a command counts. A commit message, a search expression or a document
// that quotes an attack is data: the match counts only if the text is run, or passed to a reader who might
// obey it.
type need uint8

const (
	needNothing need = iota // the match always counts
	needCode                // the text is run, or passed to an unknown program
	needReader              // the text is sent to a model, a person or another machine
	needRequest             // the text is part of a request that an application parses
)

// A liveness says whether a text is run, read or sent.
type liveness uint8

const (
	isCode   liveness = 1 << iota // run, or possibly run
	isRead                        // read by a person or a model
	isAsked                       // parsed by a server
	isOpaque                      // passed to an unknown program, which may run or send it
)

// meets reports whether a match counts in a text of this liveness (ok), and whether that is uncertain
// (perhaps).
func (l liveness) meets(n need) (ok, perhaps bool) {
	switch n {
	case needNothing:
		return true, false
	case needCode:
		return l&(isCode|isOpaque) != 0, false
	case needRequest:
		return l&(isAsked|isOpaque) != 0, l&isAsked == 0
	case needReader:
	}
	return l&(isRead|isOpaque) != 0, l&isRead == 0
}

// commandLiveness returns the liveness of the whole text of a command: parts that could not be analysed may
// run or send it, and text that is sent as a message or written to an instructions file for agents is read.
func commandLiveness(c *analysis.Case) liveness {
	var l liveness
	for i := range c.Effects {
		e := &c.Effects[i]
		switch {
		case e.RunsText():
			l |= isCode | isOpaque
		case e.Kind == effect.SendMessage:
			l |= isRead
		case (e.Kind == effect.WriteFile || e.Kind == effect.Persist) && agentReads(e):
			l |= isRead
		}
	}
	return l
}

// lineLiveness returns the liveness of the arguments of one program.
func lineLiveness(e *effect.Effect) liveness {
	var l liveness
	if e.Class == effect.UnknownClass {
		l |= isOpaque
	}
	if programs.Evaluators[e.Program] || programs.Language(e.Program) != "" {
		l |= isCode
	}
	switch {
	case programs.Requesters[e.Program]:
		l |= isRead | isAsked
	case programs.Tellers[e.Program]:
		l |= isRead
	}
	return l
}

// agentReads reports whether an effect touches a file that agents read as instructions.
func agentReads(e *effect.Effect) bool {
	_, ok := agentFiles().Touches(e.Path, e.Pattern, e.Recursive)
	return ok
}

var agentFiles = sync.OnceValue(func() *effect.Globs { return mustGlobs(expandLists([]string{"@agent_reads"}, knowledge.Paths), nil) })

package effect

import "slices"

// A Cause says why an effect cannot be known, or which of several effects of
// one kind it is. Rules and programs decide by it; [Effect.Reason] says the same
// to people, and its words may change.
type Cause string

// Why something is not known: of Dynamic and RunInput.
const (
	CauseVariable   Cause = "variable"   // a variable or parameter that nothing in the command sets
	CauseOutput     Cause = "output"     // what a command writes, or an expression yields
	CauseInput      Cause = "input"      // standard input
	CauseFile       Cause = "file"       // what a file holds
	CauseDownload   Cause = "download"   // what another machine sends
	CauseUnresolved Cause = "unresolved" // other text that is not worked out, such as what a glob matches
	CauseScript     Cause = "script"     // a script that was not read
	CauseCode       Cause = "code"       // code that is not looked at: machine code, what an encoding hides, what is loaded into a shell
	CauseSyntax     Cause = "syntax"     // text that cannot be parsed
	CauseLimit      Cause = "limit"      // more than is looked at: too long, too deep, too many
	CauseTool       Cause = "tool"       // a tool or a type of action that is not known
	CauseField      Cause = "field"      // a field of the action that is missing, or is not what it should be
	CauseFailure    Cause = "failure"    // the analysis failed
)

// Which of the effects of a kind it is, where a rule speaks of one.
const (
	CauseHistory   Cause = "history"   // Destroy: the command history is changed or stopped
	CauseRecursion Cause = "recursion" // StopProcess: something starts itself without end
	CauseScanning  Cause = "scanning"  // ChangeSystem: the scanning of scripts is turned off

	// Of ChangeRemote, unless the place is one for development or tests by its name.
	CauseDestroys  Cause = "destroys"  // something is gone then
	CauseGrants    Cause = "grants"    // somebody gets access, or more of it
	CauseExposes   Cause = "exposes"   // everybody gets access
	CauseWeakens   Cause = "weakens"   // a protection, a log or a check is off
	CauseRedirects Cause = "redirects" // names, images or data come from, or go to, another place
	CauseRuns      Cause = "runs"      // commands run there, or files of the server are reached
)

// ChangeCause returns the cause of a ChangeRemote with a verb; "" if it is an
// everyday change.
func ChangeCause(verb string) Cause {
	switch verb {
	case "delete":
		return CauseDestroys
	case "grant":
		return CauseGrants
	case "expose":
		return CauseExposes
	case "weaken":
		return CauseWeakens
	case "redirect":
		return CauseRedirects
	case "run":
		return CauseRuns
	}
	return ""
}

var causes = [...]Cause{
	CauseVariable, CauseOutput, CauseInput, CauseFile, CauseDownload, CauseUnresolved, CauseScript,
	CauseCode, CauseSyntax, CauseLimit, CauseTool, CauseField, CauseFailure, CauseHistory, CauseRecursion, CauseScanning,
	CauseDestroys, CauseGrants, CauseExposes, CauseWeakens, CauseRedirects, CauseRuns,
}

// Causes returns all causes.
func Causes() []Cause { return slices.Clone(causes[:]) }

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
	CauseAbsent     Cause = "absent"     // a script that does not exist, so that nothing would run
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
	CauseLater     Cause = "later"     // RunCode, Destroy: what is written now does it when it runs
)

var causes = [...]Cause{
	CauseVariable, CauseOutput, CauseInput, CauseFile, CauseDownload, CauseUnresolved, CauseScript, CauseAbsent,
	CauseCode, CauseSyntax, CauseLimit, CauseTool, CauseField, CauseFailure, CauseHistory, CauseRecursion, CauseScanning, CauseLater,
}

// Causes returns all causes.
func Causes() []Cause { return slices.Clone(causes[:]) }

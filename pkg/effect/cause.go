package effect

import "slices"

// A Cause says why an effect is unknown, or which variant of its kind it is. Rules
// and programs decide by it; [Effect.Reason] says the same to people, and its
// words may change.
type Cause string

// The causes of unknown effects: why they are.
const (
	CauseVariable   Cause = "variable"   // a variable or parameter that the command does not set
	CauseHeld       Cause = "held"       // code, or the name of a program, is as a whole what such a variable holds
	CauseOutput     Cause = "output"     // the output of a command or the result of an expression
	CauseInput      Cause = "input"      // standard input
	CauseFile       Cause = "file"       // the contents of a file
	CauseDownload   Cause = "download"   // data from another machine
	CauseUnresolved Cause = "unresolved" // other text that is not resolved, such as the matches of a glob
	CauseScript     Cause = "script"     // a script that was not read
	CauseAbsent     Cause = "absent"     // a script that does not exist: nothing would run
	CauseCode       Cause = "code"       // code that is not analysed: machine code, encoded code, code that is loaded into a shell
	CauseLoaded     Cause = "loaded"     // what a variable makes programs load
	CauseDialect    Cause = "dialect"    // a form that shells read in different ways
	CauseSyntax     Cause = "syntax"     // text that cannot be parsed
	CauseLimit      Cause = "limit"      // a bound was exceeded: too long, too deep, too many
	CauseTool       Cause = "tool"       // an unknown tool or action type
	CauseReader     Cause = "reader"     // an unknown tool whose name and fields say that it only reads
	CausePackage    Cause = "package"    // a package that neither the project nor the list of widely used names has
	CauseUnread     Cause = "unread"     // a word or an input that shield does not read names a place outside the workspace, or a command
	CauseField      Cause = "field"      // a field of the action is missing or invalid
	CauseFailure    Cause = "failure"    // the analysis failed
)

// The variants of a kind that rules distinguish.
const (
	CauseHistory   Cause = "history"   // Destroy: the command history is changed or stopped
	CauseRecursion Cause = "recursion" // StopProcess: something starts itself endlessly
	CauseScanning  Cause = "scanning"  // ChangeSystem: the scanning of scripts is turned off
	CauseInstaller Cause = "installer" // RunDownload: all that is run comes from installers of known tools, over https
	CauseUnshown   Cause = "unshown"   // ReadFile: settings are loaded for a program, or their names alone are shown
	CauseNamed     Cause = "named"     // StopProcess: those of a name or at a port, anyone who started them
	CauseUnboxed   Cause = "unboxed"   // ChangePrivilege: the command runs outside the sandbox of the agent's host
	CauseValue     Cause = "value"     // SendSecret: a value that the session has read
	CausePackages  Cause = "packages"  // ChangeSystem: packages are installed by their names, from the sources that the system has
	CauseContained Cause = "contained" // a program, a change of files or of the system: what it changes is gone with the container
	CauseLater     Cause = "later"     // RunCode, Destroy: what is written now does it when it runs
)

var causes = [...]Cause{
	CauseVariable, CauseHeld, CauseOutput, CauseInput, CauseFile, CauseDownload, CauseUnresolved, CauseDialect, CauseScript, CauseAbsent,
	CauseCode, CauseLoaded, CauseSyntax, CauseLimit, CauseTool, CauseReader, CausePackage, CauseUnread, CauseField, CauseFailure, CauseHistory, CauseRecursion, CauseScanning, CauseValue, CauseLater, CauseUnshown, CauseNamed, CauseUnboxed, CauseInstaller, CausePackages, CauseContained,
}

// Causes returns all words that a rule may look for as a cause, see [Effect.Variant].
func Causes() []Cause {
	list := slices.Clone(causes[:])
	for _, h := range [...]Harm{Destroys, Grants, Exposes, Weakens, Redirects, Runs} {
		list = append(list, Cause(h))
	}
	return list
}

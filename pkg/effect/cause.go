package effect

import "slices"

// A Cause says why an effect is unknown, or which variant of its kind it is. Rules and code use causes;
// [Effect.Reason] is the text for people, and its wording may change.
type Cause string

// The causes of unknown effects.
const (
	CauseVariable   Cause = "variable"   // a variable or parameter that the command does not set
	CauseHeld       Cause = "held"       // code, or a program's name, is exactly the value of such a variable
	CauseOutput     Cause = "output"     // the output of a command or the result of an expression
	CauseInput      Cause = "input"      // standard input
	CauseFile       Cause = "file"       // the contents of a file
	CauseDownload   Cause = "download"   // data from another machine
	CauseUnresolved Cause = "unresolved" // other text that is not resolved, such as the matches of a glob
	CauseScript     Cause = "script"     // a script that was not read
	CauseAbsent     Cause = "absent"     // a script that does not exist: nothing would run
	CauseCode       Cause = "code"       // code that is not analysed: machine code, encoded code, code that is loaded into a shell
	CauseLoaded     Cause = "loaded"     // a file that a variable makes programs load
	CauseDialect    Cause = "dialect"    // syntax that shells interpret differently
	CauseSyntax     Cause = "syntax"     // text that cannot be parsed
	CauseLimit      Cause = "limit"      // a limit was exceeded: too long, too deep, too many
	CauseTool       Cause = "tool"       // an unknown tool or action type
	CauseReader     Cause = "reader"     // an unknown tool whose name and fields say that it only reads
	CausePackage    Cause = "package"    // a package that is neither a dependency of the project nor on the list of widely used names
	CauseUnread     Cause = "unread"     // a word or an input that shield does not parse names a path outside the workspace, or a command
	CauseField      Cause = "field"      // a field of the action is missing or invalid
	CauseArchive    Cause = "archive"    // the content of an archive was not read, or not all of it
	CauseFailure    Cause = "failure"    // the analysis failed
)

// The variants of a kind that rules distinguish.
const (
	CauseHistory   Cause = "history"   // Destroy: the command history is changed or stopped
	CauseRecursion Cause = "recursion" // StopProcess: endless recursion, as in a fork bomb
	CauseScanning  Cause = "scanning"  // ChangeSystem: script scanning (AMSI) is turned off
	CauseInstaller Cause = "installer" // RunDownload: all code that runs is from installers of known tools, over https
	CauseUnshown   Cause = "unshown"   // ReadFile: settings are loaded for a program, or only their names are shown
	CauseNamed     Cause = "named"     // StopProcess: processes by name or port, whoever started them
	CauseUnboxed   Cause = "unboxed"   // ChangePrivilege: the command runs outside the sandbox of the agent's host
	CauseValue     Cause = "value"     // SendSecret: a value that the session has read
	CausePackages  Cause = "packages"  // ChangeSystem: packages are installed by name from the configured sources
	CauseContained Cause = "contained" // a program, or a change of files or the system, whose changes vanish with the container
	CauseLater     Cause = "later"     // RunCode, Destroy: written now, happens when the written code runs
)

var causes = [...]Cause{
	CauseVariable, CauseHeld, CauseOutput, CauseInput, CauseFile, CauseDownload, CauseUnresolved, CauseDialect, CauseScript, CauseAbsent,
	CauseCode, CauseLoaded, CauseSyntax, CauseLimit, CauseTool, CauseReader, CausePackage, CauseUnread, CauseField, CauseArchive, CauseFailure, CauseHistory, CauseRecursion, CauseScanning, CauseValue, CauseLater, CauseUnshown, CauseNamed, CauseUnboxed, CauseInstaller, CausePackages, CauseContained,
}

// Causes returns all words that a rule may use as a cause, see [Effect.Variant].
func Causes() []Cause {
	list := slices.Clone(causes[:])
	for _, h := range [...]Harm{Destroys, Grants, Exposes, Weakens, Redirects, Runs} {
		list = append(list, Cause(h))
	}
	return list
}

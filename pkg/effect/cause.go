package effect

import "slices"

// A Cause says why an effect is unknown, or which variant of its kind it is. Rules and code use causes;
// [Effect.Reason] is the text for people, and its wording may change.
type Cause string

// The causes of unknown effects.
const (
	CauseVariable           Cause = "variable"   // a variable or parameter that the command does not set
	CauseVariableCode       Cause = "held"       // code or a program's name consists only of variables that the command does not set
	CauseOutput             Cause = "output"     // the output of a command or the result of an expression
	CauseInput              Cause = "input"      // standard input
	CauseFile               Cause = "file"       // the contents of a file
	CauseDownload           Cause = "download"   // data from another machine
	CauseUnresolved         Cause = "unresolved" // other text that is not resolved, such as the matches of a glob
	CauseUnreadScript       Cause = "script"     // a script that was not read
	CauseMissingScript      Cause = "absent"     // a script that does not exist: nothing would run
	CauseUnanalysedCode     Cause = "code"       // code that is not analysed: machine code, encoded code, code that is loaded into a shell
	CauseLoadedFile         Cause = "loaded"     // a file that a variable makes programs load
	CauseDialect            Cause = "dialect"    // syntax that shells interpret differently
	CauseSyntax             Cause = "syntax"     // text that cannot be parsed
	CauseLimit              Cause = "limit"      // a limit was exceeded: too long, too deep, too many
	CauseUnknownTool        Cause = "tool"       // an unknown tool or action type
	CauseUnknownReadingTool Cause = "reader"     // an unknown tool whose name and fields say that it only reads
	CauseUnknownPackage     Cause = "package"    // a package that is neither a dependency of the project nor on the list of widely used names
	CauseUnparsedWord       Cause = "unread"     // an argument or input that shield cannot interpret; it contains a command, or a path outside the workspace
	CauseInvalidField       Cause = "field"      // a field of the action is missing or invalid
	CauseArchive            Cause = "archive"    // the content of an archive was not read, or not all of it
	CauseAnalysisFailure    Cause = "failure"    // the analysis failed
)

// The variants of a kind that rules distinguish.
const (
	CauseCommandHistory Cause = "history"   // Destroy: the command history is changed or stopped
	CauseRecursion      Cause = "recursion" // StopProcess: endless recursion, as in a fork bomb
	CauseScanningOff    Cause = "scanning"  // ChangeSystem: script scanning (AMSI) is turned off
	CauseKnownInstaller Cause = "installer" // RunDownload: all code that runs is from installers of known tools, over https
	CauseValuesNotShown Cause = "unshown"   // ReadFile: a program loads the settings or key in the file, but their values are not printed
	CauseProcessByName  Cause = "named"     // StopProcess: processes by name or port, whoever started them
	CauseOutsideSandbox Cause = "unboxed"   // ChangePrivilege: the command runs outside the sandbox of the agent's host
	CauseSessionValue   Cause = "value"     // SendSecret: a value that the session has read
	CausePackageInstall Cause = "packages"  // ChangeSystem: packages are installed by name from the configured sources
	CauseInContainer    Cause = "contained" // a program, or a change of files or the system, whose changes vanish with the container
	CauseDeferred       Cause = "later"     // RunCode, Destroy: the effect happens later, when code that the action writes is run
)

var causes = [...]Cause{
	CauseVariable, CauseVariableCode, CauseOutput, CauseInput, CauseFile, CauseDownload, CauseUnresolved, CauseDialect, CauseUnreadScript, CauseMissingScript,
	CauseUnanalysedCode, CauseLoadedFile, CauseSyntax, CauseLimit, CauseUnknownTool, CauseUnknownReadingTool, CauseUnknownPackage, CauseUnparsedWord, CauseInvalidField, CauseArchive, CauseAnalysisFailure, CauseCommandHistory, CauseRecursion, CauseScanningOff, CauseSessionValue, CauseDeferred, CauseValuesNotShown, CauseProcessByName, CauseOutsideSandbox, CauseKnownInstaller, CausePackageInstall, CauseInContainer,
}

// Causes returns all words that a rule may use as a cause, see [Effect.Variant].
func Causes() []Cause {
	list := slices.Clone(causes[:])
	for _, h := range [...]Harm{Destroys, GrantsAccess, ExposesPublicly, WeakensProtection, RedirectsTraffic, RunsRemotely} {
		list = append(list, Cause(h))
	}
	return list
}

package effect

import "slices"

// An EffectCause says why an effect is unknown, or which variant of its kind it is. Rules and code
// use causes; [Effect.Reason] is the text for people, and its wording may change.
type EffectCause string

// The causes of unknown effects.
const (
	CauseVariableNotSetByCommand    EffectCause = "variable"   // a variable or parameter that the command does not set
	CauseCodeIsVariableValue        EffectCause = "held"       // code or a program's name consists only of variables that the command does not set
	CauseCommandOutput              EffectCause = "output"     // the output of a command or the result of an expression
	CauseStandardInput              EffectCause = "input"      // standard input
	CauseFileContents               EffectCause = "file"       // the contents of a file
	CauseDownload                   EffectCause = "download"   // data from another machine
	CauseOtherUnresolvedCommandText EffectCause = "unresolved" // other text that is not resolved, such as the matches of a glob
	CauseUnreadScript               EffectCause = "script"     // a script that was not read
	CauseMissingScript              EffectCause = "absent"     // a script that does not exist: nothing would run
	CauseUnanalysedCode             EffectCause = "code"       // code that is not analysed: machine code, encoded code, code that is loaded into a shell
	CauseFileLoadedViaVariable      EffectCause = "loaded"     // a file that a variable makes programs load
	CauseShellDialectDifference     EffectCause = "dialect"    // syntax that shells interpret differently
	CauseUnparseableText            EffectCause = "syntax"     // text that cannot be parsed
	CauseAnalysisLimitExceeded      EffectCause = "limit"      // a limit was exceeded: too long, too deep, too many
	CauseUnknownTool                EffectCause = "tool"       // an unknown tool or action type
	CauseUnknownReadOnlyTool        EffectCause = "reader"     // an unknown tool whose name and fields say that it only reads
	CauseUnknownPackage             EffectCause = "package"    // a package that is neither a dependency of the project nor on the list of widely used names
	CauseUnparsedWord               EffectCause = "unread"     // an argument or input that shield cannot interpret; it contains a command, or a path outside the workspace
	CauseInvalidActionField         EffectCause = "field"      // a field of the action is missing or invalid
	CauseUnreadArchive              EffectCause = "archive"    // the content of an archive was not read, or not all of it
	CauseAnalysisFailure            EffectCause = "failure"    // the analysis failed
)

// The variants of a kind that rules distinguish.
const (
	CauseCommandHistoryTampering    EffectCause = "history"   // Destroy: the command history is changed or stopped
	CauseEndlessRecursion           EffectCause = "recursion" // StopProcess: endless recursion, as in a fork bomb
	CauseScriptScanningDisabled     EffectCause = "scanning"  // ChangeSystem: script scanning (AMSI) is turned off
	CauseKnownInstaller             EffectCause = "installer" // RunDownload: all code that runs is from installers of known tools, over https
	CauseUnprintedFileRead          EffectCause = "unshown"   // ReadFile: a program loads the settings or key in the file, but their values are not printed
	CauseProcessSelectedByName      EffectCause = "named"     // StopProcess: processes by name or port, whoever started them
	CauseRunsOutsideHostSandbox     EffectCause = "unboxed"   // ChangePrivilege: the command runs outside the sandbox of the agent's host
	CauseSecretReadEarlierInSession EffectCause = "value"     // SendSecret: a value that the session has read
	CausePackageInstall             EffectCause = "packages"  // ChangeSystem: packages are installed by name from the configured sources
	CauseInContainer                EffectCause = "contained" // a program, or a change of files or the system, whose changes vanish with the container
	CauseWrittenCodeRunsLater       EffectCause = "later"     // RunCode, Destroy: the effect happens later, when code that the action writes is run
)

var causes = [...]EffectCause{
	CauseVariableNotSetByCommand, CauseCodeIsVariableValue, CauseCommandOutput, CauseStandardInput, CauseFileContents, CauseDownload, CauseOtherUnresolvedCommandText, CauseShellDialectDifference, CauseUnreadScript, CauseMissingScript,
	CauseUnanalysedCode, CauseFileLoadedViaVariable, CauseUnparseableText, CauseAnalysisLimitExceeded, CauseUnknownTool, CauseUnknownReadOnlyTool, CauseUnknownPackage, CauseUnparsedWord, CauseInvalidActionField, CauseUnreadArchive, CauseAnalysisFailure, CauseCommandHistoryTampering, CauseEndlessRecursion, CauseScriptScanningDisabled, CauseSecretReadEarlierInSession, CauseWrittenCodeRunsLater, CauseUnprintedFileRead, CauseProcessSelectedByName, CauseRunsOutsideHostSandbox, CauseKnownInstaller, CausePackageInstall, CauseInContainer,
}

// Causes returns all words that a rule may use as a cause, see [Effect.CauseOrFirstHarm].
func Causes() []EffectCause {
	list := slices.Clone(causes[:])
	for _, h := range [...]Harm{DestroysResources, GrantsCredentialsOrRoles, ExposesResourcesPublicly, WeakensSecurityControls, RedirectsTraffic, RunsCommandsOnRemoteMachines} {
		list = append(list, EffectCause(h))
	}
	return list
}

package effect

import "slices"

// A Cause says why an effect is unknown, or which variant of its kind it is. Rules and code use causes;
// [Effect.Reason] is the text for people, and its wording may change.
type EffectCause string

// The causes of unknown effects.
const (
	CauseVariable               EffectCause = "variable"   // a variable or parameter that the command does not set
	CauseCodeIsVariableValue    EffectCause = "held"       // code or a program's name consists only of variables that the command does not set
	CauseCommandOutput          EffectCause = "output"     // the output of a command or the result of an expression
	CauseStandardInput          EffectCause = "input"      // standard input
	CauseFileContents           EffectCause = "file"       // the contents of a file
	CauseDownload               EffectCause = "download"   // data from another machine
	CauseUnresolvedText         EffectCause = "unresolved" // other text that is not resolved, such as the matches of a glob
	CauseUnreadScript           EffectCause = "script"     // a script that was not read
	CauseMissingScript          EffectCause = "absent"     // a script that does not exist: nothing would run
	CauseUnanalysedCode         EffectCause = "code"       // code that is not analysed: machine code, encoded code, code that is loaded into a shell
	CauseLoadedFile             EffectCause = "loaded"     // a file that a variable makes programs load
	CauseShellDialectDifference EffectCause = "dialect"    // syntax that shells interpret differently
	CauseSyntax                 EffectCause = "syntax"     // text that cannot be parsed
	CauseAnalysisLimitExceeded  EffectCause = "limit"      // a limit was exceeded: too long, too deep, too many
	CauseUnknownTool            EffectCause = "tool"       // an unknown tool or action type
	CauseUnknownReadingTool     EffectCause = "reader"     // an unknown tool whose name and fields say that it only reads
	CauseUnknownPackage         EffectCause = "package"    // a package that is neither a dependency of the project nor on the list of widely used names
	CauseUnparsedWord           EffectCause = "unread"     // an argument or input that shield cannot interpret; it contains a command, or a path outside the workspace
	CauseInvalidField           EffectCause = "field"      // a field of the action is missing or invalid
	CauseUnreadArchive          EffectCause = "archive"    // the content of an archive was not read, or not all of it
	CauseAnalysisFailure        EffectCause = "failure"    // the analysis failed
)

// The variants of a kind that rules distinguish.
const (
	CauseCommandHistory                EffectCause = "history"   // Destroy: the command history is changed or stopped
	CauseRecursion                     EffectCause = "recursion" // StopProcess: endless recursion, as in a fork bomb
	CauseScriptScanningDisabled        EffectCause = "scanning"  // ChangeSystem: script scanning (AMSI) is turned off
	CauseKnownInstaller                EffectCause = "installer" // RunDownload: all code that runs is from installers of known tools, over https
	CauseFileReadWithoutPrintingValues EffectCause = "unshown"   // ReadFile: a program loads the settings or key in the file, but their values are not printed
	CauseProcessSelectedByName         EffectCause = "named"     // StopProcess: processes by name or port, whoever started them
	CauseOutsideSandbox                EffectCause = "unboxed"   // ChangePrivilege: the command runs outside the sandbox of the agent's host
	CauseValueReadInSession            EffectCause = "value"     // SendSecret: a value that the session has read
	CausePackageInstall                EffectCause = "packages"  // ChangeSystem: packages are installed by name from the configured sources
	CauseInContainer                   EffectCause = "contained" // a program, or a change of files or the system, whose changes vanish with the container
	CauseWrittenCodeRunsLater          EffectCause = "later"     // RunCode, Destroy: the effect happens later, when code that the action writes is run
)

var causes = [...]EffectCause{
	CauseVariable, CauseCodeIsVariableValue, CauseCommandOutput, CauseStandardInput, CauseFileContents, CauseDownload, CauseUnresolvedText, CauseShellDialectDifference, CauseUnreadScript, CauseMissingScript,
	CauseUnanalysedCode, CauseLoadedFile, CauseSyntax, CauseAnalysisLimitExceeded, CauseUnknownTool, CauseUnknownReadingTool, CauseUnknownPackage, CauseUnparsedWord, CauseInvalidField, CauseUnreadArchive, CauseAnalysisFailure, CauseCommandHistory, CauseRecursion, CauseScriptScanningDisabled, CauseValueReadInSession, CauseWrittenCodeRunsLater, CauseFileReadWithoutPrintingValues, CauseProcessSelectedByName, CauseOutsideSandbox, CauseKnownInstaller, CausePackageInstall, CauseInContainer,
}

// Causes returns all words that a rule may use as a cause, see [Effect.CauseOrFirstHarm].
func Causes() []EffectCause {
	list := slices.Clone(causes[:])
	for _, h := range [...]Harm{DestroysResources, GrantsAccess, ExposesPublicly, WeakensProtection, RedirectsTraffic, RunsRemotely} {
		list = append(list, EffectCause(h))
	}
	return list
}

package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// An argRole is the meaning of an argument to a program.
type argRole uint8

const (
	argRoleNone                  argRole = iota
	argRoleInertText                     // text without effect
	argRoleTextOrSensitivePath           // a number, name or pattern; it has an effect only if it is a sensitive path
	argRoleReadFile                      // a file that is read
	argRoleReadFolderTree                // a folder that is read recursively
	argRoleSendFile                      // a file that is sent to another machine
	argRoleSendFolderTree                // a folder that is sent recursively
	argRoleWriteFile                     // a file that is written
	argRoleOutputFileOrPipe              // a file that is written, or a shell command after |
	argRoleWriteFolderTree               // a folder in which any file may be written
	argRoleCopyDestination               // a file or folder to which the preceding operands are copied
	argRoleCopyDestinationFolder         // a folder into which operands are copied
	argRoleEditFile                      // a file that is read and written
	argRoleEditFolderTree                // a folder whose files are read and written
	argRoleBindMountFolder               // a folder that the nested program may read and change
	argRoleCompressFile                  // a file that is replaced by one with another suffix
	argRoleReadFileWriteSuffixed         // a file that is read; a file of its name plus a suffix is written
	argRoleOverwriteDisk                 // a disk or disk image that is overwritten
	argRoleRepairDisk                    // a disk or disk image that a program checks or repairs; its files are kept
	argRoleDatabaseFile                  // a database file, written if a statement changes data
	argRoleDeleteFile                    // a file that is deleted, or with the recursive flag a folder
	argRoleDeleteFolderTree
	argRoleDeleteCleanGitTree // a folder that git deletes; git refuses if it holds data that is not in version control
	argRoleDeleteEmptyFolder
	argRoleMoveSource // a file or folder that is moved away
	argRoleListFolder
	argRoleListFolderTree
	argRoleCreateFolder
	argRoleChangePermissions // a file whose permissions, owner or attributes are changed
	argRoleMountPoint        // a mount point
	argRoleFindStartFolder   // find: start folder
	argRoleURL
	argRolePackageSourceURLs      // URLs of package sources
	argRolePluginSource           // source of a plug-in
	argRoleDeployedContainerImage // an image that a cluster runs, or settings that name images
	argRoleDownloadURL            // a URL whose content is saved under its own name
	argRoleHost
	argRoleListenAddress
	argRoleMessageRecipient        // a recipient
	argRoleHTTPieItem              // httpie: a method, a URL, or name=value
	argRoleSocatAddress            // an address of socat
	argRoleNameEqualsFile          // name=file; the file is read
	argRoleRequestData             // text, or @file
	argRoleRequestFormField        // name=text, name=@file, name=<file
	argRoleTextOrFileReference     // text, @file, or file://path
	argRoleTextOrPath              // text, @file, file://path, or a path that may be read and written
	argRoleTargetHostOrDatabase    // a host, database, cluster or account that the command works on
	argRoleHTTPMethod              // the HTTP method of a request
	argRoleControlSocket           // a Unix socket
	argRoleUnsetVariable           // a variable that is removed from the nested command's environment
	argRoleReadFileOrRunStdin      // a file that is read; standard input is run
	argRoleOperandListFile         // a file that lists further operands
	argRoleDryRunMode              // mode of a dry run; "none" is no dry run
	argRoleMakeRules               // make rules, with their commands
	argRoleDiffText                // a patch
	argRolePatchFile               // a patch file that is applied
	argRoleSettingsPath            // a settings file or folder, which may name programs
	argRoleProxyOrServer           // a proxy, or a server that replaces the named host
	argRoleRequestBody             // text that is sent
	argRoleGitRemote               // a git remote: URL, host:path, path or name
	argRoleGitPushRemote           // a git remote to which commits are sent
	argRoleGitRemoteName           // the name of a git remote
	argRoleGitRemoteURL            // the URL that git remote add or set-url assigns to a remote
	argRolePushedImage             // a container image that is pushed to its registry
	argRoleGitCloneRemote          // a git remote that is cloned
	argRoleRemoteCopySource        // host:path or path, read
	argRoleRemoteCopyDestination   // host:path or path, written
	argRoleURLOrFile               // a URL, or a file that is read
	argRolePackage                 // a package's name, its URL or its path
	argRoleNPMPackage              // a package's name, URL or path for npm, where USER/REPO is a GitHub repository
	argRolePackageProvidingProgram // a package that provides the program to run
	argRoleNPMCreateTemplate       // template of a new project: NAME means npm's package create-NAME
	argRoleTemplateRepository      // a repository that is copied as a template
	argRoleGoModulePath            // a Go module path, which begins with a host, after an optional NAME=
	argRoleGoProgram               // a Go module path with a version, or a folder or file that is read
	argRoleCloudObjectSource       // s3://bucket/key and the like, or a local path; read
	argRoleCloudObjectDestination  // an object in a cloud store; written
	argRoleDockerVolume            // docker -v
	argRoleDockerMount             // docker --mount
	argRoleSSHOption
	argRoleGitConfigSetting // key=value
	argRoleGitConfigKey
	argRoleGitConfigValue
	argRoleSedScript
	argRoleSQLText
	argRoleFTPCommands              // commands of ftp and similar programs
	argRoleSubcommandLines          // input lines that are subcommands
	argRoleTextToSearchForPatterns  // text that is searched for the texts in the program's entry (key "texts")
	argRoleQueryLanguageFile        // a file with code in the language that the program also reads from standard input
	argRoleExEditorCommands         // commands of vi
	argRoleDateFormatOrTime         // argument of date: +FORMAT for the output, or a new time for the system clock
	argRoleBackupSuffix             // suffix of the backup copy of each edited file
	argRolePrintedVariable          // the name of a variable to print
	argRolePrintsAllVariables       // used if an operand is missing: the program then prints all variables
	argRoleEnvironmentAssignment    // NAME=VALUE for the nested command
	argRoleWritesLocally            // an argument with which the program makes a change on this machine
	argRoleChangesOperatingSystem   // an argument with which the program changes the operating system or its settings
	argRoleChangesRemoteResource    // an argument with which the program changes a remote resource
	argRoleDestroyedResource        // a resource that is deleted
	argRoleStoppedProcess           // a process to stop
	argRoleCoreDumpOrPID            // a core dump, or the ID of a process
	argRoleProcessName              // process name, or path of its program
	argRoleProcessNameRegexp        // regular expression that matches a part of the process name
	argRoleProcessCommandLineRegexp // regular expression that matches a part of the command line
	argRoleProcessWholeNameRegexp   // regular expression that matches the whole process name
	argRoleProcessGroup             // processes of a user, a group, a session or a terminal
	argRoleProcessParent            // a process ID: the children of this process are selected, as by pkill -P
	argRoleProcessesUsingFile       // processes that use a file
	argRoleSwitchUser               // a user to switch to
	argRoleUnjudgeable              // an argument with unknown effects: with it, the command is not understood
	argRoleReadRegistryKey          // a registry key that is read
	argRoleChangeRegistryKey        // a registry key that is changed
	argRoleTextOrScriptFile         // a code file if it has the extension of one, else text
	argRoleArchiveReadOrWritten     // an archive; other options say whether it is read or written
	argRoleWorkingFolder            // the working folder of the program; options such as tar -x make it the folder that is written
	argRoleChdirForAllArgs          // working folder for all arguments
	argRoleChdirForLaterOperands    // working folder for the operands that follow
	argRoleContainerEntryPoint      // the command that replaces a container's entry point

	// Code, by language.
	argRoleShellCode
	argRolePythonCode
	argRolePerlCode
	argRoleRubyCode
	argRoleNodeCode
	argRolePHPCode
	argRoleAwkCode
	argRoleAppleScriptCode
	argRoleLuaCode
	argRolePowerShellCode
	argRoleEncodedPowerShellCode // PowerShell in UTF-16 and base64
	argRoleCmdExeCode
	argRoleIPythonCode
	argRoleOtherLanguageCode

	// Files with code, by language.
	argRoleScriptFile
	argRoleShellScriptFile
	argRolePythonScriptFile
	argRolePerlScriptFile
	argRoleRubyScriptFile
	argRoleNodeScriptFile
	argRolePHPScriptFile
	argRoleAwkScriptFile
	argRoleAppleScriptFile
	argRoleLuaScriptFile
	argRolePowerShellScriptFile
	argRoleOtherLanguageScriptFile

	// Roles that cover all remaining words.
	argRoleArgv                     // a command
	argRoleArgvOnRemote             // a command on another machine or in a container
	argRoleArgvPlusStdinArgs        // a command that gets arguments from standard input
	argRoleArgvUntilSemicolon       // a command up to a semicolon
	argRoleArgvOrScriptFile         // a command, or a code file with arguments if it has the extension of one
	argRoleArgvFromPackage          // a command that a package provides: the first word names the package
	argRoleArgvIfProgramSyntaxKnown // a command if its program is listed, a code file if it has the extension of one, else text
	argRolePythonModuleArgv         // a Python module with its arguments
	argRoleArgsPassedToShell        // arguments of a shell, after the text of an option -c
	argRoleInertRemainingArgs       // text
	argRoleKeystrokes               // text that is typed, and key names
	argRoleShellCodeWords           // shell text, joined with spaces
	argRoleRemoteShellCodeWords
	argRoleCmdExeCodeWords     // text for cmd.exe, joined with spaces
	argRolePowerShellCodeWords // PowerShell text, joined with spaces
)

// addStoppedProcess records that a process is stopped, unless it is a background job of the shell.
func (r *argParser) addStoppedProcess(w Word) {
	if !w.IsJobID && !strings.HasPrefix(w.Text, "%") {
		r.addEffect(effect.StopProcess)
		r.result.ProcessSignals = append(r.result.ProcessSignals, ProcessSignal{ProcessSelectionByID, w})
	}
}

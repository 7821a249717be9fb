package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A role is the meaning of a word to a program.
type role uint8

const (
	roleNone      role = iota
	roleText           // text without effect
	roleWord           // a number, name or pattern without effect unless it names a place
	roleRead           // a file that is read
	roleReadTree       // a folder that is read recursively
	roleSendFile       // a file that is sent to another machine
	roleSendTree       // a folder that is sent recursively
	roleWrite          // a file that is written
	roleOutput         // a file that is written, or a shell command after |
	roleWriteTree      // a folder in which any file may be written
	roleWriteTo        // a file or folder to which the preceding operands are copied
	roleIntoDir        // a folder into which operands are copied
	roleEdit           // a file that is read and written
	roleEditTree       // a folder whose files are read and written
	roleBind           // a folder that the nested program may read and change
	roleCompress       // a file that is replaced by one with another suffix
	roleBeside         // a file that is read; a file of its name plus a suffix is written
	roleFormat         // a disk or disk image that is overwritten
	roleMend           // a disk or disk image that is changed but keeps its content
	roleStore          // a database file, written if a statement changes data
	roleDelete         // a file that is deleted, or with the recursive flag a folder
	roleDeleteTree
	roleCleanTree // a folder that is deleted, unless it holds data that is not in version control
	roleRmdir
	roleMove // a file or folder that is moved away
	roleList
	roleListTree
	roleMkdir
	roleChmod // a file whose permissions, owner or attributes are changed
	roleOver  // a mount point
	roleStart // find: start folder
	roleURL
	roleSource      // URLs of package sources
	rolePlugin      // source of a plug-in
	roleImageSource // an image that a cluster runs, or settings that name images
	roleFetch       // a URL whose content is saved under its own name
	roleHost
	roleListen
	roleSend          // a recipient
	roleWebItem       // httpie: a method, a URL, or name=value
	roleSocket        // an address of socat
	roleNamed         // name=file; the file is read
	roleData          // text, or @file
	roleForm          // name=text, name=@file, name=<file
	roleMaybeFile     // text, @file, or file://path
	roleMaybePath     // text, @file, file://path, or a path that may be read and written
	rolePlace         // a host, database, cluster or account that the command works on
	roleMethod        // the HTTP method of a request
	roleControl       // a Unix socket
	roleUnset         // a variable that is removed from the nested command's environment
	roleReadInput     // a file that is read; standard input is run
	roleNames         // a file that lists further operands
	roleDryRun        // mode of a dry run; "none" is no dry run
	roleRecipes       // make rules, with their commands
	roleDiff          // a patch
	rolePatch         // a patch file that is applied
	roleSettings      // a settings file or folder, which may name programs
	roleServer        // a proxy, or a server that replaces the named host
	roleBody          // text that is sent
	roleRepo          // a git remote: URL, host:path, path or name
	rolePush          // a git remote to which commits are sent
	roleRemoteName    // the name of a git remote
	roleRemoteURL     // the URL that the remote gets
	roleImage         // a container image that is pushed to its registry
	roleClone         // a git remote that is cloned
	roleRemoteSrc     // host:path or path, read
	roleRemoteDst     // host:path or path, written
	roleMaybeURL      // a URL, or a file that is read
	rolePackage       // a package's name, its URL or its path
	roleNPMPackage    // a package's name, URL or path for npm, where USER/REPO is a GitHub repository
	roleFromPackage   // a package that provides the program to run
	roleCreator       // template of a new project: NAME means npm's package create-NAME
	roleTemplate      // a repository that is copied as a template
	roleModulePath    // a Go module path, which begins with a host, after an optional NAME=
	roleModuleProgram // a Go module path with a version, or a folder or file that is read
	roleObject        // s3://bucket/key and the like, or a local path; read
	roleObjectDst     // an object in a cloud store; written
	roleVolume        // docker -v
	roleMount         // docker --mount
	roleSSHOption
	roleGitConfig // key=value
	roleGitKey
	roleGitValue
	roleSed
	roleSQL
	roleTransfer       // commands of ftp and similar programs
	roleLines          // input lines that are subcommands
	roleTexts          // text that is searched for the texts in the program's entry (key "texts")
	roleScriptInput    // a file with code in the language that the program also reads from standard input
	roleEx             // commands of vi
	roleDate           // +FORMAT, else the clock is set
	roleSuffix         // suffix of the backup copy of each edited file
	roleSecret         // the name of a variable to print
	roleSecretAll      // all variables are printed
	roleSetting        // NAME=VALUE for the nested command
	roleChange         // a change on this machine
	roleSystem         // a change of the system
	roleRemote         // a change of a remote resource
	roleDestroy        // a resource that is deleted
	roleProcess        // a process to stop
	roleCore           // a core dump, or the ID of a process
	roleProcessName    // process name, or path of its program
	roleProcessPattern // regular expression that matches a part of the process name
	roleProcessLine    // regular expression that matches a part of the command line
	roleProcessExact   // regular expression that matches the whole process name
	roleProcessGroup   // processes of a user, a group, a session or a terminal
	roleProcessParent  // children of a process
	roleProcessFile    // processes that use a file
	rolePrivilege      // a user to switch to
	roleReject         // an operand with which the command is not understood
	roleKey            // a registry key that is read
	roleSetKey         // a registry key that is changed
	roleMaybeScript    // a code file if it has the extension of one, else text
	roleArchive        // an archive; other options say whether it is read or written
	roleFolder         // the working folder; with some other options, the folder to which the program writes
	roleEnter          // working folder for all arguments
	roleStep           // working folder for the operands that follow
	roleEntry          // the command that replaces a container's entry point

	// Code, by language.
	roleShell
	rolePython
	rolePerl
	roleRuby
	roleNode
	rolePHP
	roleAwk
	roleAppleScript
	roleLua
	rolePowerShell
	roleEncoded // PowerShell in UTF-16 and base64
	roleCmd
	roleIPython
	roleCode

	// Files with code, by language.
	roleScript
	roleScriptShell
	roleScriptPython
	roleScriptPerl
	roleScriptRuby
	roleScriptNode
	roleScriptPHP
	roleScriptAwk
	roleScriptAppleScript
	roleScriptLua
	roleScriptPowerShell
	roleScriptCode

	// Roles that cover all remaining words.
	roleArgv        // a command
	roleArgvRemote  // a command on another machine or in a container
	roleArgvStdin   // a command that gets arguments from standard input
	roleArgvSemi    // a command up to a semicolon
	roleArgvScript  // a command, or a code file with arguments if it has the extension of one
	roleArgvPackage // a command that a package provides: the first word names the package
	roleArgvListed  // a command if its program is listed, a code file if it has the extension of one, else text
	roleModule      // a Python module with its arguments
	roleShellArgs   // arguments of a shell, after the text of an option -c
	roleWords       // text
	roleKeys        // text that is typed, and key names
	roleShellWords  // shell text, joined with spaces
	roleShellRemote
	roleCmdWords        // text for cmd.exe, joined with spaces
	rolePowerShellWords // PowerShell text, joined with spaces
)

// addStoppedProcess records that a process is stopped, unless it is a background job of the shell.
func (r *argParser) addStoppedProcess(w Word) {
	if !w.IsJobID && !strings.HasPrefix(w.Text, "%") {
		r.addEffect(effect.StopProcess)
		r.result.Signals = append(r.result.Signals, Signal{ProcessByID, w})
	}
}

package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A role says what a word is to a program.
type role uint8

const (
	roleNone      role = iota
	roleText           // nothing that matters, whatever it says
	roleWord           // a number, a name, a pattern: nothing that matters unless it names a place
	roleRead           // a file that is read
	roleReadTree       // a folder that is read with all it holds
	roleSendFile       // a file that is sent to another machine
	roleSendTree       // a folder that is sent with all it holds
	roleWrite          // a file that is written
	roleOutput         // the same, or behind | a shell command
	roleWriteTree      // a folder in which anything is written
	roleWriteTo        // a file or folder to which operands before it are copied
	roleIntoDir        // a folder into which operands are copied
	roleEdit           // a file that is read and written
	roleEditTree       // a folder of such files
	roleBind           // a folder that what runs may read and change
	roleCompress       // a file that is replaced by one with or without a suffix
	roleBeside         // a file that is read, and one of its name with an ending that is written beside it
	roleFormat         // a disk or the image of one, which gets a new content
	roleMend           // one that is changed and keeps its content
	roleStore          // a database in a file, written where something in it is changed
	roleDelete         // a file, or with the recursive flag a folder
	roleDeleteTree
	roleCleanTree // deleted unless version control misses something in it
	roleRmdir
	roleMove // goes away, with all it holds
	roleList
	roleListTree
	roleMkdir
	roleChmod // permissions, owner, attributes
	roleOver  // a folder over which something is mounted
	roleStart // find: where it starts
	roleURL
	roleSource      // addresses that packages come from
	rolePlugin      // what a plug-in is installed from
	roleImageSource // an image that runs in a cluster, or settings that name some
	roleFetch       // a URL whose content is saved under its own name
	roleHost
	roleListen
	roleSend          // a recipient
	roleWebItem       // httpie: a method, a URL, or name=value
	roleSocket        // an address of socat
	roleNamed         // name=file, of which the file is read
	roleData          // text, or @file
	roleForm          // name=text, name=@file, name=<file
	roleMaybeFile     // a word, or @file, or file://path
	roleMaybePath     // the same, or a path that may be read and written
	rolePlace         // a host, database, cluster or account that is worked on
	roleMethod        // the method of a request
	roleControl       // a Unix socket
	roleUnset         // the name of a variable that what runs does not get
	roleReadInput     // a file that is read; if it is standard input, that is run
	roleNames         // a file that lists further operands
	roleDryRun        // how a trial is made; "none" is no trial
	roleRecipes       // rules for make, with the commands that they run
	roleDiff          // differences of files, with their names
	rolePatch         // a file with such differences, which are applied
	roleSettings      // a file or folder of settings, which may name programs
	roleServer        // what requests go through, or to in place of the host that is named
	roleBody          // text that is sent
	roleRepo          // a git remote: URL, host:path, path or name
	rolePush          // a git remote to which commits are sent
	roleRemoteName    // the name of a git remote
	roleRemoteURL     // the address that it gets
	roleImage         // an image of containers that is sent to its registry
	roleClone         // the same, of which a copy is made
	roleRemoteSrc     // host:path or path, read
	roleRemoteDst     // host:path or path, written
	roleMaybeURL      // a URL, or a file that is read
	rolePackage       // a package's name, its URL or its path
	roleNPMPackage    // the same for npm, to which USER/REPO is an address, too
	roleFromPackage   // a package that brings the program which is run
	roleCreator       // what a new project is made from: NAME stands for the package create-NAME of npm
	roleTemplate      // a repository that source is copied from
	roleModulePath    // the path of a Go module, which begins with a host, behind an optional NAME=
	roleModuleProgram // the same with a version, or a folder or file that is read
	roleObject        // s3://bucket/key and the like, or a path that is read
	roleObjectDst     // the same, written
	roleVolume        // docker -v
	roleMount         // docker --mount
	roleSSHOption
	roleGitConfig // key=value
	roleGitKey
	roleGitValue
	roleSed
	roleSQL
	roleTransfer       // commands of ftp and the like
	roleLines          // lines that are subcommands
	roleTexts          // text in which the program looks for its texts
	roleScriptInput    // a file of what it also reads from standard input
	roleEx             // commands of vi
	roleDate           // +FORMAT, else the clock is set
	roleSuffix         // what the name of a copy ends in that is kept of each edited file
	roleSecret         // the name of a variable to print
	roleSecretAll      // all variables are printed
	roleSetting        // NAME=VALUE for what runs
	roleChange         // a change nearby
	roleSystem         // a change of the system
	roleRemote         // a change of a remote resource
	roleDestroy        // a resource that is gone then
	roleProcess        // a process to stop
	roleCore           // a file with the memory of a process, or the number of one
	roleProcessName    // its name, or the path of its program
	roleProcessPattern // a regular expression that a part of its name matches
	roleProcessLine    // the same of its command line
	roleProcessExact   // a regular expression that its whole name matches
	roleProcessGroup   // processes of a user, a group, a session or a terminal
	roleProcessParent  // children of a process
	roleProcessFile    // processes that use a file
	rolePrivilege      // someone to become
	roleReject         // cannot be judged
	roleKey            // a key of the registry that is read
	roleSetKey         // one that is changed
	roleMaybeScript    // a file of code if its name ends as one, else text
	roleArchive        // read or written, as other options say
	roleFolder         // entered, and written to if other options say so
	roleEnter          // entered before anything else is done
	roleStep           // entered for the operands that follow
	roleEntry          // the program that a container starts in place of its own

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

	// These take all words that follow.
	roleArgv        // a command
	roleArgvRemote  // a command on another machine or in a container
	roleArgvStdin   // a command completed from standard input
	roleArgvSemi    // a command up to a semicolon
	roleArgvScript  // a command, or a file of code with its arguments if its name ends as one
	roleArgvPackage // a command that a package brings: the first word names the package
	roleArgvListed  // a command, if a program of its name is listed, else text
	roleModule      // a Python module with its arguments
	roleShellArgs   // arguments of a shell, behind the -c TEXT that an option may have given it
	roleWords       // text
	roleKeys        // text that is typed, and names of keys
	roleShellWords  // shell text, joined with spaces
	roleShellRemote
	roleCmdWords        // text for cmd.exe, joined with spaces
	rolePowerShellWords // PowerShell text, joined with spaces
)

// process stops what a word names, unless it is a job that the shell itself started.
func (r *reader) process(w Word) {
	if !w.Job && !strings.HasPrefix(w.Text, "%") {
		r.effect(effect.StopProcess)
		r.use.Signals = append(r.use.Signals, Signal{ByID, w})
	}
}

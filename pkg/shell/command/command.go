// Package command contains the knowledge about what programs do with their arguments: which operands they read,
// write, delete or contact, and which are commands to run. The knowledge is data, the files in programs, which go
// generate compiles into tables; programs/README.md describes their format.
package command

import "github.com/shieldcli/shield/pkg/effect"

//go:generate go run ./gen

// A Word is one argument, as far as it is known without running anything.
type Word struct {
	Text                     string                 // resolved text; a pattern as in effect.PatternsOverlap if IsGlobPattern
	IsGlobPattern            bool                   // part of Text is unknown or a glob
	DoubleStarExcludesDotDot bool                   // ** in Text stands for folders that a program searches, so it cannot match ".."
	IsJobID                  bool                   // ID of a background job of the shell
	Span                     effect.CommandTextSpan // position in the command line
}

// An Interpretation is the effect of running a program with certain arguments.
type Interpretation struct {
	Understood                  bool                  // the program is listed and its arguments were understood
	NonOperandDataLosses        effect.FileLossSet    // losses besides the effects in OperandEffects
	FolderLosingFiles           Word                  // if NonOperandDataLosses is set: the folder that the program works in
	Class                       effect.ProgramClass   // class without the effects of NestedCommandsAndCode; UnknownClass if the program is not listed or runs unknown code
	OperandEffects              []OperandEffect       // operands with an effect
	NestedCommandsAndCode       []NestedCommandOrCode // operands that are commands or code
	Effects                     []effect.Kind         // effects without an operand, such as ChangeSystem
	OperandListFiles            []Word                // files that list further operands
	Unrecognized                []UnrecognizedWord    // option values and operands that the program's entry does not explain; judged by their text
	FreeTexts                   []Word                // option values that are free text for the program, such as a commit message
	NestedCommandEnvAssignments []Word                // NAME=VALUE settings made for the nested command, as by env
	Stdin                       StreamContentKind     // how standard input is used
	IsStdinUseKnown             bool                  // the program's entry says how standard input is used; if false, the use is unknown
	RunsStdinRemotely           bool                  // standard input is run as commands on another machine or in a container
	Stdout                      StreamContentKind     // kind of data on standard output
	WhyNotUnderstood            string                // why Understood is false

	EffectsDescription               string        // description of Effects, after the program's name; may be empty
	StdinCodeLanguage                string        // language of code on standard input, as in NestedCommandOrCode.Language; "" if only the program itself reads it
	IsWindowsProgram                 bool          // a Windows program: paths may contain globs and backslashes
	WritesDecodedInputToFiles        bool          // written files contain decoded input
	RegistryKeys                     []RegistryKey // registry keys
	SendsArgumentsToOtherMachine     bool          // arguments are sent to another machine unchanged, as in DNS queries of dig
	VariableOnlyArgIsDatabaseAddress bool          // database client: an argument that consists of one variable is the address of the database
	GitRemotes                       []GitRemote
	Packages                         []Package // packages that are installed, or whose programs run
	InstallsPackagesByNameOnly       bool      // packages are installed or upgraded by name only
	ProxiesAndServersReplacingHosts  []Word    // proxies, and servers that replace the named hosts
	ProcessSignals                   []ProcessSignal
	BuiltSourcePackagesOrFolders     []Word // source packages or folders that are built, and run or installed
	Harms                            []effect.Harm
	RemoteServiceChange              RemoteServiceChange // details of the effect ChangeRemoteSystem, if Effects contains it
	RemoteDatabaseHostOrURL          string              // remote database that gets statements; "" if it is local, for tests, or unknown
	targetHostsAndDatabases          []Word              // hosts, databases, clusters and accounts that the command works on

	dropsTestDatabase bool // a test database is dropped, which loses no data unless one of targetHostsAndDatabases is in production use
}

// A Package is the name of a package and its registry: npm, jsr, pypi, go, crates, gems or another
// registry that the programs' entries name. Registry is "" if the registry is unknown.
type Package struct {
	Word     // name of the package, with its version if one is given
	Registry string
}

// An UnrecognizedWord is an argument whose effect the program's entry in programs/*.yaml does not tell, for
// example an unlisted option.
type UnrecognizedWord struct {
	Word
	MaybeOptionValue bool // possibly the value of an unlisted option; if false, the program's entry lists the word as plain text
}

// Words is a set of words, from words.yaml.
type Words map[string]bool

// A RemoteServiceChange is a change on another machine.
type RemoteServiceChange struct {
	Service      string // remote service, such as kubernetes, aws or database; the program's name if its entry names no service
	Verb         string // delete, grant, expose, weaken, redirect, run, or change for all others
	Target       string // the named host, cluster or database, if any
	IsTestTarget bool   // the target's name says that it is for development or tests
	Destroys     bool   // the loss cannot be undone from this machine
}

// An OperandEffect is an effect on the object that an operand names.
type OperandEffect struct {
	Kind                           effect.Kind
	Word                           Word // the path, URL or host, without the option in forms like --file=PATH
	Recursive                      bool
	IsFileContentSent              bool // for ReadFile: the content is sent to another machine
	IsFileContentNormallyUnchanged bool // for WriteFile: the file changes only if a file system needs a repair, or if a program in a container writes to it
	IsBackupCopy                   bool // for WriteFile: a backup copy of another file that is written
	RefusesDeletingUnversionedData bool // for DeleteFile: the program refuses if data is not in version control
}

// A ProcessSignal names processes that get a signal or a debugger.
type ProcessSignal struct {
	SelectedBy      ProcessSelection
	ProcessSelector Word
}

// A ProcessSelection says how the word of a [ProcessSignal] selects processes.
type ProcessSelection uint8

// Ways to select processes.
const (
	ProcessSelectionByID            ProcessSelection = iota // process ID; kill also accepts a process name
	ProcessSelectionByName                                  // name, or path of the program
	ProcessSelectionByNamePattern                           // regular expression that matches a part of the name
	ProcessSelectionByCommandLine                           // regular expression that matches a part of the command line
	ProcessSelectionByWholeName                             // regular expression that matches the whole name
	ProcessSelectionByUserOrSession                         // user, group, session or terminal
	ProcessSelectionByParent                                // ID of the parent process
	ProcessSelectionByOpenFile                              // file that the process uses
)

// A GitRemote is a remote name for a URL in git's configuration. Name is empty if every URL is rewritten to this
// one.
type GitRemote struct {
	Name    string
	Address Word
}

// A RegistryKey is an operand that names a key of the Windows registry.
type RegistryKey struct {
	Word  Word
	Write bool
}

// A NestedCommandOrCode is an operand that holds commands or code that the program runs.
//
// SQL text and sed scripts are analysed in this package and are never a NestedCommandOrCode, but
// their commands and files are.
type NestedCommandOrCode struct {
	Language            string // "argv" (Words are a command), "shell" (Words[0] is text), "python", "perl", "ruby", "node", "php", "awk", "applescript", "lua", "powershell", "encoded" (PowerShell text in UTF-16 and base64), "cmd", "ipython" (a cell of a notebook), "code" (text of another language), "file" (Words[0] is a script's path)
	ScriptFileLanguage  string // language of the script if Language is "file"; "" if the file's name or first line tells it; if Language is "options", the program, or the start of its command line, that gets the options
	VariableHoldingCode string // variable set to Words[0], or "-" for a settings path; Language is then as in [CodeRunByEnvVariable]; else ""
	Words               []Word // for "powershell" and "cmd" there may be several, to be joined with spaces
	Remote              bool   // runs on another machine or in a container
	ArgsFromStdin       bool   // arguments are added from standard input, as by xargs
}

// A StreamContentKind says how a program uses its standard input, or what its standard output
// contains.
type StreamContentKind string

// The values of StreamContentKind. The zero value is plain data.
const (
	StreamPlainData     StreamContentKind = ""
	StreamExecutedCode  StreamContentKind = "code"     // stdin is executed
	StreamDownload      StreamContentKind = "download" // stdout comes from the network
	StreamUpload        StreamContentKind = "upload"   // stdin goes to the network
	StreamDecodedStdin  StreamContentKind = "decoded"  // stdout is decoded stdin
	StreamFilteredStdin StreamContentKind = "input"    // stdout is stdin, possibly changed
	StreamCredentials   StreamContentKind = "secret"   // stdout holds credentials
	StreamDatabaseRows  StreamContentKind = "rows"     // stdout holds rows of a database on this machine
	StreamOperandList   StreamContentKind = "names"    // stdin lists further operands
)

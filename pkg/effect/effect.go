// Package effect describes what an action would do, in primitive terms. A tool call such as read_file has one
// [Effect]; a shell command has one for each part. The package also converts paths, hosts and text to the
// canonical form in which rules compare them.
package effect

// A Kind says what an effect does. Policies use the same words for kinds and
// action types, and some words for combinations, see [Effect.KindForPolicies].
type Kind string

// The kinds of effects.
const (
	ReadFile           Kind = "read_file"
	WriteFile          Kind = "write_file" // creates or changes a file
	DeleteFile         Kind = "delete_file"
	DeleteDirectory    Kind = "delete_directory"
	MoveFile           Kind = "move_file" // the source of a move; the destination is a WriteFile
	ListDirectory      Kind = "list_directory"
	CreateDirectory    Kind = "create_directory"
	ChangePermissions  Kind = "change_permissions" // mode, owner, access lists, attributes
	Execute            Kind = "execute"            // runs a program; uses the fields Program, Args and Class
	HTTPRequest        Kind = "http_request"       // URL, Host
	Connect            Kind = "connect"            // contacts a network peer, named by the field Host
	Listen             Kind = "listen"             // accepts connections
	SendMessage        Kind = "send_message"       // mail, chat and the like
	Persist            Kind = "persist"            // Path is a file that runs code later
	ChangePrivilege    Kind = "change_privilege"   // sudo, setuid, capabilities
	ChangeSystem       Kind = "change_system"      // services, packages, users, firewall, kernel, devices
	ChangeRemoteSystem Kind = "change_remote"      // changes a repository, cluster, cloud or database at a remote service
	TamperWithShield   Kind = "change_guard"       // changes shield itself: answers its questions, clears or repairs its data, stops or reconfigures it
	StopProcess        Kind = "stop_process"
	ReadSecret         Kind = "read_secret"  // prints or sends credentials: environment, key store, token
	ReadClipboard      Kind = "read_private" // clipboard, screen, microphone, keystrokes, memory of another process
	DestroyData        Kind = "destroy"      // destroys irreversibly: databases, disks, history, resources
	SendData           Kind = "send_data"    // sends the content of files or the output of commands, not text spelled out in the action
	RunCode            Kind = "run_code"     // runs code: the file Path, which Program loads, or a text; DataLabels give the code's origin
	RemoteShell        Kind = "remote_shell" // attaches an interpreter to the network
)

// Kinds returns all kinds of effects, and the words for combinations of a kind with other fields, for example
// [RunDownload]. The caller must not change the result.
func Kinds() []Kind { return kinds[:] }

var kinds = [...]Kind{
	ReadFile, WriteFile, DeleteFile, DeleteDirectory, MoveFile, ListDirectory, CreateDirectory, ChangePermissions, Execute,
	HTTPRequest, Connect, Listen, SendMessage, Persist, ChangePrivilege, ChangeSystem, ChangeRemoteSystem, StopProcess, ReadSecret,
	ReadClipboard, DestroyData, RunDownload, RunDecodedText, RunCommandOutput, SendSecret, SendData, RunCode, RemoteShell, TamperWithShield, UnknownEffect,
}

// A Certainty says whether an effect certainly happens.
type Certainty string

// The certainties.
const (
	Certain  Certainty = ""        // it happens
	Possible Certainty = "may"     // it may happen: a branch, or an operand that is not known
	Unknown  Certainty = "unknown" // something happens that cannot be determined before it runs: Cause says why. It is never harmless
)

// CertainOrPossible returns Certain if sure, else Possible.
func CertainOrPossible(isCertain bool) Certainty {
	if isCertain {
		return Certain
	}
	return Possible
}

// A ProgramClass says how much a program can change, given its flags.
type ProgramClass string

// The classes of programs, from least to most change. The class of an unknown program is UnknownClass.
const (
	UnknownClass ProgramClass = ""
	ReadOnly     ProgramClass = "readonly"
	LocalWrite   ProgramClass = "local-write"
	Network      ProgramClass = "network"
	Destructive  ProgramClass = "destructive"
	Privileged   ProgramClass = "privileged"
)

// A CommandTextSpan is the part of the command's text that an effect comes from: the bytes from
// Start up to, but not including, End.
type CommandTextSpan struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// An Effect is one primitive operation of an action: what (Kind), on which object (path, host, program,
// service), with data of which origin (DataLabels), with what harm, and how certain.
type Effect struct {
	Kind                      Kind            `json:"kind"`
	Path                      string          `json:"path,omitempty"`      // canonical, see [PathContext.CanonicalPath]
	PathIsPattern             bool            `json:"pattern,omitempty"`   // Path is a pattern: the effect touches all paths it matches, see [PatternsOverlap]
	DoubleStarExcludesDotDot  bool            `json:"tree,omitempty"`      // ** in Path stands for folders that a program searches, and cannot match ".."
	Recursive                 bool            `json:"recursive,omitempty"` // the effect also touches everything below Path
	URL                       string          `json:"url,omitempty"`
	Host                      string          `json:"host,omitempty"` // canonical, see [CanonicalHost]
	Program                   string          `json:"program,omitempty"`
	Args                      []string        `json:"args,omitempty"`
	Class                     ProgramClass    `json:"class,omitempty"`      // of Execute
	RemoteServiceName         string          `json:"service,omitempty"`    // of ChangeRemoteSystem: kubernetes, aws, github, postgres, a program's name, …
	RemoteOperationVerb       string          `json:"verb,omitempty"`       // of ChangeRemoteSystem: delete, create, update, …; of HTTPRequest: "change" if the method may change something
	RemoteTargetName          string          `json:"target,omitempty"`     // of ChangeRemoteSystem and SendData: the resource, remote or recipient
	DataLabels                []TaintLabel    `json:"labels,omitempty"`     // of SendData and RunCode: the data's origin or content
	Harms                     []Harm          `json:"harms,omitempty"`      // harm to the user or machine beyond the kind
	Certainty                 Certainty       `json:"certainty,omitempty"`  // whether the effect certainly happens
	IsTargetTrusted           bool            `json:"trusted,omitempty"`    // the place that receives data or is changed is trusted in the settings
	IsRestorableWithoutBackup bool            `json:"restorable,omitempty"` // removing the file loses nothing: the last commit has it unchanged, the session created it, or it does not exist
	IsBackedUpByShield        bool            `json:"kept,omitempty"`       // shield backs up the file before it is removed or overwritten
	Cause                     EffectCause     `json:"cause,omitempty"`      // why the effect is unknown, or the variant of its kind, see [EffectCause]
	Reason                    string          `json:"reason,omitempty"`     // for people: why, for unknown effects and data flows
	Span                      CommandTextSpan `json:"from"`

	// Losses and FolderLosingFiles say which files to back up before a program deletes or overwrites them.
	Losses            FileLossSet `json:"-"` // how an Execute effect loses files; for other kinds only FileLossNone and FileLossAtUnknownTime
	FolderLosingFiles string      `json:"-"` // canonical folder in which the program loses files as Losses says; "" if unknown
}

// DestroysRemoteResource reports whether the effect destroys something on another machine that cannot be restored from
// here.
func (e *Effect) DestroysRemoteResource() bool {
	return e.Kind == ChangeRemoteSystem && e.HasHarm(DestroysResources)
}

// A FileLossSet is a set of ways in which a program loses files that its other effects do not name.
type FileLossSet uint8

// The ways to lose files.
const (
	FileLossModifiedTracked     FileLossSet = 1 << iota // tracked files of the repository that differ from its index
	FileLossModifiedOverwritten                         // like FileLossModifiedTracked, but only the files that the program writes
	FileLossUntracked                                   // files of the repository that git does not track
	FileLossGitRefs                                     // branches, tags and stashes
	FileLossDatabaseContent                             // content of the databases that the program writes
	FileLossNone                                        // nothing is lost: the text is appended, or the content stays
	FileLossAtUnknownTime                               // this effect and later ones happen at an unknown time: in the background, in a loop, or after a delay
)

// A CommandAnalysis is the analysis of a command line.
type CommandAnalysis struct {
	Effects             []Effect
	ResolvedCommandText string            // the command with all known values substituted: a view for rules and models
	LabelledFiles       []LabelledFile    // files that the command leaves behind and that carry labels
	Writes              []WrittenFileText // contents that the command writes to files

	TextsCoveredByNoEffect []string // paths, URLs and commands among the command's words and inputs for which the analysis found no effect and which no table declares harmless
}

// A WrittenFileText is the content that a command writes to a file, as far as it is known.
type WrittenFileText struct {
	Path    string // canonical
	NewText string // the written text; a shell variable that is never set stands for each unknown part
	OldText string // the text that NewText replaces, if known

	IsWholeContent        bool   // NewText is the whole content of the file
	IsAppended            bool   // NewText is appended to the file
	FullContentAfterWrite string // the whole new content of the file, if NewText is only a part of it and the other parts are known
	IsTextPositionUnknown bool   // it is unknown where in the file NewText replaces OldText
}

// A LabelledFile is a file or folder that holds labelled data.
type LabelledFile struct {
	Path                string       `json:"path"`           // canonical; AnyFileSuffixPattern at the end matches any suffix
	IncludesDescendants bool         `json:"tree,omitempty"` // a folder with everything in it
	Labels              []TaintLabel `json:"labels"`
}

// AnyFileSuffixPattern ends the path of a [LabelledFile] whose suffix is not known, as for files that gzip writes.
const AnyFileSuffixPattern = ".*"

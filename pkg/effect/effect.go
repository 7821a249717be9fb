// Package effect describes what an action would do, in primitive terms. A tool
// call such as read_file has one [Effect]; a shell command has one for each part.
// The package also brings paths, hosts and text into the canonical form in which
// rules compare them.
package effect

// A Kind says what an effect does. Policies use the same words for kinds and
// action types, and some words for combinations, see [Effect.Word].
type Kind string

// The kinds of effects.
const (
	ReadFile          Kind = "read_file"
	WriteFile         Kind = "write_file" // creates or changes a file
	DeleteFile        Kind = "delete_file"
	DeleteDirectory   Kind = "delete_directory"
	MoveFile          Kind = "move_file" // the source of a move; the destination is a WriteFile
	ListDirectory     Kind = "list_directory"
	CreateDirectory   Kind = "create_directory"
	ChangePermissions Kind = "change_permissions" // mode, owner, access lists, attributes
	Execute           Kind = "execute"            // a program runs: Program, Args, Class
	HTTPRequest       Kind = "http_request"       // URL, Host
	Connect           Kind = "connect"            // another network peer: Host
	Listen            Kind = "listen"             // accepts connections
	SendMessage       Kind = "send_message"       // mail, chat and the like
	Persist           Kind = "persist"            // Path is a file that runs code later
	ChangePrivilege   Kind = "change_privilege"   // sudo, setuid, capabilities
	ChangeSystem      Kind = "change_system"      // services, packages, users, firewall, kernel, devices
	ChangeRemote      Kind = "change_remote"      // a remote repository, cluster, cloud or database: Service, Verb, Target, Cause
	ChangeGuard       Kind = "change_guard"       // answers, clears, repairs, stops or reconfigures shield itself
	StopProcess       Kind = "stop_process"
	ReadSecret        Kind = "read_secret"  // prints or sends credentials: environment, key store, token
	ReadClipboard     Kind = "read_private" // clipboard, screen, microphone, keystrokes, memory of another process
	Destroy           Kind = "destroy"      // cannot be undone: databases, disks, history, resources
	SendData          Kind = "send_data"    // sends what files or commands here say, not text that the action spells out, to Host or Target: Path, Labels
	RunCode           Kind = "run_code"     // code runs: the file Path that Program loads, or a text; Labels say where it comes from
	RemoteShell       Kind = "remote_shell" // attaches an interpreter to the network
)

// Kinds returns the words for all kinds of effects and for combinations.
func Kinds() []Kind { return kinds[:] }

var kinds = [...]Kind{
	ReadFile, WriteFile, DeleteFile, DeleteDirectory, MoveFile, ListDirectory, CreateDirectory, ChangePermissions, Execute,
	HTTPRequest, Connect, Listen, SendMessage, Persist, ChangePrivilege, ChangeSystem, ChangeRemote, StopProcess, ReadSecret,
	ReadClipboard, Destroy, RunDownload, RunDecoded, RunInput, SendSecret, SendData, RunCode, RemoteShell, ChangeGuard, Dynamic,
}

// A Certainty says how sure an effect is.
type Certainty string

// The certainties.
const (
	Does    Certainty = ""        // it happens
	May     Certainty = "may"     // it may happen and need not: a branch, or an operand that is not known
	Unknown Certainty = "unknown" // something happens that cannot be known before: Cause says why. It is never harmless
)

// If returns what is known of something that happens for sure, or else perhaps.
func If(sure bool) Certainty {
	if sure {
		return Does
	}
	return May
}

// A Class says how much a program changes, depending on its flags.
type Class string

// The classes, from least to most. An unknown program is UnknownClass.
const (
	UnknownClass Class = ""
	ReadOnly     Class = "readonly"
	LocalWrite   Class = "local-write"
	Network      Class = "network"
	Destructive  Class = "destructive"
	Privileged   Class = "privileged"
)

// A Span is the part of the text that an effect was read from, in bytes, from
// Start up to but not including End.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// An Effect is one primitive thing that an action would do: what (Kind), to which object
// (path, host, program, service), with data of which origin (Labels), what harm that does,
// and how sure it is.
type Effect struct {
	Kind       Kind      `json:"kind"`
	Path       string    `json:"path,omitempty"`      // canonical, see [Place.Path]
	Pattern    bool      `json:"pattern,omitempty"`   // Path is a pattern: the effect touches what it matches, see [Overlap]
	Tree       bool      `json:"tree,omitempty"`      // the ** of Path stands for searched folders, not for text that may contain ".."
	Recursive  bool      `json:"recursive,omitempty"` // and everything below Path
	URL        string    `json:"url,omitempty"`
	Host       string    `json:"host,omitempty"` // canonical, see [Host]
	Program    string    `json:"program,omitempty"`
	Args       []string  `json:"args,omitempty"`
	Class      Class     `json:"class,omitempty"`      // of Execute
	Service    string    `json:"service,omitempty"`    // of ChangeRemote: kubernetes, aws, github, postgres, a program's name, …
	Verb       string    `json:"verb,omitempty"`       // of ChangeRemote: delete, create, update, …; of HTTPRequest: "change" if the method may change something
	Target     string    `json:"target,omitempty"`     // of ChangeRemote and SendData: the resource, remote or recipient
	Labels     []Label   `json:"labels,omitempty"`     // of SendData and RunCode: where the data comes from, or what it holds
	Harms      []Harm    `json:"harms,omitempty"`      // what it does to its user, beyond its kind
	Sure       Certainty `json:"certainty,omitempty"`  // whether it happens
	Trusted    bool      `json:"trusted,omitempty"`    // the place that data goes to, or that is changed, is one that the settings name
	Restorable bool      `json:"restorable,omitempty"` // what the effect removes is in the last commit of its repository as it is
	Kept       bool      `json:"kept,omitempty"`       // what the effect removes or overwrites is kept before it happens
	Cause      Cause     `json:"cause,omitempty"`      // why something is not known; otherwise the variant of the kind, see [Cause]
	Reason     string    `json:"reason,omitempty"`     // for people: why, for unknown effects and data flows
	From       Span      `json:"from"`

	// For those who keep what is lost.
	Loses  Loss   `json:"-"` // of Execute; of WriteFile only LosesNothing
	Folder string `json:"-"` // with Loses: where, canonical; "" if that is not known
}

// Destroys reports whether something on another machine is gone that cannot be
// restored from here.
func (e *Effect) Destroys() bool { return e.Kind == ChangeRemote && e.Does(Destroys) }

// A Loss is a set of ways in which a program loses files beside what other effects say.
type Loss uint8

// The ways.
const (
	LosesDirty     Loss = 1 << iota // tracked files of the repository that differ from its index
	LosesBelow                      // the same, of what the program writes
	LosesUntracked                  // files of the repository that git does not track
	LosesRefs                       // branches, tags and stashes
	LosesDatabase                   // the content of the databases that it writes
	LosesNothing                    // what is written is added, or the content stays
	LosesLater                      // what comes with or after the program happens at an unknown time
)

// A Result is what a command line would do.
type Result struct {
	Effects []Effect
	Words   string // the command with everything that could be resolved inserted: a view for rules and models
	Files   []File // what the command leaves behind that carries labels
	Writes  []Text // what the command says that files hold

	Uncovered []string // words and inputs that no effect covers and no entry calls without effect; they were judged by their form
}

// A Text is the content written to a file, as far as it is known.
type Text struct {
	Path string // canonical
	Text string // what is not known of it is a variable that nothing sets
	Gone string // what it takes the place of, if that is known

	Whole bool   // the file then holds Text and nothing else
	Added bool   // Text is added to what it held
	After string // what it holds then, if Text is a part of it and the rest is known
	Lost  bool   // it is not known where in the file Text and Gone are
}

// A File is a file or folder that holds labelled data.
type File struct {
	Path   string  `json:"path"`           // canonical; one that ends in AnySuffix stands for that name with any suffix
	Tree   bool    `json:"tree,omitempty"` // a folder with all that is in it
	Labels []Label `json:"labels"`
}

// AnySuffix ends the path of a [File] of which all but the suffix is known, such as
// what gzip writes.
const AnySuffix = ".*"

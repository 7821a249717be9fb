// Package command knows what everyday programs do with their arguments: which
// operands they read, write, delete or contact, and which of them are commands
// of their own. The knowledge is data, the files in programs, compiled into
// tables by go generate; programs/README.md describes their language.
package command

import "github.com/shieldcli/shield/pkg/effect"

//go:generate go run ./gen

// A Word is one argument, as far as it could be resolved without running
// anything.
type Word struct {
	Text    string      // resolved text; a pattern as in effect.Overlap if Pattern
	Pattern bool        // part of Text is unknown or a glob
	Tree    bool        // the ** of a pattern is folders that were searched
	Job     bool        // it is the number of a job that the shell itself started
	From    effect.Span // where it is in the command line
}

// A Use is what running a program with certain arguments does.
type Use struct {
	Known   bool          // the program is listed and its arguments were understood
	Loses   effect.Loss   // beside what Touches say
	Folder  Word          // with Loses: the folder that the program works in
	Class   effect.Class  // by its flags, without what Nested would do; Unknown if the program is not listed, or runs code of which nothing is known
	Touches []Touch       // operands with an effect
	Nested  []Nested      // operands that are commands or code
	Effects []effect.Kind // effects without an operand, such as ChangeSystem
	Lists   []Word        // files that list further operands
	Unread  []Unread      // values and operands of which no entry says what they mean: what they name counts
	Prose   []Word        // values of options with blanks in them that are text and nothing else to the program, as the message of a commit is
	Env     []Word        // NAME=VALUE settings made for the nested command, as by env
	Stdin   Stream        // what happens to standard input
	Input   bool          // an entry says so; else what the program does with it is not known
	Login   bool          // standard input is commands for another machine or a container
	Stdout  Stream        // what standard output carries
	Reason  string        // why not Known

	Why      string // what Effects mean, for people, behind the program's name; may be empty
	Language string // of Code on standard input, as in Nested; "" if only the program itself reads it
	Windows  bool   // the program is one of Windows: paths may hold globs and backslashes
	Decodes  bool   // files that are written hold what is read, decoded
	Keys     []Key  // keys of the registry
	Tells    bool   // its words reach another machine as they are, as questions of dig do
	Database bool   // a word that is nothing but a variable is the address of the database
	Remotes  []GitRemote
	Packages []Package // that are installed, or of which a program is run
	ByName   bool      // packages are installed or upgraded, and all that are given are names
	Servers  []Word    // machines through which requests go, or that get them in place of those that are named
	Signals  []Signal
	Builds   []Word // packages or folders of source that are built, and run or installed
	Harms    []effect.Harm
	Remote   Remote // what the ChangeRemote among Effects changes
	Away     string // the database on another machine that statements go to; "" if it is near, for tests, or not known
	places   []Word // hosts, databases, clusters and accounts that are worked on

	trialDrop bool // a database for tests is dropped, which is no loss unless a place is in use
}

// A Package is one that is named, by its registry: npm, jsr, pypi, go, crates, gems and others
// that entries of programs name; "" if none is known.
type Package struct {
	Word     // with its version
	Registry string
}

// Unread is a word of which no entry says what the program does with it.
type Unread struct {
	Word
	Option bool // it is, or may be, the value of an option that is not listed; else an entry takes it for a word
}

// Words is a set of words, see words.yaml.
type Words map[string]bool

// A Remote is a change on another machine.
type Remote struct {
	Service  string // kubernetes, aws, database, …; a program's name if it is of no known service
	Verb     string // delete, grant, expose, weaken, redirect, run, or change for all others
	Target   string // the place, if one is named
	Trial    bool   // the place's name says that it is for development or tests
	Destroys bool   // what is lost cannot be restored from here
}

// A Touch is an effect on what an operand names.
type Touch struct {
	Kind      effect.Kind
	Word      Word // the path, URL or host; already cut out of forms like --file=PATH
	Recursive bool
	Sent      bool // of ReadFile: its content goes to another machine
	Mends     bool // of WriteFile: only where something is broken, beside what the file holds, or by what runs in a container
	Backup    bool // of WriteFile: it is a copy of another file that is written
	Checked   bool // of DeleteFile: the program refuses where version control misses something
}

// A Signal says which processes get a signal, or are attached to.
type Signal struct {
	By   SignalBy
	Word Word
}

// A SignalBy says what the word of a [Signal] is.
type SignalBy uint8

// The ways of saying which processes are meant.
const (
	ByID      SignalBy = iota // its number, or its name
	ByName                    // its name, or the path of its program
	ByPattern                 // a regular expression that a part of its name matches
	ByLine                    // the same of its command line
	ByExact                   // a regular expression that its whole name matches
	ByGroup                   // a user, a group, a session or a terminal
	ByParent                  // the number of its parent
	ByFile                    // a file that it uses
)

// A GitRemote is a name that git is told to use for an address. Name is empty
// if every address is rewritten to this one.
type GitRemote struct {
	Name    string
	Address Word
}

// A Key is an operand that names a key of the registry of Windows.
type Key struct {
	Word  Word
	Write bool
}

// A Nested operand holds commands or code that the program would run.
//
// SQL text and sed scripts are judged here and never appear as Nested; what
// they run or touch does.
type Nested struct {
	Language string // "argv" (Words are a command), "shell" (Words[0] is text), "python", "perl", "ruby", "node", "php", "awk", "applescript", "lua", "powershell", "encoded" (PowerShell text in UTF-16 and base64), "cmd", "ipython" (a cell of a notebook), "code" (text of another language), "file" (Words[0] is a script's path)
	Of       string // of a "file": its language, named as above; "" if the file says itself
	Variable string // the variable that holds it, if one does, "-" for an option; "place", "output", "source" and "check" are the languages of [Variable]
	Words    []Word // of "powershell" and "cmd" there may be several, to be joined with blanks
	Remote   bool   // runs on another machine or in a container
	Stdin    bool   // its arguments are completed from standard input, as by xargs
}

// A Stream says what a program's standard input is used for, or what its
// standard output carries.
type Stream string

// The uses of a stream. The zero value is plain data.
const (
	Data     Stream = ""
	Code     Stream = "code"     // stdin is executed
	Download Stream = "download" // stdout comes from the network
	Upload   Stream = "upload"   // stdin goes to the network
	Decoded  Stream = "decoded"  // stdout is decoded stdin
	Input    Stream = "input"    // stdout is stdin, changed or not
	Secret   Stream = "secret"   // stdout holds credentials
	Rows     Stream = "rows"     // stdout holds what a database of this machine does
	Listed   Stream = "names"    // stdin lists further operands
)

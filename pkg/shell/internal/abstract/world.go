package abstract

import "github.com/shieldcli/shield/pkg/effect"

// A World is the command that a text of another language is part of: what the
// readers of such texts may ask of it, and what they report to it.
type World interface {
	// Step spends steps of the budget that bounds an analysis, and reports
	// whether it lasts.
	Step(n int) bool
	// GiveUp ends the analysis: the rest of the text counts as dynamic.
	GiveUp(why string)
	// Ended reports whether the analysis was given up.
	Ended() bool

	// Report records an effect, once.
	Report(effect.Effect)
	// Dynamic records that something cannot be resolved.
	Dynamic(cause effect.Cause, why string, at effect.Span)
	// Path records what is done to a path, and returns it in canonical form.
	Path(kind effect.Kind, v Value, recursive bool) (path string, pattern bool)
	// URL records that a URL is contacted.
	URL(kind effect.Kind, v Value)
	// Host records that a machine is contacted.
	Host(kind effect.Kind, v Value)
	// Read records that a file is read, and returns what it holds.
	Read(v Value) Value
	// Store remembers what a file of this path holds from now on.
	Store(path string, pattern bool, content Value)
	// Link records that a path is a link to another from now on.
	Link(path, to Value)
	// Discards reports whether the content written to a path is lost.
	Discards(path string) bool
	// Secret reports whether a path is known to hold credentials.
	Secret(path string) bool
	// Send records that a program sends a value to another machine.
	Send(v Value, program string, at effect.Span)

	// Environment returns an environment variable.
	Environment(name string) Value
	// Input returns standard input.
	Input() Value

	// SetEnvironment records that an environment variable is set.
	SetEnvironment(name string, v Value, at effect.Span)
	// SetRegistry records that a program changes the registry of Windows.
	SetRegistry(program string, words []Value, at effect.Span)
	// Set gives a name of the language a value; Get returns it.
	Set(name string, v Value)
	Get(name string) (v Value, ok bool)
	// ChangeFolder changes the working folder.
	ChangeFolder(v Value)

	// Redirect opens a path as the output of a descriptor.
	Redirect(io *Streams, descriptor string, path Value, add bool)
	// Deliver brings what a command writes to where its output goes, and returns
	// what is left for the next command of a pipe.
	Deliver(io Streams, out Value) Value
	// Later runs f, and holds the effects that it reports back until the function
	// that it returns is called.
	Later(f func()) (release func())

	// Execute records that a program is run.
	Execute(argv []Value, program string, class effect.Class)
	// CallUnknown walks a command whose program is unknown.
	CallUnknown(argv []Value, io Streams) Value
	// CallWindows walks a command of Windows.
	CallWindows(argv []Value, io Streams) Value
	// Suspect looks at a word of an unknown program.
	Suspect(v Value)
	// Call walks a command that is run with these words.
	Call(argv []Value)
	// Nested walks shell text, and returns what it writes.
	Nested(text string, at effect.Span) Value
	// Pipe walks shell text whose standard input is a value.
	Pipe(text string, at effect.Span, in Value)
	// Run walks a value that is run as code of a language, and returns what the
	// code writes.
	Run(language string, code Value, how string, at effect.Span) Value
	// RunFile walks a file that is run as code of a language.
	RunFile(path Value, language string, at effect.Span)
}

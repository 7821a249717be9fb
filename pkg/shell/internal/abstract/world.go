package abstract

import "github.com/shieldcli/shield/pkg/effect"

// A World is the analysis of the command that contains code of another language. The readers of such code query it
// and report effects to it.
type World interface {
	// Step spends n steps of the budget of the analysis, and reports whether some is left.
	Step(n int) bool
	// GiveUp ends the analysis: the effects of the whole text are unknown.
	GiveUp(why string)
	// Ended reports whether the analysis was given up.
	Ended() bool

	// Report records an effect, once.
	Report(effect.Effect)
	// Dynamic records that something is unknown.
	Dynamic(cause effect.Cause, why string, at effect.Span)
	// Path records an effect on a path, and returns the path in canonical form.
	Path(kind effect.Kind, v Value, recursive bool) (path string, pattern bool)
	// URL records that a URL is contacted.
	URL(kind effect.Kind, v Value)
	// Host records that a host is contacted.
	Host(kind effect.Kind, v Value)
	// Read records that a file is read, and returns its content.
	Read(v Value) Value
	// Store records the new content of a file.
	Store(path string, pattern bool, content Value)
	// Link records that a path becomes a link to another.
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
	// SetRegistry records a change of the Windows registry.
	SetRegistry(program string, words []Value, at effect.Span)
	// Set assigns a variable of the language; Get returns its value.
	Set(name string, v Value)
	Get(name string) (v Value, ok bool)
	// ChangeFolder changes the working folder.
	ChangeFolder(v Value)

	// Redirect opens a path as the target of a descriptor.
	Redirect(io *Streams, descriptor string, path Value, add bool)
	// DeliverOutput writes a command's output to its target, and returns the rest for the next command of a pipe.
	DeliverOutput(io Streams, out Value) Value
	// DeferEffects runs f, and holds back the effects that it reports until release is called.
	DeferEffects(f func()) (release func())

	// Execute records that a program is run.
	Execute(argv []Value, program string, class effect.Class)
	// CallUnknown walks a command whose program is unknown.
	CallUnknown(argv []Value, io Streams) Value
	// CallWindows walks a Windows command.
	CallWindows(argv []Value, io Streams) Value
	// Suspect checks a word of an unknown program for a path or URL.
	Suspect(v Value)
	// Call walks a command with these words.
	Call(argv []Value)
	// Nested walks shell text, and returns its output.
	Nested(text string, at effect.Span) Value
	// Pipe walks shell text with a value as standard input.
	Pipe(text string, at effect.Span, in Value)
	// Run walks a value that is run as code of a language, and returns the output of the code.
	Run(language string, code Value, how string, at effect.Span) Value
	// RunFile walks a file that is run as code of a language.
	RunFile(path Value, language string, at effect.Span)
}

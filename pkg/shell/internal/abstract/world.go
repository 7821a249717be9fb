package abstract

import "github.com/shieldcli/shield/pkg/effect"

// A World is the analysis of the command that contains code of another language. The readers of such code query it
// and report effects to it.
type AnalysisContext interface {
	// Step spends n steps of the budget of the analysis, and reports whether some is left.
	Step(n int) bool
	// AbortAnalysis ends the analysis: the effects of the whole text are unknown.
	AbortAnalysis(why string)
	// Ended reports whether the analysis was given up.
	Ended() bool

	// Report records an effect, once.
	Report(effect.Effect)
	// ReportUnknown records that something is unknown.
	ReportUnknown(cause effect.EffectCause, why string, at effect.Span)
	// RecordEffectAndResolvePathOrPattern records an effect on a path, and returns the path in canonical form.
	RecordEffectAndResolvePathOrPattern(kind effect.Kind, v Value, recursive bool) (path string, isPattern bool)
	// RecordURLContact records that a URL is contacted.
	RecordURLContact(kind effect.Kind, v Value)
	// RecordHostContact records that a host is contacted.
	RecordHostContact(kind effect.Kind, v Value)
	// Read records that a file is read, and returns its content.
	Read(v Value) Value
	// StoreFileContent records the new content of a file.
	StoreFileContent(path string, isPattern bool, content Value)
	// Link records that a path becomes a link to another.
	Link(path, to Value)
	// IsOutputDiscarded reports whether the content written to a path is lost.
	IsOutputDiscarded(path string) bool
	// IsSecretPath reports whether a path is known to hold credentials.
	IsSecretPath(path string) bool
	// Send records that a program sends a value to another machine.
	Send(v Value, program string, at effect.Span)

	// Environment returns an environment variable.
	Environment(name string) Value
	// Stdin returns standard input.
	Stdin() Value

	// SetEnvironment records that an environment variable is set.
	SetEnvironment(name string, v Value, at effect.Span)
	// RecordWindowsRegistryChange records a change of the Windows registry.
	RecordWindowsRegistryChange(program string, words []Value, at effect.Span)
	// SetVariable assigns a variable of the language; Get returns its value.
	SetVariable(name string, v Value)
	LookupVariable(name string) (v Value, ok bool)
	// ChangeFolder changes the working folder.
	ChangeFolder(v Value)

	// RedirectOutput opens a path as the target of a descriptor.
	RedirectOutput(io *Streams, descriptor string, path Value, isAppend bool)
	// DeliverOutput writes a command's output to its target, and returns the rest for the next command of a pipe.
	DeliverOutput(io Streams, out Value) Value
	// DeferEffects runs f, and holds back the effects that it reports until release is called.
	DeferEffects(f func()) (release func())

	// Execute records that a program is run.
	Execute(argv []Value, program string, class effect.ProgramClass)
	// CallUnknown walks a command whose program is unknown.
	CallUnknown(argv []Value, io Streams) Value
	// CallWindows walks a Windows command.
	CallWindows(argv []Value, io Streams) Value
	// RecordPathOrURLOfUnknownCommand checks a word of an unknown program for a path or URL.
	RecordPathOrURLOfUnknownCommand(v Value)
	// Call walks a command with these words.
	Call(argv []Value)
	// WalkShellText walks shell text, and returns its output.
	WalkShellText(text string, at effect.Span) Value
	// WalkShellTextWithStdin walks shell text with a value as standard input.
	WalkShellTextWithStdin(text string, at effect.Span, stdin Value)
	// WalkCode walks a value that is run as code of a language, and returns the output of the code.
	WalkCode(language string, code Value, runnerName string, at effect.Span) Value
	// WalkCodeFile walks a file that is run as code of a language.
	WalkCodeFile(path Value, language string, at effect.Span)
}

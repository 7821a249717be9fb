package abstract

import "github.com/shieldcli/shield/pkg/effect"

// An AnalysisContext is the analysis of the command that contains code of another language. The
// analyzers of such code query it and report effects to it.
type AnalysisContext interface {
	// SpendSteps spends n steps of the budget of the analysis, and reports whether some is left.
	SpendSteps(n int) bool
	// AbortAnalysis ends the analysis: the effects of the whole text are unknown.
	AbortAnalysis(why string)
	// IsAnalysisAborted reports whether the analysis was given up.
	IsAnalysisAborted() bool

	// RecordEffect records an effect, once.
	RecordEffect(effect.Effect)
	// RecordUnknownEffect records an unknown effect: code or a value in the command that cannot be
	// analyzed.
	RecordUnknownEffect(cause effect.EffectCause, why string, at effect.CommandTextSpan)
	// RecordPathEffect records an effect on a path, and returns the path in canonical form.
	RecordPathEffect(kind effect.Kind, v Value, recursive bool) (path string, isPattern bool)
	// RecordURLContact records that a URL is contacted.
	RecordURLContact(kind effect.Kind, v Value)
	// RecordHostContact records that a host is contacted.
	RecordHostContact(kind effect.Kind, v Value)
	// RecordFileRead records that a file is read, and returns its content.
	RecordFileRead(v Value) Value
	// StoreFileContent records the new content of a file.
	StoreFileContent(path string, isPattern bool, content Value)
	// RecordLink records that a path becomes a link to another.
	RecordLink(path, to Value)
	// IsDiscardedWritePath reports whether the content written to a path is lost.
	IsDiscardedWritePath(path string) bool
	// IsSecretPath reports whether a path is known to hold credentials.
	IsSecretPath(path string) bool
	// RecordSentValue records that a program sends a value to another machine.
	RecordSentValue(v Value, program string, at effect.CommandTextSpan)

	// Environment returns an environment variable.
	Environment(name string) Value
	// Stdin returns standard input.
	Stdin() Value

	// SetEnvironment records that an environment variable is set.
	SetEnvironment(name string, v Value, at effect.CommandTextSpan)
	// RecordWindowsRegistryChange records a change of the Windows registry.
	RecordWindowsRegistryChange(program string, words []Value, at effect.CommandTextSpan)
	// SetVariable assigns a variable of the language; LookupVariable returns its value.
	SetVariable(name string, v Value)
	LookupVariable(name string) (v Value, ok bool)
	// ChangeFolder changes the working folder.
	ChangeFolder(v Value)

	// RedirectOutput opens a path as the target of a descriptor.
	RedirectOutput(io *Streams, descriptor string, path Value, isAppend bool)
	// DeliverOutput writes a command's output to its target, and returns the rest for the next command of a pipe.
	DeliverOutput(io Streams, out Value) Value
	// HoldBackEffects runs f, and holds back the effects that it reports until release is called.
	HoldBackEffects(f func()) (release func())

	// RecordExecuteEffect records that a program is run.
	RecordExecuteEffect(argv []Value, program string, class effect.ProgramClass)
	// WalkUnknownProgram walks a command whose program is unknown.
	WalkUnknownProgram(argv []Value, io Streams) Value
	// WalkWindowsCommand walks a Windows command.
	WalkWindowsCommand(argv []Value, io Streams) Value
	// RecordPathOrURL checks a word of an unknown program for a path or URL.
	RecordPathOrURL(v Value)
	// WalkCommand walks a command with these words.
	WalkCommand(argv []Value)
	// WalkShellText walks shell text, and returns its output.
	WalkShellText(text string, at effect.CommandTextSpan) Value
	// WalkShellTextWithStdin walks shell text with a value as standard input.
	WalkShellTextWithStdin(text string, at effect.CommandTextSpan, stdin Value)
	// WalkCode walks a value that is run as code of a language, and returns the output of the code.
	WalkCode(language string, code Value, runnerName string, at effect.CommandTextSpan) Value
	// WalkCodeFile walks a file that is run as code of a language.
	WalkCodeFile(path Value, language string, at effect.CommandTextSpan)
}

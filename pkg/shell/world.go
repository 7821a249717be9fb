package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// An embeddedCodeContext gives the analyzers of other languages access to a state. It implements
// [abstract.AnalysisContext]. The state is not embedded: the compiler would generate a wrapper for
// each of its methods.
type embeddedCodeContext struct{ analysisState *analysisState }

func (w embeddedCodeContext) SpendSteps(n int) bool        { return w.analysisState.spendSteps(n) }
func (w embeddedCodeContext) AbortAnalysis(why string)     { w.analysisState.abortAnalysis(why) }
func (w embeddedCodeContext) IsAnalysisAborted() bool      { return w.analysisState.isAnalysisAborted }
func (w embeddedCodeContext) RecordEffect(e effect.Effect) { w.analysisState.emitOnce(e) }
func (w embeddedCodeContext) RecordURLContact(kind effect.Kind, v abstract.Value) {
	w.analysisState.emitURLEffect(kind, v)
}
func (w embeddedCodeContext) RecordFileRead(v abstract.Value) abstract.Value {
	return w.analysisState.readFile(effect.ReadFile, v)
}
func (w embeddedCodeContext) IsDiscardedWritePath(path string) bool { return isStreamDevice(path) }
func (w embeddedCodeContext) IsSecretPath(path string) bool         { return effect.IsSecretPath(path, false) }
func (w embeddedCodeContext) Stdin() abstract.Value                 { return w.analysisState.statementStdin }
func (w embeddedCodeContext) WalkCommand(argv []abstract.Value) {
	w.analysisState.resolveAndWalkArgv(argv, abstract.Streams{})
}

func (w embeddedCodeContext) RecordUnknownEffect(cause effect.EffectCause, why string, at effect.CommandTextSpan) {
	w.analysisState.emitUnknownEffect(cause, why, at)
}

func (w embeddedCodeContext) RecordPathEffect(kind effect.Kind, v abstract.Value, recursive bool) (path string, isPattern bool) {
	return w.analysisState.emitPathEffect(kind, v, recursive)
}

func (w embeddedCodeContext) StoreFileContent(path string, pattern bool, content abstract.Value) {
	w.analysisState.addFile(writtenFile{path: path, isPathPattern: pattern, content: content})
}

func (w embeddedCodeContext) RecordSentValue(v abstract.Value, program string, at effect.CommandTextSpan) {
	w.analysisState.recordUpload(v, program, at)
	w.analysisState.recordSentValue(v, program, w.analysisState.lastNetworkContactEffects(), at)
}

func (w embeddedCodeContext) Environment(name string) abstract.Value {
	return w.analysisState.environmentValue(name)[0]
}

func (w embeddedCodeContext) WalkShellText(text string, at effect.CommandTextSpan) abstract.Value {
	return w.analysisState.walkNestedShellText(text, at)
}

func (w embeddedCodeContext) WalkShellTextWithStdin(text string, at effect.CommandTextSpan, stdin abstract.Value) {
	w.analysisState.walkNestedWithInput(text, at, abstract.Streams{Stdin: stdin})
}

func (w embeddedCodeContext) WalkCode(language string, code abstract.Value, runnerName string, at effect.CommandTextSpan) abstract.Value {
	return w.analysisState.walkExecutedText(language, code, runnerName, at, nil)
}

func (w embeddedCodeContext) WalkCodeFile(path abstract.Value, language string, at effect.CommandTextSpan) {
	w.analysisState.runFile(path, language, nil, abstract.Streams{}, at)
}

func (w embeddedCodeContext) RecordHostContact(kind effect.Kind, v abstract.Value) {
	w.analysisState.emitHostEffect(kind, v)
}

func (w embeddedCodeContext) SetEnvironment(name string, v abstract.Value, at effect.CommandTextSpan) {
	w.analysisState.recordVariableAssignmentEffects(name, v, at)
}

func (w embeddedCodeContext) RecordWindowsRegistryChange(program string, words []abstract.Value, at effect.CommandTextSpan) {
	w.analysisState.recordRegistryWrite(program, words, at)
}

func (w embeddedCodeContext) SetVariable(name string, v abstract.Value) {
	w.analysisState.setVariableContent(name, variableContent{val: v})
}

func (w embeddedCodeContext) LookupVariable(name string) (abstract.Value, bool) {
	c, ok := w.analysisState.lookup(name)
	return c.val, ok
}

func (w embeddedCodeContext) ChangeFolder(v abstract.Value) {
	w.analysisState.cd([]abstract.Value{abstract.Lit("cd"), v}, abstract.Streams{})
}

func (w embeddedCodeContext) RedirectOutput(io *abstract.Streams, descriptor string, path abstract.Value, isAppend bool) {
	w.analysisState.redirectOutput(io, descriptor, path, isAppend)
}

func (w embeddedCodeContext) DeliverOutput(io abstract.Streams, out abstract.Value) abstract.Value {
	return w.analysisState.deliverOutput(io, out)
}

func (w embeddedCodeContext) HoldBackEffects(reportEffects func()) (releaseEffects func()) {
	mark := len(w.analysisState.effects)
	reportEffects()
	held := slices.Clone(w.analysisState.effects[min(mark, len(w.analysisState.effects)):])
	w.analysisState.effects = w.analysisState.effects[:min(mark, len(w.analysisState.effects))]
	return func() { w.analysisState.effects = append(w.analysisState.effects, held...) }
}

func (w embeddedCodeContext) RecordExecuteEffect(argv []abstract.Value, program string, class effect.ProgramClass) {
	w.analysisState.recordExecuteEffect(argv, program, class)
}

func (w embeddedCodeContext) WalkUnknownProgram(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return w.analysisState.walkUnknownProgram(argv, io)
}

func (w embeddedCodeContext) WalkWindowsCommand(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return w.analysisState.invokeOnWindows(argv, io)
}

func (w embeddedCodeContext) RecordPathOrURL(v abstract.Value) {
	w.analysisState.recordPathOrURL(v)
}

func (w embeddedCodeContext) RecordLink(linkPath, target abstract.Value) {
	at, pattern := w.analysisState.workingFolderContext().CanonicalPath(linkPath.Text, linkPath.IsGlobPattern)
	w.analysisState.recordLink(at, pattern, target)
}

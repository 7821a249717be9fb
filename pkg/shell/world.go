package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A world gives the readers of other languages access to a state. It implements [abstract.World].
// The state is not embedded: the compiler would write a method of world for each of its methods.
type world struct{ s *state }

func (w world) Step(n int) bool                        { return w.s.spendSteps(n) }
func (w world) GiveUp(why string)                      { w.s.giveUp(why) }
func (w world) Ended() bool                            { return w.s.gaveUp }
func (w world) Report(e effect.Effect)                 { w.s.emitOnce(e) }
func (w world) URL(kind effect.Kind, v abstract.Value) { w.s.emitURL(kind, v) }
func (w world) Read(v abstract.Value) abstract.Value   { return w.s.readFile(effect.ReadFile, v) }
func (w world) Discards(path string) bool              { return isStreamDevice(path) }
func (w world) Secret(path string) bool                { return effect.SecretPath(path, false) }
func (w world) Input() abstract.Value                  { return w.s.input }
func (w world) Call(argv []abstract.Value)             { w.s.invoke(argv, abstract.Streams{}) }

func (w world) Dynamic(cause effect.Cause, why string, at effect.Span) {
	w.s.emitDynamic(cause, why, at)
}

func (w world) Path(kind effect.Kind, v abstract.Value, recursive bool) (path string, pattern bool) {
	return w.s.emitPath(kind, v, recursive)
}

func (w world) Store(path string, pattern bool, content abstract.Value) {
	w.s.addFile(writtenFile{path: path, pattern: pattern, val: content})
}

func (w world) Send(v abstract.Value, program string, at effect.Span) {
	w.s.recordUpload(v, program, at)
	w.s.recordSentValue(v, program, w.s.lastNetworkPeer(), at)
}

func (w world) Environment(name string) abstract.Value { return w.s.environmentValue(name)[0] }

func (w world) Nested(text string, at effect.Span) abstract.Value { return w.s.walkNested(text, at) }

func (w world) Pipe(text string, at effect.Span, in abstract.Value) {
	w.s.walkNestedWithInput(text, at, abstract.Streams{In: in})
}

func (w world) Run(language string, code abstract.Value, how string, at effect.Span) abstract.Value {
	return w.s.runText(language, code, how, at, nil)
}

func (w world) RunFile(path abstract.Value, language string, at effect.Span) {
	w.s.runFile(path, language, nil, abstract.Streams{}, at)
}

func (w world) Host(kind effect.Kind, v abstract.Value) { w.s.emitHost(kind, v) }

func (w world) SetEnvironment(name string, v abstract.Value, at effect.Span) {
	w.s.checkEnvironmentCode(name, v, at)
}

func (w world) SetRegistry(program string, words []abstract.Value, at effect.Span) {
	w.s.recordRegistryWrite(program, words, at)
}

func (w world) Set(name string, v abstract.Value) {
	w.s.setVariableContent(name, variableContent{val: v})
}

func (w world) Get(name string) (abstract.Value, bool) {
	c, ok := w.s.lookup(name)
	return c.val, ok
}

func (w world) ChangeFolder(v abstract.Value) {
	w.s.cd([]abstract.Value{abstract.Lit("cd"), v}, abstract.Streams{})
}

func (w world) Redirect(io *abstract.Streams, descriptor string, path abstract.Value, add bool) {
	w.s.redirectOut(io, descriptor, path, add)
}

func (w world) DeliverOutput(io abstract.Streams, out abstract.Value) abstract.Value {
	return w.s.deliverOutput(io, out)
}

func (w world) DeferEffects(f func()) (release func()) {
	mark := len(w.s.effects)
	f()
	held := slices.Clone(w.s.effects[min(mark, len(w.s.effects)):])
	w.s.effects = w.s.effects[:min(mark, len(w.s.effects))]
	return func() { w.s.effects = append(w.s.effects, held...) }
}

func (w world) Execute(argv []abstract.Value, program string, class effect.Class) {
	w.s.execute(argv, program, class)
}

func (w world) CallUnknown(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return w.s.runUnknownProgram(argv, io)
}

func (w world) CallWindows(argv []abstract.Value, io abstract.Streams) abstract.Value {
	return w.s.invokeOnWindows(argv, io)
}

func (w world) Suspect(v abstract.Value) { w.s.recordSuspectWord(v) }

func (w world) Link(path, to abstract.Value) {
	at, pattern := w.s.place().Path(path.Text, path.IsPattern)
	w.s.recordLink(at, pattern, to)
}

package shell

import (
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A world is what readers of other languages see of a state. It is an
// [abstract.World].
type world struct{ *state }

func (w world) Step(n int) bool                        { return w.step(n) }
func (w world) GiveUp(why string)                      { w.giveUp(why) }
func (w world) Ended() bool                            { return w.gaveUp }
func (w world) Report(e effect.Effect)                 { w.once(e) }
func (w world) Dynamic(why string, at effect.Span)     { w.dynamic(why, at) }
func (w world) URL(kind effect.Kind, v abstract.Value) { w.url(kind, v) }
func (w world) Read(v abstract.Value) abstract.Value   { return w.readFile(effect.ReadFile, v) }
func (w world) Discards(path string) bool              { return quietDevice(path) }
func (w world) Secret(path string) bool                { return secretPath(path, false, false) }
func (w world) Input() abstract.Value                  { return w.input }
func (w world) Call(argv []abstract.Value)             { w.invoke(argv, abstract.Streams{}) }

func (w world) Path(kind effect.Kind, v abstract.Value, recursive bool) (path string, pattern bool) {
	return w.path(kind, v, recursive)
}

func (w world) Store(path string, pattern bool, content abstract.Value) {
	w.addFile(file{path: path, pattern: pattern, val: content})
}

func (w world) Send(v abstract.Value, program string, at effect.Span) { w.upload(v, program, at) }

func (w world) Environment(name string) abstract.Value { return w.environment(name)[0] }

func (w world) Nested(text string, at effect.Span) abstract.Value { return w.nested(text, at) }

func (w world) Pipe(text string, at effect.Span, in abstract.Value) {
	w.nestedWith(text, at, abstract.Streams{In: in})
}

func (w world) Run(language string, code abstract.Value, how string, at effect.Span) abstract.Value {
	return w.runText(language, code, how, at, nil)
}

func (w world) RunFile(path abstract.Value, language string, at effect.Span) {
	w.runFile(path, language, nil, abstract.Streams{}, at)
}

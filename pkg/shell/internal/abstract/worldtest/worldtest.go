// Package worldtest helps to test readers that use an [abstract.World]: it records their reports, one per line.
package worldtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A World records reports. Its only files are those that were stored in it.
type World struct {
	Reports        []string
	RemainingSteps int // steps left; negative ends the analysis

	files, variables map[string]abstract.Value
	ended            bool
}

// New returns a World with a budget that ordinary texts do not exceed.
func New() *World {
	return &World{RemainingSteps: 10000, files: map[string]abstract.Value{}, variables: map[string]abstract.Value{}}
}

func (w *World) note(format string, args ...any) {
	w.Reports = append(w.Reports, fmt.Sprintf(format, args...))
}

// taintNames are the names of taints, lowest bit first.
var taintNames = []string{"network", "decoded", "secret", "credential", "dump", "foreign", "shell-out", "socket", "private"}

// formatValue formats a value for World.Reports: an unknown value is in angle brackets, and its
// taints follow.
func formatValue(v abstract.Value) string {
	text := v.Text
	if v.IsPattern {
		text = "<" + v.Display + ">"
	}
	for i, name := range taintNames {
		if v.Taint&(1<<i) != 0 {
			text += " +" + name
		}
	}
	return text
}

func formatValues(vs []abstract.Value) string {
	var out []string
	for _, v := range vs {
		out = append(out, formatValue(v))
	}
	return strings.Join(out, " | ")
}

func (w *World) Step(n int) bool {
	if w.RemainingSteps -= n; w.RemainingSteps < 0 {
		w.GiveUp("the budget is spent")
	}
	return !w.ended
}

func (w *World) GiveUp(why string) {
	if !w.ended {
		w.ended = true
		w.note("gives up: %s", why)
	}
}

func (w *World) Ended() bool { return w.ended }

func (w *World) Report(e effect.Effect) {
	w.note("%s %s: %s", strings.TrimSpace(string(e.RuleKind())+" "+e.Verb), strings.TrimSpace(e.Program+" "+e.Path+e.Host), e.Reason)
}

func (w *World) Dynamic(cause effect.Cause, why string, _ effect.Span) {
	w.note("dynamic (%s): %s", cause, why)
}

func (w *World) Path(kind effect.Kind, v abstract.Value, recursive bool) (string, bool) {
	below := ""
	if recursive {
		below = " and below"
	}
	w.note("%s %s%s", kind, formatValue(v), below)
	return v.Text, v.IsPattern
}

func (w *World) URL(kind effect.Kind, v abstract.Value)  { w.note("%s %s", kind, formatValue(v)) }
func (w *World) Host(kind effect.Kind, v abstract.Value) { w.note("%s host %s", kind, formatValue(v)) }

func (w *World) Read(v abstract.Value) abstract.Value {
	w.note("read %s", formatValue(v))
	if held, ok := w.files[v.Text]; ok {
		return held
	}
	out := abstract.Unknown("what "+v.String()+" holds", 0)
	if w.Secret(v.Text) {
		out.Taint |= abstract.Secret
	}
	return out
}

func (w *World) Store(path string, _ bool, content abstract.Value) {
	w.note("%s now holds %s", path, formatValue(content))
	w.files[path] = content
}

func (w *World) Link(path, to abstract.Value) {
	w.note("%s links to %s", formatValue(path), formatValue(to))
}

func (w *World) Discards(path string) bool { return path == "/dev/null" }
func (w *World) Secret(path string) bool   { return strings.Contains(path, "id_rsa") }

func (w *World) Send(v abstract.Value, program string, _ effect.Span) {
	w.note("%s sends %s", program, formatValue(v))
}

func (w *World) Environment(name string) abstract.Value {
	v := abstract.Variable(name, 0)
	if knowledge.SecretVariable(name) {
		v.Taint = abstract.Credential
	}
	return v
}

func (w *World) SetEnvironment(name string, v abstract.Value, _ effect.Span) {
	w.note("sets $%s to %s", name, formatValue(v))
}

func (w *World) SetRegistry(program string, words []abstract.Value, _ effect.Span) {
	w.note("%s changes the registry: %s", program, formatValues(words))
}

func (w *World) Set(name string, v abstract.Value) { w.variables[name] = v }

func (w *World) Get(name string) (abstract.Value, bool) {
	v, ok := w.variables[name]
	return v, ok
}

func (w *World) ChangeFolder(v abstract.Value) { w.note("changes to %s", formatValue(v)) }

func (w *World) Input() abstract.Value {
	return abstract.Unknown("standard input", abstract.UnknownText)
}

func (w *World) Redirect(io *abstract.Streams, descriptor string, path abstract.Value, add bool) {
	w.note("writes descriptor %q to %s, appending %t", descriptor, formatValue(path), add)
	io.Out = &abstract.Target{Path: path.Text, Append: add}
}

func (w *World) DeliverOutput(io abstract.Streams, out abstract.Value) abstract.Value {
	if io.Out == nil {
		return out
	}
	if !io.Out.Discard {
		w.note("%s gets %s", io.Out.Path, formatValue(out))
	}
	return abstract.Value{}
}

func (w *World) DeferEffects(f func()) (release func()) {
	mark := len(w.Reports)
	f()
	held := append([]string(nil), w.Reports[mark:]...)
	w.Reports = w.Reports[:mark]
	return func() { w.Reports = append(w.Reports, held...) }
}

func (w *World) Execute(argv []abstract.Value, program string, class effect.Class) {
	w.note("runs %s (%s): %s", program, class, formatValues(argv))
}

func (w *World) CallUnknown(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	w.note("runs an unknown program: %s", formatValues(argv))
	return abstract.Unknown("…", abstract.UnknownText)
}

func (w *World) CallWindows(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	w.note("runs for Windows: %s", formatValues(argv))
	return abstract.Unknown("…", 0)
}

func (w *World) Suspect(v abstract.Value)   { w.note("suspects %s", formatValue(v)) }
func (w *World) Call(argv []abstract.Value) { w.note("calls %s", formatValues(argv)) }

func (w *World) Nested(text string, _ effect.Span) abstract.Value {
	w.note("shell: %s", text)
	return abstract.Unknown("…", abstract.UnknownText)
}

func (w *World) Pipe(text string, _ effect.Span, in abstract.Value) {
	w.note("shell: %s < %s", text, formatValue(in))
}

func (w *World) Run(language string, code abstract.Value, how string, _ effect.Span) abstract.Value {
	w.note("%s runs %s: %s", how, language, formatValue(code))
	return abstract.Unknown("…", abstract.UnknownText)
}

func (w *World) RunFile(path abstract.Value, language string, _ effect.Span) {
	w.note("runs the file %s as %s", formatValue(path), language)
}

// Check reads a file of cases and compares the reports of each. A case is a line of dashes with a title, the text,
// a line of three dots, and the expected reports. With update, the reports are rewritten.
func Check(t *testing.T, name string, update bool, read func(w *World, title, text string)) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for part := range strings.SplitSeq(string(data), "\n--- ") {
		title, rest, ok := strings.Cut(strings.TrimPrefix(part, "--- "), "\n")
		if !ok {
			continue
		}
		text, want, _ := strings.Cut("\n"+strings.TrimSuffix(rest, "\n"), "\n...")
		text, want = strings.TrimPrefix(text, "\n"), strings.TrimPrefix(want, "\n")
		w := New()
		read(w, title, text)
		got := strings.Join(w.Reports, "\n")
		if !update && got != want {
			t.Errorf("%s: %s\n%s\n(-want +got)\n%s", name, title, text, cmp.Diff(want, got))
		}
		fmt.Fprintf(&out, "--- %s\n%s\n...\n%s\n", title, text, got)
	}
	if update {
		if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

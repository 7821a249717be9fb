// Package worldtest helps to test the analyzers of other languages, which report effects to an
// [abstract.AnalysisContext]: it records their reports, one per line.
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

// A RecordingContext records reports of effects. Its only files are those that were stored in it.
type RecordingContext struct {
	RecordedCalls  []string
	RemainingSteps int // steps left; negative ends the analysis

	files, variables  map[string]abstract.Value
	isAnalysisAborted bool
}

// New returns a RecordingContext with a budget that ordinary texts do not exceed.
func New() *RecordingContext {
	return &RecordingContext{RemainingSteps: 10000, files: map[string]abstract.Value{}, variables: map[string]abstract.Value{}}
}

func (w *RecordingContext) recordCall(format string, args ...any) {
	w.RecordedCalls = append(w.RecordedCalls, fmt.Sprintf(format, args...))
}

// taintNames are the names of taints, lowest bit first.
var taintNames = []string{"network", "decoded", "secret", "credential", "dump", "foreign", "shell-out", "socket", "private"}

// formatValue formats a value for RecordingContext.RecordedCalls: an unknown value is in angle
// brackets, and its taints follow.
func formatValue(v abstract.Value) string {
	text := v.Text
	if v.IsGlobPattern {
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

func (w *RecordingContext) SpendSteps(stepCount int) bool {
	if w.RemainingSteps -= stepCount; w.RemainingSteps < 0 {
		w.AbortAnalysis("the budget is spent")
	}
	return !w.isAnalysisAborted
}

func (w *RecordingContext) AbortAnalysis(why string) {
	if !w.isAnalysisAborted {
		w.isAnalysisAborted = true
		w.recordCall("gives up: %s", why)
	}
}

func (w *RecordingContext) IsAnalysisAborted() bool { return w.isAnalysisAborted }

func (w *RecordingContext) RecordEffect(e effect.Effect) {
	w.recordCall("%s %s: %s", strings.TrimSpace(string(e.KindForPolicies())+" "+e.RemoteOperationVerb), strings.TrimSpace(e.Program+" "+e.Path+e.Host), e.Reason)
}

func (w *RecordingContext) RecordUnknownEffect(cause effect.EffectCause, why string, _ effect.CommandTextSpan) {
	w.recordCall("dynamic (%s): %s", cause, why)
}

func (w *RecordingContext) RecordPathEffect(kind effect.Kind, v abstract.Value, recursive bool) (string, bool) {
	below := ""
	if recursive {
		below = " and below"
	}
	w.recordCall("%s %s%s", kind, formatValue(v), below)
	return v.Text, v.IsGlobPattern
}

func (w *RecordingContext) RecordURLContact(kind effect.Kind, v abstract.Value) {
	w.recordCall("%s %s", kind, formatValue(v))
}
func (w *RecordingContext) RecordHostContact(kind effect.Kind, v abstract.Value) {
	w.recordCall("%s host %s", kind, formatValue(v))
}

func (w *RecordingContext) RecordFileRead(path abstract.Value) abstract.Value {
	w.recordCall("read %s", formatValue(path))
	if held, ok := w.files[path.Text]; ok {
		return held
	}
	out := abstract.Unknown("what "+path.String()+" holds", 0)
	if w.IsSecretPath(path.Text) {
		out.Taint |= abstract.TaintReadCredentials
	}
	return out
}

func (w *RecordingContext) StoreFileContent(path string, _ bool, content abstract.Value) {
	w.recordCall("%s now holds %s", path, formatValue(content))
	w.files[path] = content
}

func (w *RecordingContext) RecordLink(path, to abstract.Value) {
	w.recordCall("%s links to %s", formatValue(path), formatValue(to))
}

func (w *RecordingContext) IsDiscardedWritePath(path string) bool { return path == "/dev/null" }
func (w *RecordingContext) IsSecretPath(path string) bool         { return strings.Contains(path, "id_rsa") }

func (w *RecordingContext) RecordSentValue(v abstract.Value, program string, _ effect.CommandTextSpan) {
	w.recordCall("%s sends %s", program, formatValue(v))
}

func (w *RecordingContext) Environment(name string) abstract.Value {
	v := abstract.UnsetVariableValue(name, 0)
	if knowledge.IsSecretVariableName(name) {
		v.Taint = abstract.TaintCredentialVariable
	}
	return v
}

func (w *RecordingContext) SetEnvironment(name string, v abstract.Value, _ effect.CommandTextSpan) {
	w.recordCall("sets $%s to %s", name, formatValue(v))
}

func (w *RecordingContext) RecordWindowsRegistryChange(program string, words []abstract.Value, _ effect.CommandTextSpan) {
	w.recordCall("%s changes the registry: %s", program, formatValues(words))
}

func (w *RecordingContext) SetVariable(name string, v abstract.Value) { w.variables[name] = v }

func (w *RecordingContext) LookupVariable(name string) (abstract.Value, bool) {
	v, ok := w.variables[name]
	return v, ok
}

func (w *RecordingContext) ChangeFolder(v abstract.Value) {
	w.recordCall("changes to %s", formatValue(v))
}

func (w *RecordingContext) Stdin() abstract.Value {
	return abstract.Unknown("standard input", abstract.TaintUnknownText)
}

func (w *RecordingContext) RedirectOutput(io *abstract.Streams, descriptor string, path abstract.Value, isAppend bool) {
	w.recordCall("writes descriptor %q to %s, appending %t", descriptor, formatValue(path), isAppend)
	io.Out = &abstract.OutputTarget{Path: path.Text, Append: isAppend}
}

func (w *RecordingContext) DeliverOutput(io abstract.Streams, out abstract.Value) abstract.Value {
	if io.Out == nil {
		return out
	}
	if !io.Out.Discard {
		w.recordCall("%s gets %s", io.Out.Path, formatValue(out))
	}
	return abstract.Value{}
}

func (w *RecordingContext) HoldBackEffects(f func()) (release func()) {
	mark := len(w.RecordedCalls)
	f()
	held := append([]string(nil), w.RecordedCalls[mark:]...)
	w.RecordedCalls = w.RecordedCalls[:mark]
	return func() { w.RecordedCalls = append(w.RecordedCalls, held...) }
}

func (w *RecordingContext) RecordExecuteEffect(argv []abstract.Value, program string, class effect.ProgramClass) {
	w.recordCall("runs %s (%s): %s", program, class, formatValues(argv))
}

func (w *RecordingContext) WalkUnknownProgram(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	w.recordCall("runs an unknown program: %s", formatValues(argv))
	return abstract.Unknown("…", abstract.TaintUnknownText)
}

func (w *RecordingContext) WalkWindowsCommand(argv []abstract.Value, _ abstract.Streams) abstract.Value {
	w.recordCall("runs for Windows: %s", formatValues(argv))
	return abstract.Unknown("…", 0)
}

func (w *RecordingContext) RecordPathOrURL(v abstract.Value) {
	w.recordCall("suspects %s", formatValue(v))
}
func (w *RecordingContext) WalkCommand(argv []abstract.Value) {
	w.recordCall("calls %s", formatValues(argv))
}

func (w *RecordingContext) WalkShellText(text string, _ effect.CommandTextSpan) abstract.Value {
	w.recordCall("shell: %s", text)
	return abstract.Unknown("…", abstract.TaintUnknownText)
}

func (w *RecordingContext) WalkShellTextWithStdin(text string, _ effect.CommandTextSpan, stdin abstract.Value) {
	w.recordCall("shell: %s < %s", text, formatValue(stdin))
}

func (w *RecordingContext) WalkCode(language string, code abstract.Value, runnerName string, _ effect.CommandTextSpan) abstract.Value {
	w.recordCall("%s runs %s: %s", runnerName, language, formatValue(code))
	return abstract.Unknown("…", abstract.TaintUnknownText)
}

func (w *RecordingContext) WalkCodeFile(path abstract.Value, language string, _ effect.CommandTextSpan) {
	w.recordCall("runs the file %s as %s", formatValue(path), language)
}

// CheckGoldenCases reads a file of cases and compares the reports of each. A case is a line of
// dashes with a title, the text, a line of three dots, and the expected reports. If updateGolden is
// true, the reports are rewritten.
func CheckGoldenCases(t *testing.T, goldenPath string, updateGolden bool, analyzeCase func(w *RecordingContext, title, text string)) {
	t.Helper()
	data, err := os.ReadFile(goldenPath)
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
		analyzeCase(w, title, text)
		got := strings.Join(w.RecordedCalls, "\n")
		if !updateGolden && got != want {
			t.Errorf("%s: %s\n%s\n(-want +got)\n%s", goldenPath, title, text, cmp.Diff(want, got))
		}
		fmt.Fprintf(&out, "--- %s\n%s\n...\n%s\n", title, text, got)
	}
	if updateGolden {
		if err := os.WriteFile(goldenPath, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

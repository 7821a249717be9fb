package worldtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// TestLines holds the line of each report: cases of other packages are written in them.
func TestLines(t *testing.T) {
	t.Parallel()
	w := New()
	var world abstract.AnalysisContext = w
	tainted := abstract.Lit("k")
	tainted.Taint = abstract.TaintNetwork | abstract.TaintClipboardOrScreen
	unknown := abstract.UnsetVariableValue("X", 0)
	at := effect.CommandTextSpan{}
	world.RecordEffect(effect.Effect{Kind: effect.SendData, Program: "curl", Host: "x.test", Reason: "why"})
	world.RecordUnknownEffect(effect.CauseStandardInput, "why", at)
	world.RecordPathEffect(effect.DeleteFile, unknown, true)
	world.RecordURLContact(effect.HTTPRequest, tainted)
	world.RecordHostContact(effect.Connect, tainted)
	world.RecordLink(abstract.Lit("a"), abstract.Lit("b"))
	world.RecordSentValue(tainted, "nc", at)
	world.SetEnvironment("A", tainted, at)
	world.RecordWindowsRegistryChange("reg", []abstract.Value{tainted, unknown}, at)
	world.ChangeFolder(tainted)
	var io abstract.Streams
	world.RedirectOutput(&io, "2", abstract.Lit("f"), true)
	world.DeliverOutput(io, tainted)
	release := world.HoldBackEffects(func() { world.WalkCommand([]abstract.Value{abstract.Lit("later")}) })
	world.RecordExecuteEffect([]abstract.Value{abstract.Lit("ls")}, "ls", effect.ReadOnly)
	world.WalkUnknownProgram([]abstract.Value{abstract.Lit("x")}, abstract.Streams{})
	world.WalkWindowsCommand([]abstract.Value{abstract.Lit("x")}, abstract.Streams{})
	world.RecordPathOrURL(tainted)
	world.WalkShellText("id", at)
	world.WalkShellTextWithStdin("sh", at, tainted)
	world.WalkCode("php", tainted, "code", at)
	world.WalkCodeFile(tainted, "lua", at)
	release()
	want := `send_data curl x.test: why
dynamic (input): why
delete_file <$X> and below
http_request k +network +private
connect host k +network +private
a links to b
nc sends k +network +private
sets $A to k +network +private
reg changes the registry: k +network +private | <$X>
changes to k +network +private
writes descriptor "2" to f, appending true
f gets k +network +private
runs ls (readonly): ls
runs an unknown program: x
runs for Windows: x
suspects k +network +private
shell: id
shell: sh < k +network +private
code runs php: k +network +private
runs the file k +network +private as lua
calls later`
	if got := strings.Join(w.RecordedCalls, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMemory holds what a World knows: what was stored, secrets by their names, and
// when its budget ends.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := New()
	if v := w.RecordFileRead(abstract.Lit("/a/id_rsa")); v.IsLiteral() || v.Taint != abstract.TaintReadCredentials {
		t.Errorf("a key: %+v", v)
	}
	w.StoreFileContent("f", false, abstract.Lit("held"))
	if v := w.RecordFileRead(abstract.Lit("f")); v.Text != "held" {
		t.Errorf("what f holds: %+v", v)
	}
	w.SetVariable("n", abstract.Lit("v"))
	if v, ok := w.LookupVariable("n"); !ok || v.Text != "v" {
		t.Errorf("n is %+v", v)
	}
	if _, ok := w.LookupVariable("m"); ok || !w.IsDiscardedWritePath("/dev/null") || w.IsDiscardedWritePath("f") || w.Stdin().IsLiteral() {
		t.Error("the world knows what nobody told it")
	}
	if v := w.Environment("AWS_SECRET_ACCESS_KEY"); v.Taint != abstract.TaintCredentialVariable || w.Environment("HOME").Taint != 0 {
		t.Errorf("a secret of the environment: %+v", v)
	}
	if v := w.DeliverOutput(abstract.Streams{}, abstract.Lit("out")); v.Text != "out" {
		t.Errorf("what goes nowhere: %+v", v)
	}
	if !w.SpendSteps(10000) || w.IsAnalysisAborted() || w.SpendSteps(1) || !w.IsAnalysisAborted() || w.SpendSteps(0) {
		t.Error("the budget has another end")
	}
	if lines := strings.Join(w.RecordedCalls, "\n"); strings.Count(lines, "gives up") != 1 {
		t.Errorf("gives up otherwise than once:\n%s", lines)
	}
}

// TestCheck holds that the lines of cases are rewritten when that is asked for, texts
// and titles untouched, and that cases which are right are left alone.
func TestCheck(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cases.txt")
	if err := os.WriteFile(name, []byte("--- one\ntext\n\nmore\n...\nold\n--- two\n...\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var seen []string
	read := func(w *RecordingContext, title, text string) {
		seen = append(seen, title+":"+text)
		w.RecordPathOrURL(abstract.Lit(title))
	}
	CheckGoldenCases(t, name, true, read)
	want := "--- one\ntext\n\nmore\n...\nsuspects one\n--- two\n\n...\nsuspects two\n"
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	CheckGoldenCases(t, name, false, read)
	if got := strings.Join(seen[:2], "|"); got != "one:text\n\nmore|two:" {
		t.Errorf("read %q", got)
	}
}

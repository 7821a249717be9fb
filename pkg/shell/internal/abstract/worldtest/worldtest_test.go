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
	var world abstract.World = w
	tainted := abstract.Lit("k")
	tainted.Taint = abstract.Network | abstract.Private
	unknown := abstract.Variable("X", 0)
	at := effect.Span{}
	world.Report(effect.Effect{Kind: effect.SendData, Program: "curl", Host: "x.test", Reason: "why"})
	world.Dynamic(effect.CauseInput, "why", at)
	world.Path(effect.DeleteFile, unknown, true)
	world.URL(effect.HTTPRequest, tainted)
	world.Host(effect.Connect, tainted)
	world.Link(abstract.Lit("a"), abstract.Lit("b"))
	world.Send(tainted, "nc", at)
	world.SetEnvironment("A", tainted, at)
	world.SetRegistry("reg", []abstract.Value{tainted, unknown}, at)
	world.ChangeFolder(tainted)
	var io abstract.Streams
	world.Redirect(&io, "2", abstract.Lit("f"), true)
	world.DeliverOutput(io, tainted)
	release := world.DeferEffects(func() { world.Call([]abstract.Value{abstract.Lit("later")}) })
	world.Execute([]abstract.Value{abstract.Lit("ls")}, "ls", effect.ReadOnly)
	world.CallUnknown([]abstract.Value{abstract.Lit("x")}, abstract.Streams{})
	world.CallWindows([]abstract.Value{abstract.Lit("x")}, abstract.Streams{})
	world.Suspect(tainted)
	world.Nested("id", at)
	world.Pipe("sh", at, tainted)
	world.Run("php", tainted, "code", at)
	world.RunFile(tainted, "lua", at)
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
	if got := strings.Join(w.Reports, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMemory holds what a World knows: what was stored, secrets by their names, and
// when its budget ends.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := New()
	if v := w.Read(abstract.Lit("/a/id_rsa")); v.Known() || v.Taint != abstract.Secret {
		t.Errorf("a key: %+v", v)
	}
	w.Store("f", false, abstract.Lit("held"))
	if v := w.Read(abstract.Lit("f")); v.Text != "held" {
		t.Errorf("what f holds: %+v", v)
	}
	w.Set("n", abstract.Lit("v"))
	if v, ok := w.Get("n"); !ok || v.Text != "v" {
		t.Errorf("n is %+v", v)
	}
	if _, ok := w.Get("m"); ok || !w.Discards("/dev/null") || w.Discards("f") || w.Input().Known() {
		t.Error("the world knows what nobody told it")
	}
	if v := w.Environment("AWS_SECRET_ACCESS_KEY"); v.Taint != abstract.Credential || w.Environment("HOME").Taint != 0 {
		t.Errorf("a secret of the environment: %+v", v)
	}
	if v := w.DeliverOutput(abstract.Streams{}, abstract.Lit("out")); v.Text != "out" {
		t.Errorf("what goes nowhere: %+v", v)
	}
	if !w.Step(10000) || w.Ended() || w.Step(1) || !w.Ended() || w.Step(0) {
		t.Error("the budget has another end")
	}
	if lines := strings.Join(w.Reports, "\n"); strings.Count(lines, "gives up") != 1 {
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
	read := func(w *World, title, text string) {
		seen = append(seen, title+":"+text)
		w.Suspect(abstract.Lit(title))
	}
	Check(t, name, true, read)
	want := "--- one\ntext\n\nmore\n...\nsuspects one\n--- two\n\n...\nsuspects two\n"
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	Check(t, name, false, read)
	if got := strings.Join(seen[:2], "|"); got != "one:text\n\nmore|two:" {
		t.Errorf("read %q", got)
	}
}

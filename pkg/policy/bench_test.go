package policy

import (
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

func benchmarkJudge(b *testing.B, preset string, c *analysis.ActionCase, want string) {
	p, err := Preset(preset, testOptions())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		v, err := p.Judge(b.Context(), c)
		if err != nil || short(v) != want {
			b.Fatal(short(v), err)
		}
	}
}

func BenchmarkJudgeRead(b *testing.B) {
	benchmarkJudge(b, "default", caseOf("read_file", read("/work/app/src/main.go")), "ALLOW workspace_reads")
}

func BenchmarkJudgeCommand(b *testing.B) {
	benchmarkJudge(b, "default", caseOf("execute_command", execute, read("/work/app/src/main.go"), write("/work/app/out.txt")), "ESCALATE 1 ")
}

func BenchmarkJudgeDenied(b *testing.B) {
	benchmarkJudge(b, "default", caseOf("execute_command", execute, read("/home/me/.ssh/id_rsa")), "BLOCK credential_files")
}

func BenchmarkJudgePattern(b *testing.B) {
	benchmarkJudge(b, "default", caseOf("execute_command", execute, unknown(read("/work/app/src/*.go"))), "ESCALATE 1 ")
}

func BenchmarkJudgeWhen(b *testing.B) {
	c := caseOf("http_request", contact("example.com"))
	c.Action.Payload = map[string]any{"url": "https://example.com/"}
	benchmarkJudge(b, "offline", c, "ESCALATE 1 ")
}

// BenchmarkStart is what a process pays before its first verdict.
func BenchmarkStart(b *testing.B) {
	a := &action.Action{Type: "read_file"}
	c := &analysis.ActionCase{Action: a, Effects: []effect.Effect{read("/work/app/src/main.go")}}
	b.ReportAllocs()
	for b.Loop() {
		p, err := Preset("default", testOptions())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Judge(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	data := []byte("extends: default\n" + lists)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load("x", data, testOptions()); err != nil {
			b.Fatal(err)
		}
	}
}

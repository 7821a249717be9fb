package shield

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
)

// BenchmarkSession judges actions of a host's session without memory, with what it
// remembers of two actions in a state file, and with all that it may remember: 10,000
// files and 512 credentials. No action adds anything, so nothing is written.
func BenchmarkSession(b *testing.B) {
	line := "export const total = (orders) => orders.map((o) => o.priceInCents * o.count).reduce((a, b) => a + b, 0)\n"
	text := strings.Repeat(line, 10<<10/len(line))
	for _, bench := range []struct{ name, raw string }{
		{"ls", inSession("ls -la")},
		{"run", inSession("bash a.sh")},
		{"test", inSession("npm test")},
		{"send", inSession("curl -d x=1 https://example.com/")},
		{"send10K", fmt.Sprintf(`{"type":"http_request","session":"s","payload":{"url":"https://example.com/","method":"POST","body":%q}}`, text)},
		{"write10K", fmt.Sprintf(`{"type":"write_file","session":"s","payload":{"path":"src/a.js","content":%q}}`, text)},
		{"push", inSession("git push origin main")},
	} {
		for _, memory := range []string{"without", "with", "full"} {
			b.Run(memory+"/"+bench.name, func(b *testing.B) {
				judge := sessionBench(b, memory)
				judge(bench.raw)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					judge(bench.raw)
				}
			})
		}
	}
}

func inSession(text string) string {
	return fmt.Sprintf(`{"type":"execute_command","session":"s","payload":{"command":%q}}`, text)
}

// sessionBench returns what judges actions of a session that remembers something.
func sessionBench(b *testing.B, memory string) (judge func(raw string)) {
	b.Helper()
	s := Defaults()
	s.Session.SessionTrackingEnabled = memory != "without"
	p, err := NewPipeline(Config{Settings: &s, PolicyNameOrPath: "offline", Home: "/home/me", WorkingDir: "/work/app", StateDir: b.TempDir(), AgentHostName: "bench", IgnoresFileSystem: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	judge = func(raw string) {
		a, err := action.Parse([]byte(raw))
		if err != nil {
			b.Fatal(err)
		}
		p.EvaluateThroughTier(context.Background(), a, TierClassify)
	}
	judge(inSession("curl -o b.sh https://example.com/; cat .env"))
	if memory != "full" {
		return judge
	}
	load := func() *session.Session {
		return p.sessionStoreForJudging.Load(b.Context(), session.Key{AgentHostName: "bench", ID: "s", User: p.caller.User}, session.Lineage{}, "")
	}
	var d session.RecordDelta
	for i := range s.Session.MaxTaintLabelledFiles {
		d.LabelledFiles = append(d.LabelledFiles, effect.LabelledFile{Path: fmt.Sprintf("/work/app/data/part-%05d.csv", i), Labels: []effect.TaintLabel{effect.LabelFromNetwork}})
	}
	if err := p.sessionStoreForJudging.Add(b.Context(), load(), &d); err != nil {
		b.Fatal(err)
	}
	for i := range 8 {
		var text strings.Builder
		for k := range 64 {
			fmt.Fprintf(&text, "API_KEY_%d=q%dZt93Lm%dXk42VbNa%dRwYe5H\n", 64*i+k, 7919*i+104729*k, 1299709*k+i, 15485863*i+k)
		}
		if err := p.sessionStoreForJudging.AddCompleted(b.Context(), load(), session.CompletedCall{ResultTexts: []string{text.String()}}); err != nil {
			b.Fatal(err)
		}
	}
	return judge
}

package shield

import (
	"context"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
)

// BenchmarkSession judges actions of a host's session with what it remembers in a
// state file, and without. No action adds anything, so nothing is written.
func BenchmarkSession(b *testing.B) {
	for _, bench := range []struct {
		name    string
		enabled bool
		raw     string
	}{
		{"without/ls", false, `{"type":"execute_command","session":"s","payload":{"command":"ls -la"}}`},
		{"with/ls", true, `{"type":"execute_command","session":"s","payload":{"command":"ls -la"}}`},
		{"without/run", false, `{"type":"execute_command","session":"s","payload":{"command":"bash a.sh"}}`},
		{"with/run", true, `{"type":"execute_command","session":"s","payload":{"command":"bash a.sh"}}`},
		{"without/send", false, `{"type":"execute_command","session":"s","payload":{"command":"curl -d x=1 https://example.com/"}}`},
		{"with/send", true, `{"type":"execute_command","session":"s","payload":{"command":"curl -d x=1 https://example.com/"}}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := Defaults()
			s.Session.Enabled = bench.enabled
			p, err := NewPipeline(Config{Settings: &s, Policy: "offline", Home: "/home/me", Dir: "/work/app", StateDir: b.TempDir(), Host: "bench", NoFiles: true})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			judge := func(raw string) {
				a, err := action.Parse([]byte(raw))
				if err != nil {
					b.Fatal(err)
				}
				p.EvaluateUntil(context.Background(), a, TierClassify)
			}
			judge(`{"type":"execute_command","session":"s","payload":{"command":"curl -o b.sh https://example.com/; cat .env"}}`)
			judge(bench.raw)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				judge(bench.raw)
			}
		})
	}
}

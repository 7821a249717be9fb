package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// typical returns actions as a coding agent proposes them.
func typical(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&b, `{"id":"a%d","type":"read_file","payload":{"path":"src/file%d.go"}}`, i, i)
		case 1:
			fmt.Fprintf(&b, `{"id":"b%d","type":"execute_command","payload":{"command":"git log --oneline -n %d | head -20"}}`, i, i)
		case 2:
			fmt.Fprintf(&b, `{"id":"c%d","type":"execute_command","payload":{"command":"go test ./pkg/p%d/... 2>&1 | tail"}}`, i, i)
		case 3:
			fmt.Fprintf(&b, `{"id":"d%d","type":"write_file","payload":{"path":"src/file%d.go","content":"package main\n"}}`, i, i)
		case 4:
			fmt.Fprintf(&b, `{"id":"e%d","type":"execute_command","payload":{"command":"npm install left-pad@1.%d.0"}}`, i, i)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// BenchmarkStream judges a stream of 1,000 actions.
func BenchmarkStream(b *testing.B) {
	for _, audited := range []bool{false, true} {
		b.Run(fmt.Sprintf("audit=%t", audited), func(b *testing.B) {
			w := newWorld(b)
			w.Now = time.Now
			file := filepath.Join(w.Home, "shield.yaml")
			if err := os.WriteFile(file, fmt.Appendf(nil, "audit: {enabled: %t}\nclassifier: {model: none}\n", audited), 0o600); err != nil {
				b.Fatal(err)
			}
			in := typical(1000)
			b.ReportAllocs()
			for b.Loop() {
				w.In, w.Out = bytes.NewReader(in), io.Discard
				Run(context.Background(), []string{"run", "--until", "classify", "--config", file}, w)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/action")
		})
	}
}

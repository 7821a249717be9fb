//go:build unix

package sanitize

import (
	"strings"
	"syscall"
	"testing"
)

// cpu returns the time that this process has had a processor, in nanoseconds: on a
// machine that is shared it says more than the clock.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkExamine examines 10 KiB of what tools bring back.
func BenchmarkExamine(b *testing.B) {
	for name, part := range map[string]string{
		"prose":    "The committee met on Tuesday to discuss the guidelines, which describe how the instructions are to be read. Answers should be sent to the office before the end of the month.\n",
		"code":     "func (p *Parser) next(tok Token) error { if tok.Kind == 0x1f { return fmt.Errorf(\"token %d: %w\", tok.Pos, err) } }\n",
		"html":     `<div class="row" style="margin: 0 auto"><a href="https://a.test/b?c=d" title="More about this">Read &amp; learn</a><!-- end of row --></div>` + "\n",
		"json":     `{"id": 17, "sha": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "title": "Fix the parser", "user": {"login": "someone"}},` + "\n",
		"russian":  "Комитет собрался во вторник, чтобы обсудить новые правила, в которых описано, как читать указания.\n",
		"terminal": "\x1b[32m✓\x1b[0m tests/test_parser.py::test_next \x1b[2mpassed in 0.02s\x1b[0m\n",
	} {
		text := strings.Repeat(part, 10<<10/len(part)+1)[:10<<10]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			start := cpu(b)
			for b.Loop() {
				Examine(text)
			}
			b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

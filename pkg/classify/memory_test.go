//go:build linux

package classify

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// resident returns how much memory this process holds, in bytes: the C
// library's and ONNX Runtime's too, of which Go knows nothing.
func resident(t *testing.T) int {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kib, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Skip("no VmRSS")
	return 0
}

// TestMemory holds that no score leaves something behind: tensors and options
// are not Go's, and a hook server lives for weeks. It is not parallel, since
// other tests take memory too.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("scores many texts")
	}
	m := openTest(t, "bert")
	texts := []string{
		"execute_command: {\"command\":\"ls\"}",
		"write_file: {\"content\":\"" + strings.Repeat("a b ", 20) + "\"}",
		strings.Repeat("x", 300<<10), // too long
		"",
	}
	score := func(times int) {
		for i := range times {
			_, _ = m.Score(t.Context(), texts[i%len(texts)])
		}
	}
	score(2500) // until allocators have what they keep
	// A leak grows every time; an allocator that takes another arena does so once.
	for range 4 {
		before := resident(t)
		score(2500)
		grown := resident(t) - before
		t.Logf("%d KiB more after 2,500 texts", grown>>10)
		if grown < 512<<10 {
			return
		}
	}
	t.Error("every 2,500 texts leave memory behind")
}

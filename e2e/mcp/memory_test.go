package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/cmd"
)

// maxGrowth is what a call may leave behind in memory, in bytes: less than an entry of
// a map or a list.
const maxGrowth = 8

// TestMemory makes calls through shield mcp, many at a time, and holds that what is kept
// in memory does not grow with them. SHIELD_CALLS says how many, in place of a few
// thousand.
func TestMemory(t *testing.T) { // not parallel: the memory is that of the process
	calls := 3000
	if text := os.Getenv("SHIELD_CALLS"); text != "" {
		var err error
		if calls, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, to := io.Pipe()
	out, w := io.Pipe()
	defer to.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	home := t.TempDir()
	go func() {
		ended <- cmd.Run(ctx, []string{"mcp", "--policy", "permissive", "--model", "none", "--", "env", "SHIELD_TEST_CHILD=server", self, "mcp-server-filesystem", "."}, cmd.Environment{
			In: in, Out: w, Err: io.Discard, Getenv: func(string) string { return "" }, Environ: os.Environ, Now: time.Now,
			Home: home, WorkingDir: home, User: "me", OS: runtime.GOOS,
		})
		w.Close()
	}()
	from := bufio.NewReader(out)
	frame := func(text string) {
		if _, err := io.WriteString(to, text+"\n"); err != nil {
			t.Error(err)
		}
	}
	answer := func() {
		if line, err := from.ReadString('\n'); err != nil || strings.Contains(line, `"error"`) || strings.Contains(line, "blocked by shield") {
			t.Fatalf("%v: %.300s", err, line)
		}
	}
	frame(hello)
	answer()
	frame(ready)
	frame(tools)
	answer()
	const atOnce = 32
	sent := 0
	call := func(n int) {
		open := make(chan struct{}, atOnce)
		go func() {
			for range n {
				open <- struct{}{}
				sent++
				frame(fmt.Sprintf(called, sent, sent%100))
			}
		}()
		for range n {
			answer()
			<-open
		}
	}
	call(calls / 3)
	before := live()
	call(calls - calls/3)
	after := live()
	grown := int64(after) - int64(before)
	t.Logf("%d calls: %d KiB after a third, %d KiB at the end", calls, before>>10, after>>10)
	if most := int64(calls-calls/3)*maxGrowth + 24<<10; grown > most {
		t.Errorf("%d bytes more after %d calls; at most %d are expected", grown, calls-calls/3, most)
	}
	to.Close()
	if status := <-ended; status != 0 {
		t.Errorf("shield ends with %d", status)
	}
}

// live returns how many bytes of the heap are in use.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers have freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// counted counts the bytes that were read of it.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// stalled is a reader of the output that does not read until go on is closed.
type stalled struct {
	goOn chan struct{}
	out  bytes.Buffer
}

func (s *stalled) Write(p []byte) (int, error) {
	<-s.goOn
	return s.out.Write(p)
}

// records returns n actions of about size bytes each.
func records(n, size int) io.Reader {
	var parts []io.Reader
	text := strings.Repeat(`some words of a usual file\n`, size/28)
	for i := range n {
		parts = append(parts, strings.NewReader(fmt.Sprintf(`{"id":"%d","type":"write_file","payload":{"path":"a.txt","content":"`, i)),
			strings.NewReader(text), strings.NewReader("\"}}\n"))
	}
	return io.MultiReader(parts...)
}

// maxInFlight is about how many bytes a stream holds at once.
const maxInFlight = 8 << 20

func TestStalledReaderStopsReading(t *testing.T) {
	const n, size = 12, 1 << 20 // half as much again as may be in flight
	for _, args := range [][]string{
		{"policy", "--trace"},
		{"run", "--until", "classify", "--jobs", "16", "--trace"},
		{"classify"},
		{"policy", "--jobs", "256"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			w := newWorld(t)
			synctest.Test(t, func(t *testing.T) {
				in, out := &counted{Reader: records(n, size-100)}, &stalled{goOn: make(chan struct{})}
				w.In, w.Out = in, out
				ended := make(chan int)
				go func() { ended <- Run(t.Context(), args, w) }()
				synctest.Wait() // nothing moves any more
				// What is in flight, a record that waits to be, and one in the reader's buffer.
				if most := int64(maxInFlight + 2*size + 64<<10); in.n.Load() > most || in.n.Load() < size {
					t.Errorf("%d bytes were read while no verdict was taken; at most %d may be", in.n.Load(), most)
				}
				close(out.goOn)
				<-ended
				if in.n.Load() < n*(size-1000) {
					t.Errorf("only %d bytes were read", in.n.Load())
				}
				inOrder(t, out.out.Bytes(), n)
			})
		})
	}
}

// inOrder demands verdicts for the actions 0 to n-1.
func inOrder(t *testing.T, out []byte, n int) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != n {
		t.Fatalf("%d verdicts for %d actions", len(lines), n)
	}
	for i, line := range lines {
		var v struct{ ID string }
		if err := json.Unmarshal(line, &v); err != nil || v.ID != fmt.Sprint(i) {
			t.Fatalf("verdict %d is for %q: %v", i, v.ID, err)
		}
	}
}

// A record that is larger than all that may be in flight still goes through.
func TestLargeRecordGoesThroughAlone(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	w.In, w.Out = records(2, maxInFlight+1000), &out
	Run(context.Background(), []string{"policy", "--max-bytes", fmt.Sprint(2 * maxInFlight)}, w)
	inOrder(t, out.Bytes(), 2)
}

// interrupter ends a context when it has taken some verdicts.
type interrupter struct {
	after int
	end   func()
	out   bytes.Buffer
}

func (i *interrupter) Write(p []byte) (int, error) {
	if i.after -= bytes.Count(p, []byte("\n")); i.after <= 0 {
		i.end()
	}
	return i.out.Write(p)
}

// An interrupt ends a command whose input is silent, or whose reader was
// waited for.
func TestInterruptWhileSilent(t *testing.T) {
	w := newWorld(t)
	r, in := io.Pipe()
	defer in.Close()
	ctx, cancel := context.WithCancel(context.Background())
	out := &interrupter{after: 2, end: cancel}
	w.In, w.Out = r, out
	go io.WriteString(in, `{"id":"0","type":"ping","payload":{}}{"id":"1","type":"ping","payload":{}}`)
	if status := Run(ctx, []string{"policy"}, w); status != statusBlock {
		t.Errorf("status %d", status)
	}
	inOrder(t, out.out.Bytes(), 2)
}

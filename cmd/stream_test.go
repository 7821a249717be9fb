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

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
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

func TestStalledReaderStopsReading(t *testing.T) {
	const n, size = 24, 1 << 20 // three times what may be in flight
	for _, args := range [][]string{
		{"policy"},
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
					t.Errorf("%d bytes were read while nobody took a verdict; at most %d may be", in.n.Load(), most)
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
	w.In, w.Out = records(3, maxInFlight+1000), &out
	Run(context.Background(), []string{"policy", "--max-bytes", fmt.Sprint(2 * maxInFlight)}, w)
	inOrder(t, out.Bytes(), 3)
}

func TestInFlightCountsWhatGrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInFlight(100)
		taken := make(chan int, 4)
		go func() {
			for i := range 3 {
				f.take(10)
				taken <- i
			}
		}()
		synctest.Wait()
		f.change(30, 0)
		f.take(10)
		f.change(10, 100) // its trace is larger than it was
		go func() { f.take(1); taken <- 3 }()
		synctest.Wait()
		if len(taken) != 3 {
			t.Fatalf("%d were taken, want 3", len(taken))
		}
		f.change(100, 99)
		synctest.Wait()
		if len(taken) != 4 {
			t.Fatal("room that was given back is not used")
		}
		go f.take(50)
		f.release()
		synctest.Wait()
	})
}

// tap is an endless source that counts.
type tap struct{ n int }

func (s *tap) Next() (verdict.Record, error) {
	s.n++
	raw := fmt.Appendf(nil, `{"id":"%d","type":"ping","payload":{}}`, s.n-1)
	a, err := action.Parse(raw)
	return verdict.Record{Line: s.n, Raw: raw, Action: a}, err
}

// interrupter ends a context when it has taken some verdicts.
type interrupter struct {
	after int
	end   func()
	out   bytes.Buffer
}

func (i *interrupter) Write(p []byte) (int, error) {
	if i.after--; i.after == 0 {
		i.end()
	}
	return i.out.Write(p)
}

// After an interrupt nothing more is read, and exactly what was read is
// answered, however much there would be.
func TestInterruptEndsReading(t *testing.T) {
	for _, jobs := range []int{1, 8} {
		w := newWorld(t)
		p, err := shield.NewPipeline(shield.Config{Home: w.Home, Dir: w.Dir, Roots: []string{w.Dir}, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		out, in := &interrupter{after: 10, end: cancel}, &tap{}
		w.Out = out
		status, _ := exitStatus(stage{tiers: shield.Range{First: shield.TierPolicy, Last: shield.TierClassify}}.stream(ctx, &w, p, in, jobs))
		n := bytes.Count(out.out.Bytes(), []byte("\n"))
		// One may have been under way when the interrupt came.
		if n != in.n && n != in.n-1 {
			t.Errorf("%d jobs: %d records were read, %d answered", jobs, in.n, n)
		}
		if most := 10 + 3*maxBatch + 2*jobs + 4; n > most || status != statusBlock {
			t.Errorf("%d jobs: %d verdicts, status %d", jobs, n, status)
		}
		inOrder(t, out.out.Bytes(), n)
	}
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

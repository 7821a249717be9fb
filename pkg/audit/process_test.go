package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/reexec"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

const (
	tries  = 200
	budget = 1000
)

// The test binary runs itself to have several processes on one log.
func TestMain(m *testing.M) { reexec.Main(m, child) }

func openAll(dir string) (*state.Store, *audit.Log, error) {
	path := filepath.Join(dir, "audit.jsonl")
	st, err := state.Open(dir, state.Options{
		Clock: time.Now, BootIDAndUptime: state.BootIDAndUptime,
		EvidenceOfEarlierStateFile: func() (string, error) {
			has, err := audit.HasEntries(path)
			if has {
				return "the audit log shows that a state file existed", err
			}
			return "", err
		},
	})
	if err != nil {
		return nil, nil, err
	}
	l, err := audit.Open(path, audit.Options{Clock: time.Now, HeadStore: st})
	return st, l, err
}

// child does what evaluations do: charge, record, and only then say so.
func child(dir string) error {
	st, l, err := openAll(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range tries {
		id := fmt.Sprintf("%d-%d", os.Getpid(), i)
		e := audit.Entry{ActionID: id, Tier: 2, Decision: verdict.Allow, Payload: map[string]any{"command": "git push"}}
		switch _, _, err := st.ChargeRateTokenAndEvaluation(ctx, 1_000_000, budget); {
		case err == nil:
		case errors.Is(err, state.ErrBudgetExhausted):
			e.Decision, e.Error = verdict.Block, "budget"
		default:
			return err
		}
		began := time.Now()
		if err := l.Append(ctx, e); err != nil {
			return err
		}
		fmt.Println(id, e.Decision, time.Since(began).Microseconds())
	}
	return nil
}

func start(t *testing.T, dir string, out io.Writer) *exec.Cmd {
	t.Helper()
	cmd := reexec.Command(t, dir)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// check verifies the log against the state, and that each verdict that was
// said is in it.
func check(t *testing.T, dir, said string) audit.VerificationReport {
	t.Helper()
	st, _, err := openAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	seq, hash, err := st.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "audit.jsonl")
	r, err := audit.VerifyFile(path, &audit.ChainHead{Seq: seq, Hash: hash}, nil)
	if err != nil || !r.OK() {
		t.Fatalf("%+v %v, %v", r, r.Damage, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	logged := map[string]string{}
	for line := range bytes.Lines(b) {
		var e audit.Entry
		if json.Unmarshal(line, &e) == nil && e.Kind == audit.EntryKindVerdict {
			logged[e.ActionID] = e.Decision.String()
		}
	}
	for line := range strings.Lines(said) {
		if !strings.HasSuffix(line, "\n") {
			continue // killed while saying it
		}
		f := strings.Fields(line)
		if logged[f[0]] != f[1] {
			t.Errorf("verdict %s %s was written, the log has %q", f[0], f[1], logged[f[0]])
		}
	}
	return r
}

func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	outs := make([]strings.Builder, 8)
	var cmds []*exec.Cmd
	for i := range outs {
		cmds = append(cmds, start(t, dir, &outs[i]))
	}
	said := ""
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		said += outs[i].String()
	}
	if a, b := strings.Count(said, "ALLOW"), strings.Count(said, "BLOCK"); a != budget || b != 8*tries-budget {
		t.Errorf("%d allowed, %d blocked", a, b)
	}
	if r := check(t, dir, said); r.CompleteLineCount != 8*tries || r.Head.Seq != 8*tries {
		t.Errorf("%+v", r)
	}
	var times []int
	for line := range strings.Lines(said) {
		var id, d string
		var us int
		if _, err := fmt.Sscan(line, &id, &d, &us); err != nil {
			t.Fatal(err)
		}
		times = append(times, us)
	}
	slices.Sort(times)
	t.Logf("append among 8 processes: median %d µs, 99th percentile %d µs", times[len(times)/2], times[len(times)*99/100])
}

// Processes are killed at any point, fifty times over on one state and log.
func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	_, first, err := openAll(dir) // so that there is a log even if all are killed before they begin
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Append(t.Context(), audit.Entry{ActionID: "first"}); err != nil {
		t.Fatal(err)
	}
	first.Close()
	var mu sync.Mutex
	said := ""
	for range 10 {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				out := new(strings.Builder)
				cmd := start(t, dir, out)
				time.Sleep(rand.N(60 * time.Millisecond)) // where the kill falls is chance; no result depends on it
				cmd.Process.Kill()
				cmd.Wait()
				mu.Lock()
				said += out.String()
				mu.Unlock()
			})
		}
		wg.Wait()
		check(t, dir, said)
	}
	if a := strings.Count(said, "ALLOW"); a > budget {
		t.Errorf("%d allowed, more than the budget", a)
	}
	_, l, err := openAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), audit.Entry{ActionID: "last"}); err != nil {
		t.Fatal(err)
	}
	r := check(t, dir, said)
	if r.LastLineIncomplete {
		t.Error("a torn line is left")
	}
	t.Logf("%d verdicts written, %d lines, %d recovered", strings.Count(said, "\n"), r.CompleteLineCount, r.LogRecoveryEntryCount)
}

func benchmarkLog(b *testing.B) *audit.Log {
	_, l, err := openAll(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

var typical = audit.Entry{
	ActionID: "a1", ActionInputLineNumber: 1, ActionType: "execute_command", Session: "s1", Decision: verdict.Allow, Tier: 1, Confidence: 0.95,
	Reasoning:                  "harmless by analysis: reads inside the workspace",
	ActionHash:                 "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	Payload:                    map[string]any{"command": "find . -name '*.go' -newer go.mod | xargs grep -l context"},
	Fingerprints:               audit.PolicyAndModelFingerprints{Policy: "sha256:9f86d081884c7d65", Rules: "sha256:2feaa0c55ad015a3"},
	VerdictLatencyMicroseconds: 31, Caller: audit.Caller{ShieldSubcommand: "run", User: "me", PID: 4242},
}

// One verdict at a time, synced, with the head in the state file.
func BenchmarkAppend(b *testing.B) {
	l := benchmarkLog(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Append(b.Context(), typical); err != nil {
			b.Fatal(err)
		}
	}
}

// A stream in which up to 256 verdicts wait for their entries.
func BenchmarkSubmit(b *testing.B) {
	l := benchmarkLog(b)
	b.ReportAllocs()
	window := make(chan *audit.PendingEntries, 256)
	done := make(chan error)
	go func() {
		var err error
		for k := range window {
			if werr := k.Wait(context.Background()); err == nil {
				err = werr
			}
		}
		done <- err
	}()
	for b.Loop() {
		window <- l.EncodeAndQueue(typical)
	}
	close(window)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// The first entry of a process in a log of 1 GB.
func BenchmarkOpenLarge(b *testing.B) {
	dir := b.TempDir()
	_, l, err := openAll(dir)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Append(b.Context(), typical); err != nil {
		b.Fatal(err)
	}
	l.Close()
	path := filepath.Join(dir, "audit.jsonl")
	line, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	// A file with a hole in front: only its end is ever read.
	if _, err := f.WriteAt(append([]byte("\n"), line...), 1<<30); err != nil {
		b.Fatal(err)
	}
	f.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, l, err := openAll(dir)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Append(b.Context(), typical); err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

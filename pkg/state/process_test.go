package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/reexec"
)

const (
	tries  = 200
	budget = 1000
)

// The test binary runs itself to have several processes on one state file.
func TestMain(m *testing.M) { reexec.Main(m, child) }

// child charges the budget and says so after each charge, with the time taken.
//
// Behind its folder, on a line of its own, may stand the URL of a shared store, and
// then another budget. A store that does not answer is no reason to end: it comes
// back.
func child(arg string) error {
	dir, url, remote := strings.Cut(arg, "\n")
	url, number, _ := strings.Cut(url, "\n")
	budget := budget
	if number != "" {
		if _, err := fmt.Sscan(number, &budget); err != nil {
			return err
		}
	}
	opts := Options{Clock: time.Now, BootIDAndUptime: BootIDAndUptime}
	if remote {
		opts.Remote = &SharedStoreServer{URL: url, EncryptionMasterKey: [EncryptionMasterKeySize]byte{1, 2, 3}}
	}
	s, err := Open(dir, opts)
	if err != nil {
		return err
	}
	for range tries {
		began := time.Now()
		_, _, err := s.ChargeRateTokenAndEvaluation(context.Background(), 1_000_000, budget)
		took := time.Since(began)
		switch {
		case err == nil:
			fmt.Println("charged", took.Microseconds())
		case errors.Is(err, ErrBudgetExhausted):
			fmt.Println("refused", took.Microseconds())
		case errors.Is(err, ErrSharedStoreUnreachable):
			fmt.Println("unknown", took.Microseconds())
			time.Sleep(remoteBackoffAfterTimeout / 20)
		default:
			return err
		}
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

func TestProcessesShareBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	outs := make([]strings.Builder, 8)
	var cmds []*exec.Cmd
	for i := range outs {
		cmds = append(cmds, start(t, dir, &outs[i]))
	}
	charged, refused := 0, 0
	var times []int
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		charged += strings.Count(outs[i].String(), "charged")
		refused += strings.Count(outs[i].String(), "refused")
		for line := range strings.Lines(outs[i].String()) {
			var what string
			var us int
			if _, err := fmt.Sscan(line, &what, &us); err != nil {
				t.Fatal(err)
			}
			times = append(times, us)
		}
	}
	if charged != budget || refused != len(outs)*tries-budget {
		t.Errorf("%d charged and %d refused, want %d and %d", charged, refused, budget, len(outs)*tries-budget)
	}
	slices.Sort(times)
	t.Logf("median %d µs, 99th percentile %d µs", times[len(times)/2], times[len(times)*99/100])
}

// However processes are killed, what they did is charged, and no charge is
// granted twice: a process may only die between being charged and saying so.
func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	const victims = 24
	var mu sync.Mutex
	var outs []*strings.Builder
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range victims / 4 {
				out := new(strings.Builder)
				cmd := start(t, dir, out)
				time.Sleep(rand.N(40 * time.Millisecond)) // where the kill falls is chance; no result depends on it
				cmd.Process.Kill()
				cmd.Wait()
				mu.Lock()
				outs = append(outs, out)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	said := 0
	for _, out := range outs {
		said += strings.Count(out.String(), "charged")
	}
	s := openStore(t, dir, Options{Clock: time.Now, BootIDAndUptime: BootIDAndUptime})
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: budget})
	if err != nil {
		t.Fatal(err)
	}
	if st.EvaluationsUsed < min(said, budget) || st.EvaluationsUsed > said+victims {
		t.Errorf("%d charged, %d said so", st.EvaluationsUsed, said)
	}
	t.Logf("%d charged, %d said so", st.EvaluationsUsed, said)
	if used, err := s.ChargeEvaluation(t.Context(), budget); err == nil && used != st.EvaluationsUsed+1 {
		t.Errorf("used %d after %d", used, st.EvaluationsUsed)
	}
}

//go:build unix

package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/redistest"
)

var fleetKey = [EncryptionMasterKeySize]byte{1, 2, 3}

// shared opens the store of a machine, whose folder is dir, on a server.
func shared(t testing.TB, server *redistest.Server, dir string, w *world) *Store {
	t.Helper()
	o := w.options(true)
	o.Remote = &SharedStoreServer{URL: server.URL, EncryptionMasterKey: fleetKey}
	return openStore(t, dir, o)
}

func TestRemoteLimits(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld()
	one, two := shared(t, server, t.TempDir(), w), shared(t, server, t.TempDir(), w)
	for i := range 4 {
		s := []*Store{one, two}[i%2]
		if used, err := s.ChargeEvaluation(t.Context(), 4); used != i+1 || err != nil {
			t.Errorf("charge %d: used %d, %v", i, used, err)
		}
	}
	if _, _, err := one.ChargeRateTokenAndEvaluation(t.Context(), 10, 4); !errors.Is(err, ErrBudgetExhausted) {
		t.Errorf("budget: %v", err)
	}
	w.pass(48 * time.Hour) // the store's clock counts, not that of a machine
	if _, err := two.ChargeEvaluation(t.Context(), 4); !errors.Is(err, ErrBudgetExhausted) {
		t.Errorf("budget after the machine's clock was set: %v", err)
	}
	for i := range 3 {
		if err := one.ChargeApprovalRequest(t.Context(), 3); err != nil {
			t.Errorf("approval %d: %v", i, err)
		}
	}
	if err := two.ChargeApprovalRequest(t.Context(), 3); !errors.Is(err, ErrApprovalLimit) {
		t.Errorf("approvals: %v", err)
	}
	if err := two.TakeRateToken(t.Context(), 1); err != nil {
		t.Errorf("rate: %v", err)
	}
	if err := one.TakeRateToken(t.Context(), 1); !errors.Is(err, ErrEvaluatorRateExceeded) {
		t.Errorf("rate: %v", err)
	}
	st, err := two.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 10, MaxApprovalRequestsPerHour: 3})
	if err != nil || st.EvaluationsUsed != 4 || st.ApprovalsLeft != 0 {
		t.Errorf("status %+v, %v", st, err)
	}
}

// The head of the log is of one machine.
func TestRemoteHeadStays(t *testing.T) {
	server := redistest.Start(t)
	one, two := shared(t, server, t.TempDir(), newWorld()), shared(t, server, t.TempDir(), newWorld())
	err := one.AdvanceAuditHead(t.Context(), func(uint64, string) (uint64, string, error) { return 7, "abc", nil })
	if err != nil {
		t.Fatal(err)
	}
	if seq, _, err := two.AuditHead(t.Context()); seq != 0 || err != nil {
		t.Errorf("the other machine has %d, %v", seq, err)
	}
	server.Kill()
	if seq, hash, err := one.AuditHead(t.Context()); seq != 7 || hash != "abc" || err != nil {
		t.Errorf("without the store: %d %s, %v", seq, hash, err)
	}
}

func TestRemoteCache(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld()
	one, two := shared(t, server, t.TempDir(), w), shared(t, server, t.TempDir(), w)
	ctx := t.Context()
	put := func(s *Store, binding, value string, d time.Duration) {
		t.Helper()
		if err := s.Put(ctx, binding, []byte(value), w.wall.Add(d)); err != nil {
			t.Error(err)
		}
	}
	put(one, "a", "secret value", time.Minute)
	put(one, "b", "", time.Minute)
	put(one, "gone", "x", 50*time.Millisecond)
	if got, ok, err := two.Get(ctx, "a"); string(got) != "secret value" || !ok || err != nil {
		t.Errorf("got %q %v %v", got, ok, err)
	}
	if got, ok, err := two.Get(ctx, "b"); len(got) != 0 || !ok || err != nil {
		t.Errorf("an empty value: %q %v %v", got, ok, err)
	}
	if _, ok, err := two.Get(ctx, "c"); ok || err != nil {
		t.Errorf("a value that nobody put: %v %v", ok, err)
	}
	for stop := time.Now().Add(5 * time.Second); ; { // on the store's clock
		if _, ok, err := two.Get(ctx, "gone"); !ok && err == nil {
			break
		} else if err != nil || time.Now().After(stop) {
			t.Fatalf("a value does not expire: %v", err)
		}
	}
	list, err := two.CachedEntries(ctx)
	if err != nil || len(list) != 2 {
		t.Errorf("entries %v, %v", list, err)
	}
	if err := two.DropCached(ctx, []string{list[0].KeyHashHex[:8]}); err != nil {
		t.Error(err)
	}
	if list, err := one.CachedEntries(ctx); err != nil || len(list) != 1 {
		t.Errorf("after dropping: %v, %v", list, err)
	}
	if err := one.ClearCache(ctx); err != nil {
		t.Error(err)
	}
	st, err := two.Status(ctx, EvaluationAndApprovalLimits{})
	if list, lerr := two.CachedEntries(ctx); lerr != nil || len(list) != 0 || err != nil || st.CachedEntryCount != 0 {
		t.Errorf("after forgetting: %v, %d, %v, %v", list, st.CachedEntryCount, lerr, err)
	}
}

// What counts once counts once, however many machines ask at the same time.
func TestRemoteTakeOnce(t *testing.T) {
	server := redistest.Start(t)
	ctx := t.Context()
	for range 20 {
		w := newWorld()
		first := shared(t, server, t.TempDir(), w)
		if err := first.Put(ctx, "once", []byte("yes"), w.wall.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		got := make([]bool, 6)
		for i := range got {
			s := shared(t, server, t.TempDir(), w)
			wg.Go(func() {
				var err error
				if _, got[i], err = s.GetAndRemove(ctx, "once"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := strings.Count(fmt.Sprint(got), "true"); n != 1 {
			t.Fatalf("taken %d times", n)
		}
	}
}

func TestRemoteShelf(t *testing.T) {
	server := redistest.Start(t)
	one, two := shared(t, server, t.TempDir(), newWorld()), shared(t, server, t.TempDir(), newWorld())
	ctx := t.Context()
	g, h := []byte("group one"), []byte("group two")
	err := one.UpdateNamespace(ctx, "s", func(sh *NamespaceTx) error {
		return errors.Join(sh.Put(g, []byte("record"), []byte("1")), sh.Put(g, []byte("b"), []byte("2")),
			sh.Put(h, []byte("a"), []byte("3")), sh.Put(h, []byte("b"), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(s *Store) (out []string) {
		t.Helper()
		err := s.ViewNamespace(ctx, "s", func(sh *NamespaceTx) error {
			out = nil
			return sh.EachGroupWithValueOfKey([]byte("record"), func(name, value []byte) error {
				out = append(out, fmt.Sprintf("%s %q", name, value))
				return sh.Each(name, func(key, value []byte) error {
					out = append(out, string(key)+"="+string(value))
					return nil
				})
			})
		})
		if err != nil {
			t.Error(err)
		}
		return out
	}
	want := []string{`group one "1"`, "b=2", "record=1", `group two ""`, "a=3"}
	if diff := cmp.Diff(want, read(two)); diff != "" {
		t.Error(diff)
	}
	was, ok := two.NamespaceRevisionID("s")
	if now, same := one.NamespaceRevisionID("s"); !ok || !same || now != was {
		t.Error("machines see different stamps")
	}
	err = two.UpdateNamespace(ctx, "s", func(sh *NamespaceTx) error {
		if err := sh.DropGroup(g); err != nil {
			return err
		}
		if sh.Get(g, []byte("b")) != nil {
			t.Error("a dropped value is there in the same transaction")
		}
		return sh.Put(g, []byte("c"), []byte("4"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := one.NamespaceRevisionID("s"); now == was {
		t.Error("a change has left the stamp as it was")
	}
	if diff := cmp.Diff([]string{`group one ""`, "c=4", `group two ""`, "a=3"}, read(one)); diff != "" {
		t.Error(diff)
	}
	if err := one.UpdateNamespace(ctx, "s", func(sh *NamespaceTx) error { return errors.Join(sh.DropGroup(g), sh.DropGroup(h)) }); err != nil {
		t.Fatal(err)
	}
	if got := read(two); len(got) != 0 {
		t.Errorf("after all was dropped: %q", got)
	}
}

// The server learns neither values nor names.
func TestRemoteKeepsSecrets(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld()
	s := shared(t, server, t.TempDir(), w)
	ctx := t.Context()
	err := errors.Join(
		s.Put(ctx, "plain binding", []byte("plain value"), w.wall.Add(time.Hour)),
		s.UpdateNamespace(ctx, "plain shelf", func(sh *NamespaceTx) error {
			return sh.Put([]byte("plain group"), []byte("plain key"), []byte("plain value"))
		}))
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := server.Do("KEYS", "*").([]any)
	if len(keys) < 4 {
		t.Fatalf("keys %q", keys)
	}
	for _, k := range keys {
		key := k.(string)
		for field, value := range server.ReadHashFields(key) {
			if strings.Contains(key+field+value, "plain") || strings.Contains(value, `"used"`) {
				t.Errorf("%s %q holds %q", key, field, value)
			}
		}
	}
	other := newWorld().options(true)
	other.Remote = &SharedStoreServer{URL: server.URL, EncryptionMasterKey: [EncryptionMasterKeySize]byte{9}}
	if st, err := openStore(t, t.TempDir(), other).Status(ctx, EvaluationAndApprovalLimits{}); err != nil || st.CachedEntryCount != 0 {
		t.Errorf("another key sees %+v, %v", st, err)
	}
}

func TestRemoteURL(t *testing.T) {
	for url, good := range map[string]bool{
		"redis://h:1/2": true, "rediss://h": true, "unix:///run/s?db=1": true, "redis://user@h": true,
		"redis://:hunter2@h": false, "redis://u:hunter2@h": false, "http://h": false, "redis://h?max_retries=9&x=hunter2": false,
		"redis://hunter2\x7f": false, "": false,
	} {
		o := newWorld().options(true)
		o.Remote = &SharedStoreServer{URL: url, EncryptionMasterKey: fleetKey}
		s, err := Open(t.TempDir(), o)
		if good != (err == nil) || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
		if s != nil {
			s.Close()
		}
	}
}

// Eight processes on as many machines share a budget, exactly.
func TestRemoteProcesses(t *testing.T) {
	server := redistest.Start(t)
	var outs [8]bytes.Buffer
	var cmds []*exec.Cmd
	for i := range outs {
		cmds = append(cmds, start(t, t.TempDir()+"\n"+server.URL, &outs[i]))
	}
	charged, refused := 0, 0
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		charged += strings.Count(outs[i].String(), "charged")
		refused += strings.Count(outs[i].String(), "refused")
	}
	if charged != budget || refused != len(outs)*tries-budget {
		t.Errorf("%d charged, %d refused", charged, refused)
	}
}

// Whatever is killed, clients or the server, no charge is granted twice or
// forgotten: what is left of the budget afterwards is what no one was granted.
// SHIELD_KILLS is how many rounds each of the eight clients has.
func TestRemoteKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	server := redistest.Start(t)
	rounds, budget := 50, 6_000
	if text := os.Getenv("SHIELD_KILLS"); text != "" {
		if _, err := fmt.Sscan(text, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var said, unknown int
	var wg sync.WaitGroup
	for range 8 {
		dir := t.TempDir()
		wg.Go(func() {
			for range rounds {
				var out bytes.Buffer
				cmd := start(t, fmt.Sprintf("%s\n%s\n%d", dir, server.URL, budget), &out)
				time.Sleep(rand.N(250 * time.Millisecond)) // where the kill falls is chance; no result depends on it
				cmd.Process.Kill()
				cmd.Wait()
				mu.Lock()
				said += strings.Count(out.String(), "charged")
				unknown += strings.Count(out.String(), "unknown") + 1 // what it did when it died
				mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	pause := 200 * time.Millisecond
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-time.After(pause):
			server.Restart() // a kill, and on from what is on the disk
			pause = time.Second + rand.N(2*time.Second)
		}
	}
	w := newWorld()
	s := shared(t, server, t.TempDir(), w)
	// A disk that is slow makes an answer late: the store is asked again, as the next action would.
	away := func(err error) bool {
		w.pass(2 * remoteBackoffAfterTimeout)
		return errors.Is(err, ErrSharedStoreUnreachable)
	}
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 1 << 20})
	for away(err) {
		st, err = s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 1 << 20})
	}
	if err != nil {
		t.Fatal(err)
	}
	if st.EvaluationsUsed < said || st.EvaluationsUsed > min(said+unknown, budget) {
		t.Errorf("%d charged, %d said so, of %d it is not known", st.EvaluationsUsed, said, unknown)
	}
	t.Logf("%d charged, %d said so, of %d it is not known", st.EvaluationsUsed, said, unknown)
	left, late := 0, 0
	for err == nil || away(err) {
		switch _, _, err = s.ChargeRateTokenAndEvaluation(t.Context(), 1_000_000, budget); {
		case err == nil:
			left++
		case errors.Is(err, ErrSharedStoreUnreachable):
			late++ // charged or not
		}
	}
	if rest := budget - st.EvaluationsUsed; !errors.Is(err, ErrBudgetExhausted) || left > rest || left+late < rest {
		t.Errorf("%d and perhaps %d were left of %d, %d charged: %v", left, late, budget, st.EvaluationsUsed, err)
	}
}

// trips counts how often a store is asked, and may change what it says.
type trips struct {
	redisServer
	n      int
	change func([]any)
}

func (tr *trips) Do(ctx context.Context, commands ...[]string) ([]any, error) {
	tr.n++
	answers, err := tr.redisServer.Do(ctx, commands...)
	if tr.change != nil {
		tr.change(answers)
	}
	return answers, err
}

// What a transaction reads as a rule comes with the record, and counts only if no one
// wrote while it was read.
func TestRemoteTrips(t *testing.T) {
	server, w := redistest.Start(t), newWorld()
	s := shared(t, server, t.TempDir(), w)
	store := s.limitsAndNamespacesQueue.backend.(*remoteBackend)
	tr := &trips{redisServer: store.client}
	store.client = tr
	ctx, group, key := t.Context(), []byte("g"), []byte("k")
	put := func(sh *NamespaceTx) error { return sh.Put(group, key, append(sh.Get(group, key), 'x')) }
	look := func(sh *NamespaceTx) error { _ = sh.Get(group, key); return nil }
	expires := w.wall.Add(time.Hour)
	for i, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"the first of a server, which does not have the script yet", func() error { return s.Put(ctx, "b", []byte("1"), expires) }, 3},
		{"put", func() error { return s.Put(ctx, "b", []byte("2"), expires) }, 2},
		{"get", func() error { _, _, err := s.Get(ctx, "b"); return err }, 1},
		{"admit", func() error { _, _, err := s.ChargeRateTokenAndEvaluation(ctx, 100, 100); return err }, 2},
		{"a group that begins", func() error { return s.UpdateNamespace(ctx, "s", put, PrefetchKey{group, key}) }, 2},
		{"a change", func() error { return s.UpdateNamespace(ctx, "s", put, PrefetchKey{group, key}) }, 2},
		{"a look", func() error { return s.ViewNamespace(ctx, "s", look, PrefetchKey{group, key}) }, 1},
		{"a look that asks for more", func() error { return s.ViewNamespace(ctx, "s", look) }, 3},
	} {
		tr.n = 0
		if err := step.do(); err != nil || tr.n != step.want {
			t.Errorf("%d, %s: asked %d times, want %d; %v", i, step.name, tr.n, step.want, err)
		}
	}
	tr.n, tr.change = 0, func(answers []any) {
		answers[len(answers)-2], answers[1] = "another transaction's", "what lay there in between"
		tr.change = nil
	}
	if got, ok, err := s.Get(ctx, "b"); string(got) != "2" || !ok || err != nil || tr.n != 2 {
		t.Errorf("beside another that writes: %q %v %v, asked %d times", got, ok, err, tr.n)
	}
}

func BenchmarkRemoteAdmit(b *testing.B) {
	s := shared(b, redistest.Start(b, "--appendfsync", "everysec"), b.TempDir(), newWorld())
	for b.Loop() {
		if _, _, err := s.ChargeRateTokenAndEvaluation(b.Context(), 100_000_000, 1<<29); err != nil {
			b.Fatal(err)
		}
	}
}

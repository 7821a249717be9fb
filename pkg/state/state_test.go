package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/flock"
)

// A world is the clocks that a store sees.
type world struct {
	wall time.Time
	boot string
	up   time.Duration
}

func (w *world) pass(d time.Duration) { w.wall, w.up = w.wall.Add(d), w.up+d }

func (w *world) options(steady bool) Options {
	o := Options{Clock: func() time.Time { return w.wall }}
	if steady {
		o.BootIDAndUptime = func() (string, time.Duration, bool) { return w.boot, w.up, true }
	}
	return o
}

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func newWorld() *world { return &world{wall: noon, boot: "b1", up: time.Hour} }

func openStore(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOpenNeedsClock(t *testing.T) {
	if _, err := Open(t.TempDir(), Options{}); err == nil {
		t.Error("opened without a clock")
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	s := openStore(t, dir, newWorld().options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".": 0o700, stateFileName: 0o600, stateLockFileName: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %v, want %v", name, got, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Each damage must refuse every use, name its kind, and say what repairs it.
func TestDamage(t *testing.T) {
	garbage := func(from int) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := from; i < len(b); i++ {
				b[i] ^= 0xa5
			}
			write(t, path, b)
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, path string)
		kind   error
		advice string
	}{
		{"emptied", func(t *testing.T, p string) { write(t, p, nil) }, ErrCorrupt, RepairCommand},
		{"text", func(t *testing.T, p string) { write(t, p, []byte("{}\n")) }, ErrCorrupt, RepairCommand},
		{"all garbage", garbage(0), ErrCorrupt, RepairCommand},
		{"garbage pages", garbage(8192), ErrCorrupt, RepairCommand},
		{"cut to a page", func(t *testing.T, p string) { truncate(t, p, 4096) }, ErrCorrupt, RepairCommand},
		{"cut to two pages", func(t *testing.T, p string) { truncate(t, p, 8192) }, ErrCorrupt, RepairCommand},
		{"removed", remove, ErrStateFileMissing, RepairCommand},
		{"folder", func(t *testing.T, p string) { remove(t, p); mkdir(t, p) }, ErrCorrupt, RepairCommand},
		{"symbolic link", func(t *testing.T, p string) {
			if err := os.Rename(p, p+".real"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(p+".real", p); err != nil {
				t.Skip(err)
			}
		}, ErrCorrupt, RepairCommand},
		{"writable by all", func(t *testing.T, p string) {
			if err := os.Chmod(p, 0o666); err != nil {
				t.Fatal(err)
			}
		}, ErrStateAccessibleToOtherUsers, "chmod"},
		{"readable by all", func(t *testing.T, p string) {
			if err := os.Chmod(p, 0o644); err != nil {
				t.Fatal(err)
			}
		}, ErrStateAccessibleToOtherUsers, "chmod 0600"},
		{"of another user", func(t *testing.T, p string) {
			if err := os.Chown(p, 12345, -1); err != nil {
				t.Skip(err) // only root can give a file away
			}
		}, ErrStateAccessibleToOtherUsers, "chown"},
		{"limit edited", func(t *testing.T, p string) {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			write(t, p, bytes.ReplaceAll(b, []byte(`"used":1`), []byte(`"used":0`)))
		}, ErrCorrupt, RepairCommand},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			o := newWorld().options(true)
			o.EvidenceOfEarlierStateFile = func() (string, error) { return "the audit log has entries", nil }
			first := o
			first.EvidenceOfEarlierStateFile = nil
			s := openStore(t, dir, first)
			if used, err := s.ChargeEvaluation(t.Context(), 5); used != 1 || err != nil {
				t.Fatal(used, err)
			}
			s.Close()
			tt.damage(t, filepath.Join(dir, stateFileName))
			s = openStore(t, dir, o)
			for range 2 { // a failed transaction must not block the next
				_, err := s.ChargeEvaluation(t.Context(), 5)
				if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.advice) {
					t.Fatalf("error %v, want %v naming %q", err, tt.kind, tt.advice)
				}
				plain(t, err)
			}
			if _, err := openStore(t, dir, o).ChargeEvaluation(t.Context(), 5); !errors.Is(err, tt.kind) {
				t.Errorf("another process: %v", err) // such as that the file is locked
			}
			if err := s.TakeRateToken(t.Context(), 5); !errors.Is(err, tt.kind) {
				t.Errorf("rate: %v", err)
			}
			if err := s.ChargeApprovalRequest(t.Context(), 5); !errors.Is(err, tt.kind) {
				t.Errorf("approval: %v", err)
			}
			if _, ok, err := s.Get(t.Context(), "b"); ok || !errors.Is(err, tt.kind) {
				t.Errorf("cache: %v", err)
			}
		})
	}
}

// plain demands an error that a person can read.
func plain(t *testing.T, err error) {
	t.Helper()
	for _, word := range []string{"nil pointer", "runtime error", "panic", "goroutine", "deadline exceeded", "0x"} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%q says %q", err, word)
		}
	}
}

// However much of the file is left, the error says that it is damaged.
func TestCutShort(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	s.Close()
	whole, err := os.ReadFile(filepath.Join(dir, stateFileName))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 1024 {
		dir := t.TempDir()
		write(t, filepath.Join(dir, stateFileName), whole[:n])
		s := openStore(t, dir, newWorld().options(true))
		if _, err := s.ChargeEvaluation(t.Context(), 5); err != nil { // the last pages may be free ones
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d bytes: %v", n, err)
			}
			plain(t, err)
		}
		if _, _, err := s.AuditHead(t.Context()); err != nil {
			plain(t, err)
		}
	}
}

// Whichever lock another process keeps, no transaction waits for it without
// end, and the error says which it is.
func TestHeldLocks(t *testing.T) {
	for _, name := range []string{stateLockFileName, stateFileName} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := newWorld().options(true)
			s := openStore(t, dir, o)
			if _, err := s.ChargeEvaluation(t.Context(), 9); err != nil {
				t.Fatal(err)
			}
			o.MaxFileLockWait = time.Millisecond
			s = openStore(t, dir, o)
			other, err := flock.New(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if err := other.Lock(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ErrStateFileLocked) || !strings.Contains(fmt.Sprint(err), filepath.Join(dir, name)) {
					t.Fatalf("%s: %v", what, err)
				}
				plain(t, err)
			}
			for range 2 {
				_, _, err := s.ChargeRateTokenAndEvaluation(t.Context(), 9, 9)
				refused("admit", err)
			}
			_, _, err = s.Get(t.Context(), "a")
			refused("get", err)
			_, err = s.Status(t.Context(), EvaluationAndApprovalLimits{})
			refused("status", err)
			refused("approval", s.ChargeApprovalRequest(t.Context(), 9))
			_, err = RepairIfDamaged(t.Context(), dir, o, 0, "")
			refused("repair", err)
			if err := other.Unlock(); err != nil {
				t.Fatal(err)
			}
			o.MaxFileLockWait = time.Minute
			if used, err := openStore(t, dir, o).ChargeEvaluation(t.Context(), 9); used != 2 || err != nil {
				t.Errorf("afterwards: used %d, %v", used, err)
			}
		})
	}
}

// In a folder where nothing can be written, not even a lock, the state can be
// looked at, and nothing can be taken.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	o := newWorld().options(true)
	s := openStore(t, dir, o)
	if _, err := s.ChargeEvaluation(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	s.Close()
	lock := filepath.Join(dir, stateLockFileName)
	remove(t, lock)
	mkdir(t, lock) // even root cannot open this one
	before, err := os.ReadFile(filepath.Join(dir, stateFileName))
	if err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, o)
	st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 9})
	if err != nil || st.EvaluationsUsed != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, _, err := s.AuditHead(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.ChargeEvaluation(t.Context(), 9); !errors.Is(err, ErrUnwritable) {
		t.Errorf("charge: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, stateFileName))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, n int64) {
	t.Helper()
	if err := os.Truncate(path, n); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestExposedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	mkdir(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, newWorld().options(false)); !errors.Is(err, ErrStateAccessibleToOtherUsers) {
		t.Errorf("error %v, want %v", err, ErrStateAccessibleToOtherUsers)
	}
	if _, err := Open(filepath.Join(dir, "x\x00y"), newWorld().options(false)); !errors.Is(err, ErrUnwritable) {
		t.Errorf("error %v, want %v", err, ErrUnwritable)
	}
}

// A file that is removed while the process runs is no fresh start, with or
// without an audit log.
func TestVanishedWhileRunning(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	remove(t, filepath.Join(dir, stateFileName))
	if _, err := s.ChargeEvaluation(t.Context(), 1); !errors.Is(err, ErrStateFileMissing) {
		t.Errorf("error %v, want %v", err, ErrStateFileMissing)
	}
}

// Whether the log has entries may be unknowable; that is no fresh start either.
func TestUnreadableLog(t *testing.T) {
	o := newWorld().options(true)
	o.EvidenceOfEarlierStateFile = func() (string, error) { return "", os.ErrPermission }
	s := openStore(t, t.TempDir(), o)
	if _, err := s.ChargeEvaluation(t.Context(), 1); !errors.Is(err, ErrStateFileMissing) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// A process killed while it created the file leaves nothing that hinders.
func TestLeftoverOfCreation(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, stateFileName+".new"), []byte("half a file"))
	s := openStore(t, dir, newWorld().options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, newWorld().options(true))
	if _, err := s.ChargeEvaluation(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	other, err := flock.New(filepath.Join(dir, stateLockFileName))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Lock(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.ChargeEvaluation(ctx, 9)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want %v", err, context.Canceled)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	if used, err := s.ChargeEvaluation(t.Context(), 9); used != 2 || err != nil {
		t.Errorf("used %d, %v: a charge that was given up was charged", used, err)
	}
	if _, err := s.ChargeEvaluation(ctx, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v with a context that had ended", err)
	}
}

func TestGoroutinesShareBudget(t *testing.T) {
	s := openStore(t, t.TempDir(), newWorld().options(true))
	var wg sync.WaitGroup
	var granted, refused atomic.Int32
	for range 16 {
		wg.Go(func() {
			for range 25 {
				switch _, err := s.ChargeEvaluation(context.Background(), 100); {
				case err == nil:
					granted.Add(1)
				case errors.Is(err, ErrBudgetExhausted):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != 100 || refused.Load() != 300 {
		t.Errorf("granted %d, refused %d", granted.Load(), refused.Load())
	}
}

func FuzzDamage(f *testing.F) {
	f.Add(uint32(0), byte(1), uint32(4096))
	f.Add(uint32(8200), byte(0xff), uint32(20000))
	f.Add(uint32(12300), byte(0x80), uint32(40000))
	f.Fuzz(func(t *testing.T, at uint32, flip byte, size uint32) {
		dir := t.TempDir()
		s := openStore(t, dir, newWorld().options(true))
		for i := range 3 {
			if err := s.Put(t.Context(), fmt.Sprint(i), make([]byte, 900), noon.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, stateFileName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[int(at)%len(b)] ^= flip
		write(t, path, b[:min(len(b), int(size))])
		used, err := s.ChargeEvaluation(t.Context(), 1)
		if err == nil && used != 1 {
			t.Errorf("used %d", used)
		}
		if _, err := s.ChargeEvaluation(t.Context(), 1); err == nil {
			t.Error("charged twice")
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	s := openStore(b, b.TempDir(), newWorld().options(true))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.ChargeEvaluation(b.Context(), exhaustedEvaluationCount); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetMiss(b *testing.B) {
	s := openStore(b, b.TempDir(), newWorld().options(true))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Get(b.Context(), "x"); err != nil {
			b.Fatal(err)
		}
	}
}

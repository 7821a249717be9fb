//go:build unix

package state

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/redistest"
)

// limitsOf returns hash and field of the record.
func limitsOf() (hash, field string) {
	seals := newSealer(fleetKey)
	return seals.hashName(limitsBucket), seals.fieldName(limitsBucket, limitRecordKey)
}

// Emptying the store, or setting it back, gives no one anything.
func TestRemoteReset(t *testing.T) {
	hash, field := limitsOf()
	for name, reset := range map[string]func(t *testing.T, server *redistest.Server, before string){
		"emptied": func(t *testing.T, server *redistest.Server, _ string) { server.Do("FLUSHALL") },
		"rolled back": func(t *testing.T, server *redistest.Server, was string) {
			server.Do("HSET", hash, field, was)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			ctx, w := t.Context(), newWorld()
			dirs := []string{t.TempDir(), t.TempDir()}
			one, two := shared(t, server, dirs[0], w), shared(t, server, dirs[1], w)
			if _, err := one.ChargeEvaluation(ctx, 9); err != nil {
				t.Fatal(err)
			}
			was := server.ReadHashFields(hash)[field]
			for _, s := range []*Store{one, two} {
				if _, err := s.ChargeEvaluation(ctx, 9); err != nil {
					t.Fatal(err)
				}
			}
			if err := one.Put(ctx, "approved", []byte("yes"), w.wall.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			reset(t, server, was)
			for _, s := range []*Store{one, two, shared(t, server, dirs[0], w)} {
				_, err := s.ChargeEvaluation(ctx, 9)
				_, serr := s.Status(ctx, EvaluationAndApprovalLimits{})
				_, ok, gerr := s.Get(ctx, "approved")
				if !errors.Is(err, ErrStoreReset) || !errors.Is(serr, ErrStoreReset) || !errors.Is(gerr, ErrStoreReset) || ok {
					t.Errorf("charge: %v; status: %v; get: %v", err, serr, gerr)
				}
				if err != nil && !strings.Contains(err.Error(), RepairCommand) {
					t.Errorf("no way out in %q", err)
				}
			}
			opts := w.options(true)
			opts.Remote = &SharedStoreServer{URL: server.URL, EncryptionMasterKey: fleetKey}
			if done, err := RepairIfDamaged(ctx, dirs[1], opts, 0, ""); !done || err != nil {
				t.Fatalf("repair: %v %v", done, err)
			}
			if done, err := RepairIfDamaged(ctx, dirs[1], opts, 0, ""); done || err != nil {
				t.Errorf("repair of what is whole: %v %v", done, err)
			}
			for _, s := range []*Store{one, two} { // one repair is enough
				_, err := s.ChargeEvaluation(ctx, 1000)
				_, ok, gerr := s.Get(ctx, "approved")
				if !errors.Is(err, ErrBudgetExhausted) || ok || gerr != nil {
					t.Errorf("after the repair: %v, %v %v", err, ok, gerr)
				}
				if err := s.TakeRateToken(ctx, 10); !errors.Is(err, ErrEvaluatorRateExceeded) {
					t.Errorf("rate after the repair: %v", err)
				}
			}
		})
	}
}

// A store that a new machine has begun again is noticed by the others, which take
// it as it is when they are told to.
func TestRemoteBegunAgain(t *testing.T) {
	server := redistest.Start(t)
	ctx, w := t.Context(), newWorld()
	dir := t.TempDir()
	old := shared(t, server, dir, w)
	if _, err := old.ChargeEvaluation(ctx, 9); err != nil {
		t.Fatal(err)
	}
	server.Do("FLUSHALL")
	fresh := shared(t, server, t.TempDir(), w)
	if _, err := fresh.ChargeEvaluation(ctx, 9); err != nil {
		t.Fatal(err)
	}
	if _, err := old.ChargeEvaluation(ctx, 9); !errors.Is(err, ErrStoreReset) {
		t.Fatalf("error %v", err)
	}
	opts := w.options(true)
	opts.Remote = &SharedStoreServer{URL: server.URL, EncryptionMasterKey: fleetKey}
	if done, err := RepairIfDamaged(ctx, dir, opts, 0, ""); !done || err != nil {
		t.Fatal(done, err)
	}
	for i, s := range []*Store{old, fresh} {
		if used, err := s.ChargeEvaluation(ctx, 9); used != 2+i || err != nil {
			t.Errorf("used %d, %v", used, err)
		}
	}
}

// The server's operator cannot change what is kept, nor move it.
func TestRemoteForged(t *testing.T) {
	hash, field := limitsOf()
	seals := newSealer(fleetKey)
	cache := seals.hashName(cacheBucket)
	for name, forge := range map[string]func(t *testing.T, c *redistest.Server){
		"a made-up record": func(t *testing.T, c *redistest.Server) { c.Do("HSET", hash, field, "0000") },
		"a changed bit": func(t *testing.T, c *redistest.Server) {
			b := []byte(c.ReadHashFields(hash)[field])
			b[len(b)/2] ^= 1
			c.Do("HSET", hash, field, string(b))
		},
		"a value in another's place": func(t *testing.T, c *redistest.Server) {
			all := c.ReadHashFields(cache)
			for field := range all {
				for other, value := range all {
					if other != field {
						c.Do("HSET", cache, field, value)
					}
				}
			}
		},
		"another type": func(t *testing.T, c *redistest.Server) {
			c.Do("DEL", cache)
			c.Do("SET", cache, "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			ctx, w := t.Context(), newWorld()
			s := shared(t, server, t.TempDir(), w)
			for _, binding := range []string{"a", "b"} {
				if err := s.Put(ctx, binding, []byte(binding), w.wall.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			forge(t, server)
			got, ok, err := s.GetAndRemove(ctx, "a")
			if ok || got != nil || !errors.Is(err, ErrSharedStoreValueAltered) && !errors.Is(err, ErrSharedStoreRefusedCommand) {
				t.Errorf("got %q %v %v", got, ok, err)
			}
		})
	}
}

// A store that is away is an error at once, for a while, and then asked again.
func TestRemoteAway(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld()
	s := shared(t, server, t.TempDir(), w)
	charge := func(want error) {
		t.Helper()
		if _, err := s.ChargeEvaluation(t.Context(), 100); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	charge(nil)
	for name, step := range map[string]struct{ away, back func() }{
		"killed": {server.Kill, server.Restart},
		"paused": {server.Pause, server.Resume},
	} {
		step.away()
		charge(ErrSharedStoreUnreachable)
		if _, ok := s.NamespaceRevisionID("s"); ok {
			t.Errorf("%s: a stamp", name)
		}
		step.back()
		charge(ErrSharedStoreUnreachable)
		w.pass(2 * remoteBackoffAfterTimeout)
		charge(nil)
	}
}

func TestRemoteRefuses(t *testing.T) {
	t.Run("replica", func(t *testing.T) {
		server, w := redistest.Start(t), newWorld()
		s := shared(t, server, t.TempDir(), w)
		if _, err := s.ChargeEvaluation(t.Context(), 9); err != nil {
			t.Fatal(err)
		}
		server.Do("REPLICAOF", "127.0.0.1", "1")
		if _, err := s.ChargeEvaluation(t.Context(), 9); !errors.Is(err, ErrSharedStoreRefusedCommand) {
			t.Errorf("charge: %v", err)
		}
		if st, err := s.Status(t.Context(), EvaluationAndApprovalLimits{MaxEvaluationsPerDay: 9}); st.EvaluationsUsed != 1 || err != nil {
			t.Errorf("status: %d, %v", st.EvaluationsUsed, err)
		}
	})
	t.Run("full", func(t *testing.T) {
		server := redistest.Start(t, "--maxmemory", "1")
		if _, err := shared(t, server, t.TempDir(), newWorld()).ChargeEvaluation(t.Context(), 9); !errors.Is(err, ErrSharedStoreRefusedCommand) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("password", func(t *testing.T) {
		server := redistest.Start(t)
		server.Do("CONFIG", "SET", "requirepass", "right password")
		for _, password := range []string{"", "wrong password", "right password"} {
			o := newWorld().options(true)
			o.Remote = &SharedStoreServer{URL: server.URL, EncryptionMasterKey: fleetKey, Password: password}
			_, err := openStore(t, t.TempDir(), o).ChargeEvaluation(t.Context(), 9)
			if (password == "right password") != (err == nil) || err != nil && (!errors.Is(err, ErrSharedStoreRefusedCommand) || strings.Contains(err.Error(), "wrong password")) {
				t.Errorf("%q: %v", password, err)
			}
		}
	})
}

// An answer that claims to be longer than memory is an error like any other.
func TestRemoteHostile(t *testing.T) {
	for _, answer := range []string{"$9223372036854775000\r\n", "$-7\r\n", "*99999999999\r\n", "$99999999999\r\n", strings.Repeat("*1\r\n", 1<<20), "*2000000\r\n", "+" + strings.Repeat("x", 1<<20), "\x00\xff", ""} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 100))
				_, _ = c.Write([]byte(answer))
				c.Close()
			}
		}()
		o := newWorld().options(true)
		o.Remote = &SharedStoreServer{URL: "redis://" + l.Addr().String(), EncryptionMasterKey: fleetKey}
		if _, err := openStore(t, t.TempDir(), o).ChargeEvaluation(t.Context(), 9); !errors.Is(err, ErrSharedStoreUnreachable) && !errors.Is(err, ErrSharedStoreRefusedCommand) {
			t.Errorf("%.20q: %v", answer, err)
		}
	}
}

// A server that was restarted has closed the connections that clients keep; the next
// transaction takes a new one.
func TestRemoteRestarted(t *testing.T) {
	server := redistest.Start(t)
	s := shared(t, server, t.TempDir(), newWorld())
	for i := range 3 {
		if _, _, err := s.ChargeRateTokenAndEvaluation(t.Context(), 100, 3); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		server.Restart()
	}
	if _, _, err := s.ChargeRateTokenAndEvaluation(t.Context(), 100, 3); !errors.Is(err, ErrBudgetExhausted) {
		t.Errorf("got %v", err)
	}
}

//go:build linux || darwin

package service

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/pkg/verdict"
)

// folder returns a folder whose path is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "shield")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "service")
}

// started returns the folder of a service that answers, and what ends it.
func started(t *testing.T, answer Handler) (dir string, end func()) {
	t.Helper()
	dir = folder(t)
	s, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, answer) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return dir, end
}

// ask puts a question, and has all the time of the test.
func ask(dir string, q peer.Question) (peer.Answer, error) {
	line, err := peer.Dial(dir)
	if err != nil {
		return peer.Answer{}, err
	}
	return line.Ask(&q, time.Hour)
}

func echo(_ context.Context, q *peer.Question, from CallingProcess) peer.Answer {
	return peer.Answer{ServiceDecided: from.PID == os.Getpid(), CommandStdout: q.AskingProcessStdin}
}

// TestAsk holds that each process gets the answer to its own question.
func TestAsk(t *testing.T) {
	t.Parallel()
	dir, _ := started(t, echo)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			want := string(make([]byte, i%5*20_000)) + string(rune('a'+i))
			got, err := ask(dir, peer.Question{AskingProcessStdin: []byte(want)})
			if err != nil || !got.ServiceDecided || string(got.CommandStdout) != want {
				t.Errorf("question %d: %t, %d bytes: %v", i, got.ServiceDecided, len(got.CommandStdout), err)
			}
		})
	}
	all.Wait()
}

// TestImpostor holds that another process in the socket's place, which has not the
// key, can neither read a question as its own nor answer it.
func TestImpostor(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if _, err := verdict.LoadKey(dir); err != nil { // of the service that was here
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, peer.SocketFileName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	guess := [peer.KeySize]byte{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked, _, err := peer.ReadQuestion(c, &guess, func() {})
			if !errors.Is(err, peer.ErrWrongMAC) || asked != nil {
				t.Errorf("the question was read without the key: %v", err)
			}
			made, _, err := peer.NewQuestion(&guess, &peer.Question{})
			if err != nil {
				t.Error(err)
			}
			_, _ = c.Write(made.EncodeAnswer(peer.Answer{ServiceDecided: true, CommandStdout: []byte("{}")}))
			_ = c.Close()
		}
	}()
	if got, err := ask(dir, peer.Question{AskingProcessStdin: []byte("x")}); !errors.Is(err, peer.ErrWrongMAC) {
		t.Errorf("an impostor's answer counts: %+v, %v", got, err)
	}
}

// TestOpenKey holds that a key which others can read, or could have put there, is not
// used.
func TestOpenKey(t *testing.T) {
	t.Parallel()
	dir, _ := started(t, echo)
	key := filepath.Join(dir, peer.SealKeyFileName)
	for name, harm := range map[string]func() error{
		"readable":         func() error { return os.Chmod(key, 0o644) },
		"in an open place": func() error { return os.Chmod(dir, 0o777) },
		"behind a link": func() error {
			return errors.Join(os.Rename(key, key+"2"), os.Symlink(key+"2", key))
		},
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(dir, peer.Question{}); err == nil {
			t.Errorf("a key is used that is %s", name)
		}
		_ = os.Remove(key)
		_ = os.Rename(key+"2", key)
		if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(key, make([]byte, peer.KeySize), 0o600), os.Chmod(key, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneService holds that a second service does not take the place of one that
// runs, and takes that of one that has died.
func TestOneService(t *testing.T) {
	t.Parallel()
	dir, end := started(t, echo)
	if _, err := Listen(dir, nil); !errors.Is(err, ErrRunning) {
		t.Errorf("a second service: %v", err)
	}
	end()
	if err := os.WriteFile(filepath.Join(dir, peer.SocketFileName), nil, 0o600); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	s, err := Listen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Serve(ctx, echo); err != nil {
		t.Error(err)
	}
}

// TestEnd holds that a service which is ended answers what it was asked before.
func TestEnd(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}), make(chan struct{})
	dir, end := started(t, func(ctx context.Context, q *peer.Question, from CallingProcess) peer.Answer {
		close(asked)
		<-goOn
		if ctx.Err() != nil {
			t.Error("the question is cut off")
		}
		return echo(ctx, q, from)
	})
	got := make(chan error, 1)
	go func() {
		ans, err := ask(dir, peer.Question{AskingProcessStdin: []byte("x")})
		if err == nil && string(ans.CommandStdout) != "x" {
			err = errors.New("another answer")
		}
		got <- err
	}()
	<-asked
	ended := make(chan struct{})
	go func() { end(); close(ended) }()
	for { // until it listens no more
		if line, err := net.Dial("unix", filepath.Join(dir, peer.SocketFileName)); err != nil {
			break
		} else {
			_ = line.Close()
		}
	}
	close(goOn)
	if err := <-got; err != nil {
		t.Error(err)
	}
	<-ended
}

// TestHalfOpen holds that lines on which nothing comes, or a part of a question, keep
// no other user from being answered, and that those beyond the bound are closed.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	dir, _ := started(t, echo)
	path := filepath.Join(dir, peer.SocketFileName)
	for i := range 100 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 {
			_, _ = c.Write([]byte("shd1"))
		}
	}
	if got, err := ask(dir, peer.Question{AskingProcessStdin: []byte("x")}); err != nil || string(got.CommandStdout) != "x" {
		t.Errorf("beside half-open lines: %q, %v", got.CommandStdout, err)
	}
}

// TestNoAnswer holds that a service which hangs is given up.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	dir, _ := started(t, func(context.Context, *peer.Question, CallingProcess) peer.Answer { <-hang; return peer.Answer{} })
	t.Cleanup(func() { close(hang) }) // before the service is ended
	line, err := peer.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := line.Ask(&peer.Question{}, time.Millisecond); err == nil {
		t.Errorf("an answer came: %+v", got)
	}
}

// TestGivenSocket holds that a service answers at the socket which the system listens
// at for it, and leaves it there, and takes no other.
func TestGivenSocket(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	given := func(path string) *os.File {
		t.Helper()
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		defer l.Close()
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if _, err := Listen(dir, given(filepath.Join(dir, "other"))); err == nil {
		t.Error("another socket is taken")
	}
	s, err := Listen(dir, given(filepath.Join(dir, peer.SocketFileName)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, echo) }()
	if got, err := ask(dir, peer.Question{AskingProcessStdin: []byte("x")}); err != nil || string(got.CommandStdout) != "x" {
		t.Errorf("%q, %v", got.CommandStdout, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, peer.SocketFileName)); err != nil {
		t.Error(err)
	}
}

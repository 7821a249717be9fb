// Package service is the service that judges actions for the user's other processes. It is the server
// side of the protocol in package peer, and identifies the process that asks.
package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Limits of the service's resources.
const (
	maxClientProcesses    = 256             // processes served concurrently; further ones judge by themselves
	maxQuestionsOver64KiB = 4               // concurrent questions larger than 64 KiB
	maxReadAndAnswerTime  = 5 * time.Second // from the first byte of a question to the last byte of its answer
)

// ErrRunning is the error if another service listens in the folder.
var ErrRunning = errors.New("a service of this user is already running; stop it first")

// A CallingProcess is the process that sent a question.
type CallingProcess struct{ PID int }

// A Handler answers a question. It is called concurrently.
type Handler func(ctx context.Context, q *peer.Question, from CallingProcess) peer.Answer

// A Socket is the Unix socket on which the service receives questions from the user's processes,
// such as hooks.
type Socket struct {
	listener      *net.UnixListener
	lock          *flock.Lock
	messageMACKey [peer.KeySize]byte
}

// Listen opens the socket in a folder, see [peer.ServiceFolder]. It creates the folder and the key, and
// replaces a stale socket. If given is not nil, it is an already listening socket (from systemd),
// which Listen closes after copying it.
func Listen(folder string, given *os.File) (*Socket, error) {
	if !peer.SupportsServiceConnections {
		return nil, fmt.Errorf("shield serve needs a Unix socket that identifies the calling process: %w on this system; use shield run", errors.ErrUnsupported)
	}
	key, err := verdict.LoadKey(folder)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, peer.SocketFileName)
	if len(path) >= maxSocketPathBytes {
		return nil, fmt.Errorf("the socket path %s is longer than %d bytes; set XDG_STATE_HOME to a shorter folder", path, maxSocketPathBytes-1)
	}
	lock, err := flock.New(filepath.Join(folder, "lock"))
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Socket, error) {
		_ = lock.Close()
		return nil, err
	}
	if taken, err := lock.TryLock(); err != nil || !taken {
		if err == nil {
			err = ErrRunning
		}
		return fail(err)
	}
	if given != nil {
		line, err := listenerFromFile(given, path)
		if err != nil {
			return fail(err)
		}
		return &Socket{line, lock, key}, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	line, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = line.Close()
		return fail(err)
	}
	return &Socket{line, lock, key}, nil
}

// listenerFromFile returns a listener for an open socket that is bound to path.
func listenerFromFile(f *os.File, path string) (*net.UnixListener, error) {
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	line, ok := l.(*net.UnixListener)
	if !ok || line.Addr().String() != path {
		_ = l.Close()
		return nil, fmt.Errorf("the environment variable %s is %s, and the service uses %s; restart the service", f.Name(), l.Addr(), path)
	}
	return line, nil
}

// Serve answers questions until ctx ends, and then finishes those that were partly read.
func (s *Socket) Serve(ctx context.Context, answer Handler) error {
	defer s.lock.Close()
	defer context.AfterFunc(ctx, func() { _ = s.listener.Close() })()
	lines, large := make(chan struct{}, maxClientProcesses), make(chan struct{}, maxQuestionsOver64KiB)
	var begun sync.WaitGroup
	defer begun.Wait()
	for {
		c, err := s.listener.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listen on the service socket: %w", err)
		}
		select {
		case lines <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		begun.Go(func() {
			defer func() { <-lines }()
			s.answerQuestion(context.WithoutCancel(ctx), c, large, answer)
		})
	}
}

// answerQuestion answers one question. A process of another user, or in other namespaces, gets no answer.
func (s *Socket) answerQuestion(ctx context.Context, c *net.UnixConn, largeQuestionSlots chan struct{}, answer Handler) {
	defer c.Close()
	late := time.AfterFunc(maxReadAndAnswerTime, func() { _ = c.Close() })
	defer late.Stop()
	from, err := callingProcess(c)
	if err != nil {
		return
	}
	taken := false
	defer func() {
		if taken {
			<-largeQuestionSlots
		}
	}()
	asked, q, err := peer.ReadQuestion(c, &s.messageMACKey, func() { largeQuestionSlots <- struct{}{}; taken = true })
	if err != nil {
		return
	}
	_, _ = c.Write(asked.EncodeAnswer(answer(ctx, q, from))) // ignore the error: a process that does not receive the answer judges its action itself
}

// callingProcess returns the process at the other end of a connection.
func callingProcess(c *net.UnixConn) (from CallingProcess, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return from, err
	}
	uid := -1
	controlled := raw.Control(func(fd uintptr) {
		if uid, err = peer.UIDBySocketFD(int(fd)); err == nil {
			from.PID, err = peer.PIDBySocketFD(int(fd))
		}
	})
	if err := errors.Join(controlled, err); err != nil {
		return from, err
	}
	if uid != os.Geteuid() {
		return from, errors.New("the calling process belongs to another user; start a service of your own with 'shield serve'")
	}
	return from, checkProcessSharesServiceNamespaces(from.PID)
}

// Package redistest starts real Redis or Valkey servers for tests, which can stop,
// kill and pause them.
package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Server is a server of one test. It listens on a socket alone.
type Server struct {
	URL    string        // unix://…
	Client *redis.Client // with all rights

	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
}

// Start starts a server, with arguments of its own, that syncs each write; the
// test is skipped where none is installed.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	s := &Server{URL: "unix://" + socket, t: t, dir: dir, args: append([]string{
		"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
	}, args...)}
	s.Client = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() {
		s.Client.Close()
		s.Kill()
		os.RemoveAll(dir)
	})
	s.Restart()
	return s
}

// Program returns the path of the server's program, "" if none is installed.
func Program() string {
	for _, name := range [...]string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// Restart starts the server on what it left, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	program := Program()
	if program == "" {
		s.t.Skip("neither redis-server nor valkey-server is installed")
	}
	s.cmd = exec.Command(program, s.args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 500 {
		if s.Client.Ping(s.t.Context()).Err() == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("the server does not answer")
}

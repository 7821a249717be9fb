// Package redistest starts real Redis or Valkey servers for tests. A test can stop, kill and pause
// its server.
package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/resp"
)

// A Server is a Redis or Valkey server that one test uses. It listens only on a Unix socket.
type Server struct {
	URL string // unix://…

	t      testing.TB
	client *resp.Client // with all rights
	dir    string
	args   []string
	cmd    *exec.Cmd
}

// Start starts a server that syncs each write to disk, with args added to its command line. It
// skips the test if no Redis or Valkey server is installed.
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
	s.client = resp.NewClient(resp.Options{Network: "unix", Address: socket, ConnectOrReplyTimeout: 10 * time.Second, Clock: time.Now})
	t.Cleanup(func() {
		s.client.Close()
		s.Kill()
		os.RemoveAll(dir)
	})
	s.Restart()
	return s
}

// Do sends a command and returns what is answered.
func (s *Server) Do(words ...string) any {
	s.t.Helper()
	got, err := s.client.Do(s.t.Context(), words)
	if err != nil {
		s.t.Fatal(err)
	}
	return got[0]
}

// ReadHashFields returns what is kept under a key.
func (s *Server) ReadHashFields(key string) map[string]string {
	s.t.Helper()
	all, _ := s.Do("HGETALL", key).([]any)
	hash := map[string]string{}
	for i := 0; i+1 < len(all); i += 2 {
		hash[all[i].(string)] = all[i+1].(string)
	}
	return hash
}

// ServerProgramPath returns the path of the server's program, "" if none is installed.
func ServerProgramPath() string {
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

// Restart starts the server with the data that it stored before, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	program := ServerProgramPath()
	if program == "" {
		s.t.Skip("neither redis-server nor valkey-server is installed")
	}
	s.cmd = exec.Command(program, s.args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 500 {
		if got, err := s.client.Do(s.t.Context(), []string{"PING"}); err == nil && got[0] == "PONG" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("the server does not answer")
}

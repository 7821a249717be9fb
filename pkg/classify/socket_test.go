package classify

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// socketServer serves on a socket in a folder of its own and returns its path.
func socketServer(t *testing.T, h http.Handler) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("who owns a socket is not visible here")
	}
	dir, err := os.MkdirTemp("", "s") // t.TempDir is too long for a socket's name on some systems
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "c.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return path
}

func TestSidecarSocket(t *testing.T) {
	t.Parallel()
	path := socketServer(t, healthy(says(`{"label":"INJECTION","confidence":0.9}`)))
	for _, addr := range []string{path, "unix:" + path, "unix://" + path} {
		s, err := NewSidecarClient(addr, SidecarOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Score(t.Context(), "x"); err != nil || !got.HasInjectionLabel {
			t.Errorf("%s: %v, error %v", addr, got, err)
		}
	}
}

// TestSidecarSocketOfOthers holds that a socket that another person may have put
// there is not spoken to.
func TestSidecarSocketOfOthers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string) string{
		"others may connect": func(t *testing.T, path string) string { return chmod(t, path, 0o606, path) },
		"group may connect":  func(t *testing.T, path string) string { return chmod(t, path, 0o660, path) },
		"others may replace it": func(t *testing.T, path string) string {
			return chmod(t, filepath.Dir(path), 0o777, path)
		},
		"in a shared folder": func(t *testing.T, path string) string {
			return chmod(t, filepath.Dir(path), 0o777|os.ModeSticky, path)
		},
		"of another user": func(t *testing.T, path string) string {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			if err := os.Lchown(path, 12345, -1); err != nil {
				t.Fatal(err)
			}
			return path
		},
		"a link to it": func(t *testing.T, path string) string {
			link := path + "2"
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			return link
		},
		"a file": func(t *testing.T, path string) string {
			file := path + "3"
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		},
		"nothing": func(_ *testing.T, path string) string { return path + "4" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := false
			addr := spoil(t, socketServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })))
			s, err := NewSidecarClient(addr, SidecarOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Score(t.Context(), "x"); err == nil || asked {
				t.Errorf("%v, asked %v, want an error without asking", got, asked)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode, then string) string {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return then
}

// TestSidecarSocketIsLookedAtAgain holds that a socket that was good at first
// is not trusted for good.
func TestSidecarSocketIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	path := socketServer(t, healthy(says(`{"label":"SAFE","confidence":1}`)))
	s, err := NewSidecarClient(path, SidecarOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Score(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o666, "")
	s.client.CloseIdleConnections()
	if got, err := s.Score(t.Context(), "x"); err == nil {
		t.Errorf("%v, want an error", got)
	}
}

func TestSocketPeer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who listens is asked on Linux only")
	}
	path := socketServer(t, healthy(says("")))
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := checkListenerUID(conn.(*net.UnixConn), os.Geteuid()); err != nil {
		t.Errorf("this user: %v", err)
	}
	if err := checkListenerUID(conn.(*net.UnixConn), os.Geteuid()+1); (err == nil) != (os.Geteuid() == 0) {
		t.Errorf("another user: %v", err)
	}
}

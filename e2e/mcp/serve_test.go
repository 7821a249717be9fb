package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveHTTP has shield serve servers, with some settings of mcp, and returns their
// addresses by their names, and a function that returns another command of the
// same user.
func serveHTTP(t testing.TB, settings, servers string) (urls map[string]string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "shield.yaml")
	text := "policy: permissive\nsession: {max_denials: 1000}\nmcp:\n  listen: 127.0.0.1:0\n" + settings + "  servers:\n" + servers
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command = func(args ...string) *exec.Cmd {
		c := shield(t)
		c.Args = append(append(c.Args, "mcp"), args...)
		c.Env = append(c.Env, "HOME="+home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "SHIELD_CONFIG="+file)
		c.Dir = home
		return c
	}
	c := command("serve")
	c.Stderr = nil
	_, errs := piped(t, c, c.StderrPipe)
	urls = map[string]string{}
	in := bufio.NewScanner(errs)
	for len(urls) < strings.Count(servers, "name:") && in.Scan() {
		if _, url, ok := strings.Cut(in.Text(), " is at http"); ok {
			urls[url[strings.LastIndexByte(url, '/')+1:]] = "http" + url
		} else {
			t.Log(in.Text())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, errs) }()
	return urls, command
}

// connectHTTP connects an SDK client to a server that shield serves.
func connectHTTP(t *testing.T, dir string, server ...string) *mcp.ClientSession {
	t.Helper()
	// The folder is the workspace: elsewhere the model decides, by the name of the folder among others.
	urls, _ := serveHTTP(t, "", fmt.Sprintf("    - {name: s, command: [%s]}\nroots: [%s]\n", strings.Join(server, ", "), dir))
	s, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: urls["s"]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestServe goes through what a client does over HTTP, in each version of the
// protocol, before a server on standard input and output and before those over
// HTTP, with sessions and without.
func TestServe(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	servers := fmt.Sprintf("    - name: local\n      command: [env, SHIELD_TEST_CHILD=server, %q, mcp-server-filesystem, .]\n", self)
	for name, stateless := range map[string]bool{"remote": false, "stateless": true} {
		s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer() }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		t.Cleanup(s.Close)
		servers += fmt.Sprintf("    - name: %s\n      url: %s\n", name, s.URL)
	}
	urls, _ := serveHTTP(t, "", servers)
	for name, url := range urls {
		for _, version := range mcp.SupportedProtocolVersions() {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				s, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).
					Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				tools, err := s.ListTools(t.Context(), nil)
				if err != nil || len(tools.Tools) != 2 {
					t.Fatalf("%v, %v", tools, err)
				}
				r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "abc"}})
				if err != nil || r.IsError || r.StructuredContent.(map[string]any)["size"] != 3.0 {
					t.Errorf("an allowed call: %+v, %v", r, err)
				}
				r, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "~/.ssh/id_rsa"}})
				if err != nil || !r.IsError || !strings.Contains(said(r), "blocked by shield") {
					t.Errorf("a blocked call: %q, %v", said(r), err)
				}
				res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "memo://a"})
				if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != "hello" {
					t.Errorf("a resource: %+v, %v", res, err)
				}
				if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///etc/shadow"}); err == nil || !strings.Contains(err.Error(), "blocked by shield") {
					t.Errorf("a protected resource: %v", err)
				}
			})
		}
	}
}

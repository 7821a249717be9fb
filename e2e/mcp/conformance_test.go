package mcp

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestConformance runs the protocol's own conformance suite against the server of
// the official Go SDK that is made for it, once directly and once through shield,
// and holds that both give the same, for the last version of the protocol with
// sessions and for the one without. SHIELD_MCP names a folder with the npm packages
// @modelcontextprotocol/conformance and node.
func TestConformance(t *testing.T) {
	modules := filepath.Join(os.Getenv("SHIELD_MCP"), "node_modules")
	suite := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	node := filepath.Join(modules, "node", "bin", "node")
	for _, file := range []string{suite, node} {
		if _, err := os.Stat(file); os.Getenv("SHIELD_MCP") == "" || err != nil {
			t.Skip("SHIELD_MCP names no folder with the suite; see the comment of this test")
		}
	}
	server := filepath.Join(t.TempDir(), "everything-server")
	if out, err := exec.Command("go", "build", "-o", server, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for version, stateless := range map[string]bool{"2025-11-25": false, "2026-07-28": true} {
		t.Run(version, func(t *testing.T) {
			at := freeAddress(t)
			start(t, exec.Command(server, "-http", at, fmt.Sprintf("-stateless=%t", stateless)), at)
			urls, command := serveHTTP(t, "  sampling: allow\n", "    - {name: ev, url: \"http://"+at+"/\"}\n")
			acceptAll(t, urls["ev"], command)
			directly, through := checks(t, node, suite, "http://"+at+"/", version), checks(t, node, suite, urls["ev"], version)
			if len(directly) < 20 {
				t.Fatalf("only %d scenarios were run", len(directly))
			}
			for _, name := range slices.Sorted(maps.Keys(directly)) {
				if !strings.HasPrefix(name, "tasks-") && through[name] != directly[name] { // of tasks, the server has none
					t.Errorf("%s: %q directly, %q through shield", name, directly[name], through[name])
				}
			}
		})
	}
}

// acceptAll accepts the tools of the suite's server as such that do no harm: by
// themselves they are unknown, which a person would be asked about.
func acceptAll(t *testing.T, url string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	args := []string{"tools", "accept", "--as", "memory_search", "ev"}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, tool.Name)
	}
	if out, err := command(args...).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// checks returns what the suite says about each scenario.
func checks(t *testing.T, node, suite, url, version string) map[string]string {
	t.Helper()
	c := exec.CommandContext(t.Context(), node, suite, "server", "--url", url, "--requirements", version)
	c.Dir = t.TempDir()
	said, err := c.CombinedOutput() // it fails for what is not scored, too
	out := map[string]string{}
	for _, m := range scenario.FindAllStringSubmatch(string(said), -1) {
		out[m[1]] = m[2]
	}
	if len(out) == 0 {
		t.Fatalf("%s: %v\n%s", url, err, said)
	}
	return out
}

var scenario = regexp.MustCompile(`(?m)^[✓✗] ([a-z0-9-]+): (\d+ passed, \d+ failed)`)

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a server and waits until it listens.
func start(t *testing.T, c *exec.Cmd, at string) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for range 600 {
		if conn, err := net.Dial("tcp", at); err == nil {
			conn.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nothing listens at %s", at)
}

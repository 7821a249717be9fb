// Package mcp tries the gateway between clients and servers of others: those of
// the official Go SDK, in every version of the protocol, and servers from npm.
package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shieldcli/shield/cmd"
	"github.com/shieldcli/shield/internal/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(m, func(arg string) error {
		switch arg {
		case "server":
			return newServer().Run(context.Background(), &mcp.StdioTransport{})
		case "files":
			return newFiles().Run(context.Background(), &mcp.StdioTransport{})
		}
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		os.Exit(cmd.Run(context.Background(), os.Args[1:], cmd.Environment{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Environ: os.Environ, Now: time.Now,
			Home: os.Getenv("HOME"), WorkingDir: dir, User: "me", OS: runtime.GOOS,
		}))
		return nil
	})
}

// shield returns a command of shield: that of SHIELD_BIN, if it names one, which has
// the settings of the runtime that main makes; else the test's own file.
func shield(t testing.TB) *exec.Cmd {
	t.Helper()
	c := reexec.Command(t, "shield")
	if bin := os.Getenv("SHIELD_BIN"); bin != "" {
		c.Path, c.Args[0] = bin, bin
	}
	return c
}

// piped starts a command that ends with the test, and returns its standard input and
// what it writes to another of its pipes.
func piped(t testing.TB, c *exec.Cmd, pipe func() (io.ReadCloser, error)) (io.Writer, *bufio.Reader) {
	t.Helper()
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		to.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return to, bufio.NewReader(from)
}

// newServer returns a server with something of each kind.
func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ServerOptions{Instructions: "Tools for tests."})
	type in struct {
		Path string `json:"path"`
	}
	type out struct {
		Size int `json:"size"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "read_file", Description: "Reads a file."}, func(ctx context.Context, r *mcp.CallToolRequest, a in) (*mcp.CallToolResult, out, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"})
		}
		return nil, out{len(a.Path)}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "get_model_answer", Description: "Asks the client's model."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		//lint:ignore SA1019 servers send it as long as clients answer
		_, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		if err == nil {
			err = errors.New("it was answered")
		}
		return nil, nil, err
	})
	s.AddResource(&mcp.Resource{URI: "memo://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "memo://a", Text: "hello"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}}, nil
	})
	return s
}

// connect connects an SDK client to a server behind shield, under the policy that
// allows most of what nothing is evidence against.
func connect(t *testing.T, dir, version string, opts *mcp.ClientOptions, server ...string) *mcp.ClientSession {
	t.Helper()
	return connectTo(t, t.TempDir(), dir, version, opts, append([]string{"mcp", "--policy", "permissive", "--"}, server...)...)
}

// connectTo connects an SDK client to a command of shield.
func connectTo(t *testing.T, home, dir, version string, opts *mcp.ClientOptions, args ...string) *mcp.ClientSession {
	t.Helper()
	c := shield(t)
	c.Args = append(c.Args, args...)
	c.Env = append(c.Env, "HOME="+home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
	c.Dir = dir
	if opts == nil {
		opts = &mcp.ClientOptions{}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opts).
		Connect(t.Context(), &mcp.CommandTransport{Command: c, TerminateDuration: time.Minute}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Errorf("the end: %v", err)
		}
	})
	return session
}

func said(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// TestSDK goes through what a client does, in each version of the protocol.
func TestSDK(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range mcp.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			progress := make(chan string, 10)
			s := connect(t, t.TempDir(), version, &mcp.ClientOptions{
				//lint:ignore SA1019 see above
				CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					t.Error("the client's model is asked")
					//lint:ignore SA1019 see above
					return &mcp.CreateMessageResult{Content: &mcp.TextContent{Text: "x"}}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Message },
			}, "env", "SHIELD_TEST_CHILD=server", self, "mcp-server-filesystem", ".")
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 2 {
				t.Fatalf("%v, %v", tools, err)
			}
			params := &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "abc"}}
			params.SetProgressToken("p")
			r, err := s.CallTool(t.Context(), params)
			if err != nil || r.IsError || r.StructuredContent.(map[string]any)["size"] != 3.0 {
				t.Errorf("an allowed call: %+v, %v", r, err)
			}
			if got := <-progress; got != "half" {
				t.Errorf("progress: %q", got)
			}
			r, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "~/.ssh/id_rsa"}})
			if err != nil || !r.IsError || !strings.Contains(said(r), "blocked by shield") {
				t.Errorf("a blocked call: %q, %v", said(r), err)
			}
			r, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_model_answer", Arguments: map[string]any{}})
			if err == nil && (!r.IsError || strings.Contains(said(r), "it was answered")) {
				t.Errorf("sampling: %q", said(r))
			}
			res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "memo://a"})
			if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != "hello" {
				t.Errorf("a resource: %+v, %v", res, err)
			}
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///etc/shadow"}); err == nil || !strings.Contains(err.Error(), "blocked by shield") {
				t.Errorf("a protected resource: %v", err)
			}
			if p, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err != nil || len(p.Messages) != 1 {
				t.Errorf("a prompt: %+v, %v", p, err)
			}
			if prompts, err := s.ListPrompts(t.Context(), nil); err != nil || len(prompts.Prompts) != 1 {
				t.Errorf("prompts: %+v, %v", prompts, err)
			}
		})
	}
}

// TestServersFromNpm goes through servers that people use, over both transports, in
// the folder that SHIELD_MCP names: npm install there @modelcontextprotocol/server-everything and
// @modelcontextprotocol/server-filesystem.
func TestServersFromNpm(t *testing.T) {
	t.Parallel()
	modules := filepath.Join(os.Getenv("SHIELD_MCP"), "node_modules", "@modelcontextprotocol")
	if _, err := os.Stat(modules); os.Getenv("SHIELD_MCP") == "" || err != nil {
		t.Skip("SHIELD_MCP names no folder with the servers; see the comment of this test")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	for transport, connect := range map[string]func(t *testing.T, dir string, server ...string) *mcp.ClientSession{
		"stdio": func(t *testing.T, dir string, server ...string) *mcp.ClientSession {
			return connect(t, dir, "", nil, server...)
		},
		"http": connectHTTP,
	} {
		t.Run(transport, func(t *testing.T) { testServersFromNpm(t, node, modules, connect) })
	}
}

func testServersFromNpm(t *testing.T, node, modules string, connect func(t *testing.T, dir string, server ...string) *mcp.ClientSession) {
	t.Run("filesystem", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := connect(t, dir, node, filepath.Join(modules, "server-filesystem", "dist", "index.js"), dir)
		for _, one := range []struct {
			name      string
			arguments map[string]any
			failed    bool
			want      string
		}{
			{"read_text_file", map[string]any{"path": filepath.Join(dir, "a.txt")}, false, "hello"},
			{"read_text_file", map[string]any{"path": "a.txt"}, false, "hello"},
			{"list_directory", map[string]any{"path": dir}, false, "a.txt"},
			{"list_allowed_directories", map[string]any{}, false, dir},
			{"read_text_file", map[string]any{"path": "/etc/shadow"}, true, "a system secret (password hashes, host keys)"},
			{"write_file", map[string]any{"path": dir + "/../../.ssh/authorized_keys", "content": "x"}, true, "blocked by shield"},
			{"write_file", map[string]any{"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"}, true, "blocked by shield"},
			{"read_text_file", map[string]any{"path": "none.txt"}, true, "ENOENT"},
		} {
			r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: one.name, Arguments: one.arguments})
			if err != nil || r.IsError != one.failed || !strings.Contains(said(r), one.want) {
				t.Errorf("%s %v: %+v, %q, %v", one.name, one.arguments, r, said(r), err)
			}
		}
	})
	t.Run("everything", func(t *testing.T) {
		t.Parallel()
		s := connect(t, t.TempDir(), node, filepath.Join(modules, "server-everything", "dist", "index.js"), "stdio")
		var names []string
		for tool, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if len(names) < 10 || !slices.Contains(names, "echo") {
			t.Errorf("tools: %q", names)
		}
		if s.InitializeResult().Instructions == "" {
			t.Error("the instructions are withheld")
		}
		for name, arguments := range map[string]map[string]any{
			"get-sum": {"a": 1, "b": 2}, "get-structured-content": {"location": "New York"}, "get-tiny-image": {},
		} {
			if r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments}); err != nil || r.IsError {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		resources, err := s.ListResources(t.Context(), nil)
		if err != nil || len(resources.Resources) == 0 {
			t.Fatalf("resources: %+v, %v", resources, err)
		}
		if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resources.Resources[0].URI}); err != nil {
			t.Errorf("%s: %v", resources.Resources[0].URI, err)
		}
	})
}

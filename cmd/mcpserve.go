package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/bearer"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/shield"
)

func mcpServeCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "judge the tool calls between MCP clients and servers over HTTP",
		Description: "Answers MCP clients by the streamable HTTP transport, at the address that the setting mcp.listen names, and forwards what is allowed to the servers that mcp.servers lists: http://ADDRESS/NAME is the server NAME. Messages are judged, tools pinned and answers examined as by shield mcp. " +
			"A server has a command, which is started for each session, or a url. Without TLS and a token (mcp.tls_cert, mcp.tls_key, mcp.token_file) the address must be a loopback one. A client's token is never forwarded to a server; a server gets the token in its own token_file. All servers of one client share one session; a client is identified by its token, or by its address if tokens have no names. Denials are counted per connection.",
		Flags: commonJudgeFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return fmt.Errorf("mcp serve: unexpected operand %q; leave it out", shortenTo80Characters(c.Args().First()))
			}
			if err := serveMCP(c, w); err != nil {
				return &statusError{statusBlock, fmt.Errorf("mcp serve: %w", err)}
			}
			return nil
		},
	}
}

// Timeouts for clients, and the time for open requests when shield ends.
const (
	headerTimeout         = 10 * time.Second
	idleConnectionTimeout = 2 * time.Minute
	shutdownTimeout       = 5 * time.Second
)

// serveMCP serves until it is interrupted.
func serveMCP(c *cli.Context, w *Environment) error {
	own := *w
	w, own.Err = &own, &lockedWriter{w: w.Err} // locked, since the MCP servers' standard error and shield's own messages go to the same writer
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	observe, end, err := startTelemetry(c.Context, set.Telemetry.OTLPEndpointURL, w)
	if err != nil {
		return err
	}
	defer end()
	p, err := newMCPPipeline(set, w, observe)
	if err != nil {
		return err
	}
	defer p.Close()
	settings := &set.MCP
	if settings.Listen == "" || len(settings.Servers) == 0 {
		return errors.New("no server is configured; set mcp.listen and mcp.servers")
	}
	front := &gateway.HTTPFrontEnd{Servers: map[string]*gateway.MCPServerEndpoint{}, IsAllowedHost: gateway.IsLoopbackHost, Clock: w.Now}
	if settings.TokenFile != "" {
		if front.Tokens, err = bearer.LoadClientTokens(settings.TokenFile, true); err != nil {
			return fmt.Errorf("mcp.token_file: %w", err)
		}
	}
	server := &http.Server{
		Handler: front, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleConnectionTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog:    log.New(io.Discard, "", 0), // errors of clients cannot be fixed here
		BaseContext: func(net.Listener) context.Context { return c.Context },
	}
	if settings.TLSCert != "" {
		if server.TLSConfig, front.IsAllowedHost, err = loadTLSConfigAndHostCheck(settings); err != nil {
			return err
		}
	}
	defer func() {
		for _, e := range front.Servers {
			e.Close()
		}
	}()
	session := fmt.Sprintf("mcp-serve-%x", w.Now().Unix())
	for _, s := range settings.Servers {
		if front.Servers[s.Name], err = serverEndpoint(c.Context, set, w, p, s, session); err != nil {
			return fmt.Errorf("server %s: %w", s.Name, err)
		}
	}
	listener, err := net.Listen("tcp", settings.Listen)
	if err != nil {
		return err
	}
	scheme := "http"
	if server.TLSConfig != nil {
		scheme, listener = "https", tls.NewListener(listener, server.TLSConfig)
	}
	for _, s := range settings.Servers {
		fmt.Fprintf(w.Err, "shield: mcp serve: the MCP server %s is at %s://%s/%[1]s\n", s.Name, scheme, listener.Addr())
	}
	stop := context.AfterFunc(c.Context, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ctx)
		_ = server.Close()
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serverEndpoint returns the endpoint through which clients reach a server.
func serverEndpoint(ctx context.Context, set *config.LoadedSettings, w *Environment, p *shield.Pipeline, s config.MCPServer, session string) (*gateway.MCPServerEndpoint, error) {
	if s.URL != "" {
		opts, err := gatewayOptions(ctx, set, w, p, gateway.Server{Name: s.Name}, session, []string{s.URL}, "")
		if err != nil {
			return nil, err
		}
		secret := ""
		if s.TokenFile != "" {
			if secret, err = bearer.ReadServiceToken(s.TokenFile); err != nil {
				return nil, fmt.Errorf("token_file: %w", err)
			}
		}
		return gateway.NewEndpointForHTTPServer(opts, s.URL, secret), nil
	}
	env := w.Environ()
	path, err := launch.LookPath(s.Command[0], env)
	if err != nil {
		return nil, err
	}
	opts, err := gatewayOptions(ctx, set, w, p, gateway.NewServer(s.Command, w.WorkingDir, s.Name), session, s.Command, path)
	if err != nil {
		return nil, err
	}
	mode, grants := containmentMode(""), config.ServerContainment{}
	if s.Contain != nil {
		mode, grants = mcpServerContainmentMode(s.Contain, containIfPossible), *s.Contain
	}
	return gateway.NewEndpointForStdioServer(opts, func() (*gateway.ServerProcess, error) {
		return startMCPServer(mode, grants, set, w, opts.Server, path, s.Command, env, p.ForMCPServer(s.Name), session)
	}), nil
}

// loadTLSConfigAndHostCheck returns the TLS configuration, and a function that reports whether the certificate is
// valid for a host name.
func loadTLSConfigAndHostCheck(m *config.MCP) (*tls.Config, func(host string) bool, error) {
	pair, err := bearer.LoadTLSCertificate(m.TLSCert, m.TLSKey)
	if err != nil {
		return nil, nil, fmt.Errorf("mcp.%w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		func(host string) bool { return pair.Leaf.VerifyHostname(host) == nil }, nil
}

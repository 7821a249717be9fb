// Package resp is a client of Redis and Valkey servers (RESP2) that bounds what an
// answer can take: the size, the depth and the time. A length that a server claims
// allocates nothing before the bytes are there.
package resp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of a [Client]: of the answers that it accepts, and of its connections.
const (
	maxAnswerBytes  = 64 << 20 // bytes of an answer
	maxArrayNesting = 4        // nesting depth of arrays
	maxLineBytes    = 64 << 10 // bytes of a status, an error or a length
	maxConns        = 4        // connections at the same time
	maxIdleTime     = 10 * time.Second
)

// Options say how to reach a server.
type Options struct {
	Network, Address      string        // network and address as in [net.Dial]
	TLS                   *tls.Config   // nil for none
	User, Password        string        // "" for none
	DB                    int           // the number of the database
	ConnectOrReplyTimeout time.Duration // limit for each of: waiting for a free connection, connecting, waiting for an answer
	Clock                 func() time.Time
}

// ParseURL reads redis://[USER@]HOST[:PORT][/DB], rediss://… for TLS, or
// unix://[USER@]PATH[?db=N].
func ParseURL(text string) (Options, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Options{}, errors.New("the value is not a URL; write rediss://HOST:PORT/0")
	}
	o := Options{Network: "tcp", User: u.User.Username()}
	db := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "redis", "rediss":
		host, port := u.Hostname(), u.Port()
		if host == "" {
			host = "localhost"
		}
		if port == "" {
			port = "6379"
		}
		o.Address = net.JoinHostPort(host, port)
		if u.Scheme == "rediss" {
			o.TLS = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
		}
	case "unix":
		o.Network, o.Address, db = "unix", u.Path, u.Query().Get("db")
		if o.Address == "" {
			return Options{}, errors.New("the URL names no socket; write unix:///PATH")
		}
	default:
		return Options{}, fmt.Errorf("the scheme %.20q is not supported; use redis, rediss or unix", u.Scheme)
	}
	if db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return Options{}, errors.New("the database in the URL is not a number; write /0")
		}
	}
	return o, nil
}

// A ServerError is what a server answered instead of a value.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// A Client keeps a few connections to a server. It is safe for concurrent use.
type Client struct {
	opts            Options
	connectionSlots chan struct{} // one for each connection in use

	mu   sync.Mutex
	idle []*connection
}

// NewClient returns a client that connects when it is first asked.
func NewClient(o Options) *Client {
	return &Client{opts: o, connectionSlots: make(chan struct{}, maxConns)}
}

// Close closes the connections that nobody uses.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.idle {
		one.net.Close()
	}
	c.idle = nil
	return nil
}

// Do sends commands together, and returns an answer for each: nil, a string, an
// int64, an [ServerError], or a []any of these. The error is one of the connection:
// whether the commands were carried out is unknown then, and Do never sends them
// again. ctx bounds the whole, [Options.ConnectOrReplyTimeout] each step.
func (c *Client) Do(ctx context.Context, commands ...[]string) ([]any, error) {
	turn, cancel := context.WithTimeout(ctx, c.opts.ConnectOrReplyTimeout)
	defer cancel()
	select {
	case c.connectionSlots <- struct{}{}:
		defer func() { <-c.connectionSlots }()
	case <-turn.Done():
		return nil, turn.Err()
	}
	one, err := c.getConnection(ctx)
	if err != nil {
		return nil, err
	}
	answers, err := one.sendCommands(ctx, commands, c.opts.ConnectOrReplyTimeout)
	if err != nil {
		one.net.Close()
		_ = c.Close() // an error on one connection often affects the others, so close the idle ones too
		return nil, err
	}
	if one.commandDeadlineMayHavePassed {
		one.net.Close()
		return answers, nil
	}
	one.lastUsed = c.opts.Clock()
	c.mu.Lock()
	c.idle = append(c.idle, one)
	c.mu.Unlock()
	return answers, nil
}

// getConnection returns a connection that was used a moment ago, or a new one: a server may
// have closed an older one.
func (c *Client) getConnection(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	for len(c.idle) > 0 {
		one := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		if c.opts.Clock().Sub(one.lastUsed) < maxIdleTime {
			c.mu.Unlock()
			return one, nil
		}
		one.net.Close()
	}
	c.mu.Unlock()
	return dial(ctx, c.opts)
}

// A connection is an open network connection to a Redis server, on which one caller at a time sends
// commands.
type connection struct {
	net                          net.Conn
	in                           *bufio.Reader
	lastUsed                     time.Time
	commandDeadlineMayHavePassed bool // the deadline may have passed just after the last answer; then the connection is not used again
}

func dial(ctx context.Context, o Options) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, o.ConnectOrReplyTimeout)
	defer cancel()
	plain, err := (&net.Dialer{}).DialContext(ctx, o.Network, o.Address)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		secure := tls.Client(plain, o.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, err
		}
		plain = secure
	}
	c := &connection{net: plain, in: bufio.NewReader(plain)}
	var first [][]string
	switch {
	case o.Password != "" && o.User != "":
		first = append(first, []string{"AUTH", o.User, o.Password})
	case o.Password != "":
		first = append(first, []string{"AUTH", o.Password})
	}
	if o.DB != 0 {
		first = append(first, []string{"SELECT", strconv.Itoa(o.DB)})
	}
	answers, err := c.sendCommands(ctx, first, o.ConnectOrReplyTimeout)
	for _, answer := range answers {
		if refused, ok := answer.(ServerError); ok && err == nil {
			err = refused
		}
	}
	if err != nil {
		plain.Close()
		return nil, err
	}
	return c, nil
}

// sendCommands sends commands and reads their answers, each within the time limit.
func (c *connection) sendCommands(ctx context.Context, commands [][]string, limit time.Duration) ([]any, error) {
	late := func() { _ = c.net.SetDeadline(time.Unix(1, 0)) } // ends what is being read or written
	stop, step := context.AfterFunc(ctx, late), time.AfterFunc(limit, late)
	defer func() { c.commandDeadlineMayHavePassed = !stop() || !step.Stop() }()
	_ = c.net.SetDeadline(time.Time{})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, words := range commands {
		fmt.Fprintf(&out, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	if _, err := c.net.Write(out.Bytes()); err != nil {
		return nil, err
	}
	answers := make([]any, 0, len(commands))
	left := maxAnswerBytes
	for range commands {
		step.Reset(limit)
		answer, err := c.readAnswer(maxArrayNesting, &left)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

var errNotRESP2 = errors.New("the reply of the server is not RESP2; check that store names a Redis or Valkey server")

// readAnswer reads one answer of at most *bytesLeft bytes, and subtracts the bytes that it reads
// from *bytesLeft.
func (c *connection) readAnswer(nestingLeft int, bytesLeft *int) (any, error) {
	line, err := c.readLine(bytesLeft)
	if err != nil || line == "" {
		return nil, cmp.Or(err, errNotRESP2)
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return ServerError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, errNotRESP2
	}
	switch {
	case line[0] == ':':
		return n, nil
	case line[0] != '$' && line[0] != '*' || n < -1:
		return nil, errNotRESP2
	case n < 0:
		return nil, nil
	case n > int64(*bytesLeft):
		return nil, fmt.Errorf("the reply of the store's server is longer than %d bytes; check that store names a Redis or Valkey server", maxAnswerBytes)
	case line[0] == '$':
		*bytesLeft -= int(n)
		var text strings.Builder
		if _, err := io.CopyN(&text, c.in, n); err != nil {
			return nil, err
		}
		if end, err := c.readLine(bytesLeft); err != nil || end != "" {
			return nil, cmp.Or(err, errNotRESP2)
		}
		return text.String(), nil
	case nestingLeft == 0:
		return nil, fmt.Errorf("the reply of the store's server is nested more than %d deep; check that store names a Redis or Valkey server", maxArrayNesting)
	}
	var all []any
	for range n {
		one, err := c.readAnswer(nestingLeft-1, bytesLeft)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// readLine reads up to the end of a line.
func (c *connection) readLine(left *int) (string, error) {
	var text []byte
	for {
		part, err := c.in.ReadSlice('\n')
		text = append(text, part...)
		if *left -= len(part); *left < 0 || len(text) > maxLineBytes {
			return "", errors.New("the reply of the store's server has a line that is too long; check that store names a Redis or Valkey server")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
	line, ok := strings.CutSuffix(string(text), "\r\n")
	if !ok {
		return "", errNotRESP2
	}
	return line, nil
}

// Package gateway is between an MCP client and an MCP server. It reads the
// frames of both by itself, bounded and strictly, has what the client asks for
// judged as actions, and forwards exactly the bytes that were judged. Tools are
// pinned as a person has accepted them, and what the server says is examined
// before it reaches the client.
//
// A [Gateway] relays one connection; those to one server can share what it lists.
// A [Process] is a server that shield starts.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

//go:generate go run ./gen

// A Judge decides whether an action may run. It answers always.
type Judge interface {
	Evaluate(ctx context.Context, a *action.Action) verdict.Verdict
}

// Options say how a [Gateway] works. The zero value refuses every call, since
// nothing judges it.
type Options struct {
	Judge    Judge
	For      func(client, connection string) (j Judge, session string) // of one client of several, and of one of its connections, "" if it has none; nil takes Judge and Session for all
	Server   Server
	Pins     *Pins                // nil withholds every tool
	Returned Returned             // is told what calls have returned; nil: no notification
	Mark     func(string) string  // marks a text as data, for the mode Marked; nil marks nothing
	Mode     Mode                 // what happens to results with findings
	Sampling bool                 // the server may use the client's model
	Hosts    []effect.HostPattern // that a server may send a person to
	Timeout  time.Duration        // of one judgement, questions to a person included; 0 means 50 s
	Dir      string               // the server's working folder
	Session  string               // of the actions
	Redactor *redact.Redactor     // for what is told; nil knows no secrets of its own
	Notify   func(text string)    // is told what a person should know; any goroutine calls it; nil: no notification
	Record   *Recorder            // keeps a transcript; nil keeps none
}

// A Returned is told what an action has returned, a value of the protocol, and what
// was found in it. With an error the result is withheld. Goroutines share it.
type Returned func(ctx context.Context, a *action.Action, result any, found Findings) error

// Bounds of one connection.
const (
	maxPending  = 1024     // requests that wait for an answer, in each direction
	maxJudging  = 64       // actions that are judged at a time
	maxUnasked  = 100      // requests that a server may put to the client's model and person
	maxRefused  = 1000     // frames that a server may send in vain
	maxTold     = 20       // notices about refused frames
	maxFinds    = 200      // notices about what messages hold
	maxQueue    = 64 << 20 // bytes that wait to be written
	judgeTime   = 50 * time.Second
	settleGrace = 5 * time.Second // for what is judged when the client has ended
)

// A Gateway relays one connection between a client and a server.
type Gateway struct {
	opts     Options
	catalog  *catalog
	judging  sync.WaitGroup
	maxFrame int // bytes of a frame
	maxQueue int // bytes that wait to be written, in each direction

	mu       sync.Mutex
	calls    map[string]*call // the client's, by canonical id
	late     map[string]bool  // taken back by the client when the server had them already
	asked    map[string]bool  // the server's, by canonical id
	changed  map[string]bool  // lists of which the client was told that they have changed, and has not asked for since
	owned    int              // requests of the gateway's own
	unasked  int
	refused  int
	told     int
	finds    int
	noAnswer error // why the server will answer nothing more
}

// A call is a request of the client that waits for its answer.
type call struct {
	route     *route
	id        []byte
	method    string
	subject   string         // the tool, prompt or resource
	action    *action.Action // nil for what is not judged
	what      string         // digest of method, subject and arguments
	token     string         // canonical, of its progress; "" if there is none
	stateless bool           // of the protocol without sessions
	listing   *listing       // that a list of tools belongs to
	structure bool           // the tool says what its structured results look like
	forwarded bool
	misplaced bool          // it brings what the server has not asked for: an error of the protocol
	own       chan *message // takes the answer, nil if there is none, to a request of the gateway's own
	cancel    context.CancelFunc
}

// New returns a gateway.
func New(opts Options) *Gateway {
	if opts.Timeout <= 0 {
		opts.Timeout = judgeTime
	}
	if opts.Mode == "" {
		opts.Mode = Block
	}
	return newGateway(opts, newCatalog())
}

// newGateway returns a gateway that shares a catalog with others.
func newGateway(opts Options, k *catalog) *Gateway {
	return &Gateway{
		opts: opts, catalog: k, maxFrame: maxFrame, maxQueue: maxQueue,
		calls: map[string]*call{}, late: map[string]bool{}, asked: map[string]bool{}, changed: map[string]bool{},
	}
}

// ErrServerEnded is the error of [Gateway.Relay] when the server closes the
// connection first.
var ErrServerEnded = errors.New("the MCP server has ended; restart the client")

// A Side is one end of a connection. Closing In tells the other end that nothing
// more comes.
type Side struct {
	Out io.Reader      // what it says
	In  io.WriteCloser // what it is told
}

// Relay passes messages between a client and a server until both have closed
// their end, the client's is broken, the server sends what no server sends, or
// ctx ends. Requests of the client that the server leaves unanswered are
// answered with an error.
//
// A goroutine that waits in a read then stays until the read returns.
func (g *Gateway) Relay(ctx context.Context, client, server Side) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	toClient, toServer := newOutbox(client.In, g.maxQueue), newOutbox(server.In, g.maxQueue)
	r := &route{client: toClient, server: toServer}
	clientEnd, serverEnd := make(chan error, 1), make(chan error, 1)
	go func() { clientEnd <- g.fromClient(ctx, r, newFrames(client.Out, g.maxFrame)) }()
	go func() { serverEnd <- g.fromServer(r, newFrames(server.Out, g.maxFrame)) }()
	ended := false
	for {
		select {
		case <-clientEnd:
			ended, clientEnd = true, nil
			g.settle()
			toServer.close()
			time.AfterFunc(settleGrace, func() { server.In.Close() }) // also if it reads nothing
		case err := <-serverEnd:
			cancel()
			open := g.answerAll()
			toServer.close()
			toClient.close()
			toClient.drain(settleGrace)
			if ended && open == 0 && errors.Is(err, io.EOF) {
				return nil
			}
			if errors.Is(err, io.EOF) {
				err = ErrServerEnded
			}
			return err
		case <-toClient.broken:
			return errors.New("the MCP client closed the connection")
		case <-ctx.Done():
			toServer.close()
			return ctx.Err()
		}
	}
}

// settle waits for what is being judged when the client has nothing more to say,
// and then gives it up.
func (g *Gateway) settle() {
	done := make(chan struct{})
	go func() {
		g.judging.Wait()
		close(done)
	}()
	timer := time.NewTimer(settleGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		g.mu.Lock()
		for _, c := range g.calls {
			if c.cancel != nil {
				c.cancel()
			}
		}
		g.mu.Unlock()
		<-done
	}
}

// answerAll answers what the server has left unanswered, and returns how much
// that is.
func (g *Gateway) answerAll() int {
	g.mu.Lock()
	g.noAnswer = ErrServerEnded
	g.mu.Unlock()
	g.judging.Wait() // which has ended with the connection
	g.mu.Lock()
	open := g.calls
	g.calls = map[string]*call{}
	g.mu.Unlock()
	for _, c := range open {
		g.over(c)
		if c.own != nil {
			c.own <- nil
			continue
		}
		c.route.answer(failure(c.id, codeRefused, "shield: "+ErrServerEnded.Error()))
	}
	return len(open)
}

// A route is the way that a message takes, and the answers to it: both ends of a
// connection, or of one exchange of several on it.
type route struct {
	client, server sink
	aside          *aside  // what is examined beside the loop that reads; nil if nothing is
	stream         *stream // of one exchange, which the answer ends; nil if the way stays
}

// A sink takes frames in order. put reports false if one is not taken, since the
// other end is gone or, unless it is to wait, reads too little.
type sink interface {
	put(raw []byte, wait bool) bool
}

// answer hands the client the answer to its request.
func (r *route) answer(raw []byte) {
	if r.stream != nil {
		r.stream.finish(raw)
		return
	}
	r.client.put(raw, true)
}

// tell hands the client a frame that answers nothing, and reports whether it is
// there to take it.
func (r *route) tell(raw []byte) bool { return r.client.put(raw, true) }

// status sets the status of an answer that is an error, where there is one.
func (r *route) status(code int) {
	if r.stream != nil {
		r.stream.answerWith(code)
	}
}

// over ends an exchange that is left without an answer.
func (r *route) over() {
	if r.stream != nil {
		r.stream.finish(nil)
	}
}

// ask hands the server a frame, or fails if it reads nothing.
func (r *route) ask(raw []byte) error {
	if !r.server.put(raw, false) {
		return errors.New("the MCP server stopped reading its input; restart it")
	}
	return nil
}

// notify tells a person.
func (g *Gateway) notify(format string, args ...any) {
	if g.opts.Notify != nil {
		g.opts.Notify(g.opts.Redactor.String(fmt.Sprintf("mcp %s: "+format, append([]any{g.opts.Server.Name}, args...)...)))
	}
}

// odd notes a frame that is dropped, and tells a person of the first ones.
func (g *Gateway) odd(format string, args ...any) (tooMany bool) {
	g.mu.Lock()
	g.refused++
	tell := g.told < maxTold
	if tell {
		g.told++
	}
	tooMany = g.refused > maxRefused
	g.mu.Unlock()
	if tell {
		g.notify(format, args...)
	}
	return tooMany
}

// take removes the call that an answer is for, if the server was asked.
func (g *Gateway) take(id []byte) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.calls[string(id)]
	if c == nil || !c.forwarded {
		return nil
	}
	delete(g.calls, string(id))
	return c
}

// tokenOf returns the canonical form of a request's progress token, or "".
func tokenOf(params object) string {
	token, ok := inner(params, "_meta")["progressToken"]
	if !ok {
		return ""
	}
	return string(canonjson.AppendValue(nil, token))
}

// stateless reports whether a request is of the protocol without sessions, in
// which each says its version.
func stateless(params object) bool {
	_, ok := inner(params, "_meta")["io.modelcontextprotocol/protocolVersion"]
	return ok
}

// An outbox writes frames in the order in which they are put into it, and holds
// those that wait.
type outbox struct {
	w      io.WriteCloser
	max    int // bytes that may wait
	broken chan struct{}
	done   chan struct{} // closed when all is written, or cannot be

	mu     sync.Mutex
	cond   *sync.Cond
	queue  [][]byte
	bytes  int
	closed bool
	failed bool
}

func newOutbox(w io.WriteCloser, max int) *outbox {
	o := &outbox{w: w, max: max, broken: make(chan struct{}), done: make(chan struct{})}
	o.cond = sync.NewCond(&o.mu)
	go o.write()
	return o
}

// put queues a frame. It reports false if too much waits, unless it is to wait
// itself, and if nothing more can be written.
func (o *outbox) put(raw []byte, wait bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for wait && o.bytes > o.max && !o.closed && !o.failed {
		o.cond.Wait()
	}
	if o.closed || o.failed || o.bytes > o.max {
		return false
	}
	o.queue = append(o.queue, raw)
	o.bytes += len(raw)
	o.cond.Broadcast()
	return true
}

// close lets what is queued be written, and then closes the writer.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cond.Broadcast()
}

// drain waits until what is queued is written, or for a time.
func (o *outbox) drain(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
}

func (o *outbox) write() {
	defer close(o.done)
	defer o.w.Close()
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed {
			o.cond.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		raw := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		o.mu.Unlock()
		_, err := o.w.Write(append(raw[:len(raw):len(raw)], '\n'))
		o.mu.Lock()
		o.bytes -= len(raw)
		o.failed = err != nil
		o.cond.Broadcast()
		o.mu.Unlock()
		if err != nil {
			close(o.broken)
			return
		}
	}
}

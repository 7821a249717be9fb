// Package gateway is a proxy between an MCP client and an MCP server. It parses the frames of both
// strictly and with size limits, judges the client's requests as actions, and forwards exactly the
// bytes that were judged. Tools are pinned to the definitions that a person has accepted, and server
// messages are examined before they reach the client.
//
// A [Gateway] relays one connection; gateways for the same server can share its tool list. A
// [ServerProcess] is a server that shield starts.
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

// An ActionJudge decides whether an action may run. It always returns a verdict.
type ActionJudge interface {
	Evaluate(ctx context.Context, a *action.Action) verdict.Verdict
}

// Options configure a [Gateway]. The zero value refuses every call, since it has no judge.
type Options struct {
	Judge                      ActionJudge
	JudgeFor                   func(client, connection string) (j ActionJudge, session string) // returns judge and session ID for a client and its connection ("" if none); nil: Judge and SessionID for all
	Server                     Server
	AcceptedToolPins           *ToolPinStore        // nil withholds every tool
	OnActionResult             ActionResultHandler  // called with the result of every call; can be nil
	MarkTextAsData             func(string) string  // marks a text as data, for FindingsModeMarkAsData; nil marks nothing
	ResultFindingsMode         FindingsMode         // what happens to results with findings
	AllowsSampling             bool                 // the server may send sampling requests to the client's model
	TrustedElicitationURLHosts []effect.HostPattern // hosts whose links a server may show to a person
	JudgeTimeout               time.Duration        // maximum time for one judgement, including questions to a person; 0 means 50 s
	WorkingDir                 string               // the server's working folder
	SessionID                  string               // session of the actions
	Redactor                   *redact.Redactor     // removes secrets from notices; nil: only secrets of known forms, not configured secrets
	NotifyUser                 func(text string)    // shows a notice to the user; called from any goroutine; nil: no notification
	CorpusRowRecorder          *CorpusRowRecorder   // keeps a transcript; nil keeps none
}

// An ActionResultHandler receives an action, its result as a JSON-RPC value, and the findings in the result. If
// it returns an error, the result is withheld. It is safe for concurrent use.
type ActionResultHandler func(ctx context.Context, a *action.Action, result any, found Findings) error

// Limits of one connection.
const (
	maxPendingRequestsPerDirection = 1024     // requests that wait for an answer, in each direction
	maxConcurrentJudgements        = 64       // actions judged concurrently
	maxQuestionsFromServer         = 100      // server requests to the client's model and user
	maxDroppedFrames               = 1000     // server frames that are dropped before the connection is closed
	maxDroppedFrameNotices         = 20       // notices about refused frames
	maxFindingNotices              = 200      // notices about findings
	maxFrameWriteQueueBytes        = 64 << 20 // bytes that wait to be written
	defaultJudgeTimeout            = 50 * time.Second
	judgementGraceAfterClientClose = 5 * time.Second // time for judgements in progress after the client has closed
)

// A Gateway relays one connection between a client and a server.
type Gateway struct {
	opts            Options
	sharedState     *serverStateAcrossConnections
	judgements      sync.WaitGroup
	frameByteLimit  int // bytes of a frame
	queuedByteLimit int // bytes that wait to be written, in each direction

	mu                                sync.Mutex
	clientCalls                       map[string]*pendingCall // open requests of the client, by canonical id
	cancelledCalls                    map[string]bool         // requests that the client cancelled after they were sent to the server
	openRequestIDsFromServer          map[string]bool         // open requests of the server, by canonical id
	changedListsAwaitingClientRequest map[string]bool         // lists that changed and that the client has not requested since it was told
	gatewaySentRequestCount           int                     // number of requests that the gateway itself has sent
	serverQuestionCount               int
	droppedFrameCount                 int
	droppedFrameNotices               int
	findingNotices                    int
	serverEndError                    error // why the server sends no more responses
}

// A pendingCall is a client request that waits for its response.
type pendingCall struct {
	route                   *clientServerRoute
	id                      []byte
	method                  string
	requestTarget           string         // the tool, prompt or resource
	action                  *action.Action // nil for requests that are not judged
	requestDigest           string         // digest of the session and of the request's method, target and arguments
	progressToken           string         // progress token in canonical form; "" if there is none
	stateless               bool           // uses the stateless version of the protocol
	listing                 *toolListing   // the tool list that a tools/list page belongs to
	hasOutputSchema         bool           // the tool has an output schema
	forwarded               bool
	answersUnaskedQuestion  bool          // it answers a question that the server did not ask: a protocol error
	serverResponseToGateway chan *message // for a request of the gateway itself, receives the server's response, or a nil message if none comes; otherwise a nil channel
	cancel                  context.CancelFunc
}

// New returns a gateway.
func New(opts Options) *Gateway {
	if opts.JudgeTimeout <= 0 {
		opts.JudgeTimeout = defaultJudgeTimeout
	}
	if opts.ResultFindingsMode == "" {
		opts.ResultFindingsMode = FindingsModeWithhold
	}
	return newGateway(opts, newSharedServerState())
}

// newGateway returns a gateway. Gateways for the same server can share the server state k, such as
// the listed tools.
func newGateway(opts Options, k *serverStateAcrossConnections) *Gateway {
	return &Gateway{
		opts: opts, sharedState: k, frameByteLimit: maxFrameBytes, queuedByteLimit: maxFrameWriteQueueBytes,
		clientCalls: map[string]*pendingCall{}, cancelledCalls: map[string]bool{}, openRequestIDsFromServer: map[string]bool{}, changedListsAwaitingClientRequest: map[string]bool{},
	}
}

// ErrServerEnded is the error of [Gateway.Relay] when the server closes the
// connection first.
var ErrServerEnded = errors.New("the MCP server has ended; restart the client")

// PeerStreams are the streams to and from one end of a connection. Closing ToPeer signals the end
// of messages.
type PeerStreams struct {
	FromPeer io.Reader      // messages that the peer sends
	ToPeer   io.WriteCloser // messages to the peer
}

// Relay forwards messages between client and server until the server closes its end or violates the protocol,
// the connection to the client breaks, or ctx ends. After the client has closed its end, Relay closes the
// server's input, and returns nil if the server then closes its end with no request open. When the server closes
// its end or violates the protocol, client requests without a response are answered with an error.
//
// A goroutine that is blocked in a read remains until the read returns.
func (g *Gateway) Relay(ctx context.Context, client, server PeerStreams) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	toClient, toServer := newFrameWriteQueue(client.ToPeer, g.queuedByteLimit), newFrameWriteQueue(server.ToPeer, g.queuedByteLimit)
	r := &clientServerRoute{client: toClient, server: toServer}
	clientEnd, serverEnd := make(chan error, 1), make(chan error, 1)
	go func() { clientEnd <- g.handleClientFrames(ctx, r, newFrameReader(client.FromPeer, g.frameByteLimit)) }()
	go func() { serverEnd <- g.handleServerFrames(r, newFrameReader(server.FromPeer, g.frameByteLimit)) }()
	ended := false
	for {
		select {
		case <-clientEnd:
			ended, clientEnd = true, nil
			g.waitForJudgements()
			toServer.close()
			time.AfterFunc(judgementGraceAfterClientClose, func() { server.ToPeer.Close() }) // close the server's input after the grace time, even if the server has not read all queued messages
		case err := <-serverEnd:
			cancel()
			open := g.failPendingCalls()
			toServer.close()
			toClient.close()
			toClient.drain(judgementGraceAfterClientClose)
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

// waitForJudgements waits up to judgementGraceAfterClientClose for judgements in progress after the client has closed, and then
// cancels them.
func (g *Gateway) waitForJudgements() {
	done := make(chan struct{})
	go func() {
		g.judgements.Wait()
		close(done)
	}()
	timer := time.NewTimer(judgementGraceAfterClientClose)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		g.mu.Lock()
		for _, c := range g.clientCalls {
			if c.cancel != nil {
				c.cancel()
			}
		}
		g.mu.Unlock()
		<-done
	}
}

// failPendingCalls answers the client's open requests with errors, and returns their number.
func (g *Gateway) failPendingCalls() int {
	g.mu.Lock()
	g.serverEndError = ErrServerEnded
	g.mu.Unlock()
	g.judgements.Wait() // does not block for long: the connection's end has cancelled the judgements' context
	g.mu.Lock()
	open := g.clientCalls
	g.clientCalls = map[string]*pendingCall{}
	g.mu.Unlock()
	for _, c := range open {
		g.finishCallWithoutResponse(c)
		if c.serverResponseToGateway != nil {
			c.serverResponseToGateway <- nil
			continue
		}
		c.route.sendResponseToClient(errorResponse(c.id, codeInternalError, "shield: "+ErrServerEnded.Error()))
	}
	return len(open)
}

// A clientServerRoute is the way that a message and its responses take between client and server:
// over a lasting connection, or within one HTTP exchange.
type clientServerRoute struct {
	client, server frameSink
	asyncExaminer  *asyncResponseExaminer // examines responses concurrently; nil if results are not examined
	stream         *responseStream        // response stream of one HTTP exchange, which the response ends; nil on a lasting connection
}

// A frameSink accepts frames in order. sendOrQueueFrame reports false if the frame was not accepted, for example
// because the other end is closed or, unless waitIfQueueFull is true, reads too slowly.
type frameSink interface {
	sendOrQueueFrame(raw []byte, waitIfQueueFull bool) bool
}

// sendResponseToClient sends the client the response to its request.
func (r *clientServerRoute) sendResponseToClient(raw []byte) {
	if r.stream != nil {
		r.stream.writeResponse(raw)
		return
	}
	r.client.sendOrQueueFrame(raw, true)
}

// sendToClient sends the client a frame that is not a response, and reports whether it was accepted.
func (r *clientServerRoute) sendToClient(raw []byte) bool {
	return r.client.sendOrQueueFrame(raw, true)
}

// setStatus sets the HTTP status of an error response. On a lasting connection, where the route has no stream,
// it does nothing.
func (r *clientServerRoute) setStatus(code int) {
	if r.stream != nil {
		r.stream.setStatus(code)
	}
}

// endHTTPExchangeWithoutResponse ends an exchange without a response.
func (r *clientServerRoute) endHTTPExchangeWithoutResponse() {
	if r.stream != nil {
		r.stream.writeResponse(nil)
	}
}

// sendToServer sends the server a frame, or fails if the server does not read.
func (r *clientServerRoute) sendToServer(raw []byte) error {
	if !r.server.sendOrQueueFrame(raw, false) {
		return errors.New("the MCP server stopped reading its input; restart it")
	}
	return nil
}

// notifyUser shows a notice to the user.
func (g *Gateway) notifyUser(format string, args ...any) {
	if g.opts.NotifyUser != nil {
		g.opts.NotifyUser(g.opts.Redactor.RedactText(fmt.Sprintf("mcp %s: "+format, append([]any{g.opts.Server.Name}, args...)...)))
	}
}

// reportDroppedFrame counts a dropped frame, and notifies the user of the first ones.
func (g *Gateway) reportDroppedFrame(format string, args ...any) (tooManyDropped bool) {
	g.mu.Lock()
	g.droppedFrameCount++
	tell := g.droppedFrameNotices < maxDroppedFrameNotices
	if tell {
		g.droppedFrameNotices++
	}
	tooManyDropped = g.droppedFrameCount > maxDroppedFrames
	g.mu.Unlock()
	if tell {
		g.notifyUser(format, args...)
	}
	return tooManyDropped
}

// removePendingCall removes and returns the call that a response answers, if it was sent to the server.
func (g *Gateway) removePendingCall(id []byte) *pendingCall {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clientCalls[string(id)]
	if c == nil || !c.forwarded {
		return nil
	}
	delete(g.clientCalls, string(id))
	return c
}

// progressTokenOf returns the canonical form of a request's progress token, or "".
func progressTokenOf(params object) string {
	token, ok := objectMember(params, "_meta")["progressToken"]
	if !ok {
		return ""
	}
	return string(canonjson.AppendValue(nil, token))
}

// usesStatelessProtocol reports whether a request uses the stateless version of the protocol, in which each
// request states its version.
func usesStatelessProtocol(requestParams object) bool {
	_, ok := objectMember(requestParams, "_meta")["io.modelcontextprotocol/protocolVersion"]
	return ok
}

// A frameWriteQueue writes queued frames to a stream in order.
type frameWriteQueue struct {
	writer          io.WriteCloser
	maxBytesInQueue int // maximum number of queued bytes
	broken          chan struct{}
	writingDone     chan struct{} // closed when all is written, or writing failed

	mu           sync.Mutex
	queueChanged *sync.Cond
	queue        [][]byte
	queuedBytes  int
	closed       bool
	failed       bool
}

func newFrameWriteQueue(w io.WriteCloser, maxBytesInQueue int) *frameWriteQueue {
	o := &frameWriteQueue{writer: w, maxBytesInQueue: maxBytesInQueue, broken: make(chan struct{}), writingDone: make(chan struct{})}
	o.queueChanged = sync.NewCond(&o.mu)
	go o.writeQueuedFrames()
	return o
}

// sendOrQueueFrame adds a frame to the queue. If the queue is full, it waits for space, or returns false if
// waitIfQueueFull is false. It also returns false if the queue is closed or writing failed.
func (o *frameWriteQueue) sendOrQueueFrame(raw []byte, waitIfQueueFull bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for waitIfQueueFull && o.queuedBytes > o.maxBytesInQueue && !o.closed && !o.failed {
		o.queueChanged.Wait()
	}
	if o.closed || o.failed || o.queuedBytes > o.maxBytesInQueue {
		return false
	}
	o.queue = append(o.queue, raw)
	o.queuedBytes += len(raw)
	o.queueChanged.Broadcast()
	return true
}

// close writes the queue in the background, and then closes the writer.
func (o *frameWriteQueue) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.queueChanged.Broadcast()
}

// drain waits until the queue is written, for at most a given time.
func (o *frameWriteQueue) drain(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-o.writingDone:
	case <-timer.C:
	}
}

func (o *frameWriteQueue) writeQueuedFrames() {
	defer close(o.writingDone)
	defer o.writer.Close()
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed {
			o.queueChanged.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		raw := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		o.mu.Unlock()
		_, err := o.writer.Write(append(raw[:len(raw):len(raw)], '\n'))
		o.mu.Lock()
		o.queuedBytes -= len(raw)
		o.failed = err != nil
		o.queueChanged.Broadcast()
		o.mu.Unlock()
		if err != nil {
			close(o.broken)
			return
		}
	}
}

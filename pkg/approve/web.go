package approve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// web shows requests on a page of this machine. Who opens it must know a token
// that is printed once, and proves it to the server in a way that no other
// page, user or name of this machine can; see [pages].
type web struct {
	o *Options

	mu      sync.Mutex
	server  *http.Server // nil until something is asked
	host    string       // address and port of the page
	token   string       // 256 bits in hex
	cookies []string     // of the browsers that have shown the token
	waiting []*waiting   // in the order in which they were asked
	changed []chan struct{}
}

// A waiting request is shown on the page.
type waiting struct {
	r      *Request
	answer chan Answer // takes one
}

// Bounds of the server.
const (
	maxBrowsers    = 32
	maxConnections = 128
	maxPost        = 16 << 10 // bytes
	heartbeat      = 15 * time.Second
)

func newWeb(o *Options) Channel { return &web{o: o} }

func (*web) Name() string { return "web" }

func (w *web) listen() string {
	if w.o.Listen == "" {
		return "127.0.0.1:0"
	}
	return w.o.Listen
}

// Usable demands a loopback address: everybody who reaches the page could try
// to answer.
func (w *web) Usable() error {
	host, _, err := net.SplitHostPort(w.listen())
	if err != nil {
		return fmt.Errorf("approval.web.listen: %w; set it to 127.0.0.1:0", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("approval.web.listen: %.80q is not a loopback address; set it to 127.0.0.1:0", host)
	}
	return nil
}

func (w *web) Ask(ctx context.Context, r *Request) (Answer, error) {
	if err := w.start(ctx); err != nil {
		return Answer{}, err
	}
	q := &waiting{r: r, answer: make(chan Answer, 1)}
	w.change(func() { w.waiting = append(w.waiting, q) })
	defer w.change(func() {
		w.waiting = slices.DeleteFunc(w.waiting, func(o *waiting) bool { return o == q })
	})
	r.Shown()
	select {
	case a := <-q.answer:
		return a, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// start opens the page, once, and prints the link to it. The token stands in
// the fragment, which browsers do not send, so that it is in no log and no
// referrer.
func (w *web) start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server != nil {
		return nil
	}
	if err := w.Usable(); err != nil {
		return err
	}
	token, err := randomHex(32)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", w.listen())
	if err != nil {
		return fmt.Errorf("open the page: %w", err)
	}
	w.token, w.host = token, l.Addr().String()
	w.server = &http.Server{
		Handler:           w.pages(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	go func() { _ = w.server.Serve(netutil.LimitListener(l, maxConnections)) }() // ends with Close
	if w.o.Notice != nil {
		fmt.Fprintf(w.o.Notice, "shield: approve or deny at http://%s/#%s\n", w.host, w.token)
	}
	return nil
}

// Close ends the page.
func (w *web) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil {
		return nil
	}
	return w.server.Close()
}

// change changes what is waiting and tells every page.
func (w *web) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	for _, c := range w.changed {
		select {
		case c <- struct{}{}:
		default: // it has been told, and has not looked yet
		}
	}
}

// subscribe returns a channel that is told of changes, of the present state at
// once.
func (w *web) subscribe() (c chan struct{}, cancel func()) {
	c = make(chan struct{}, 1)
	c <- struct{}{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed = slices.DeleteFunc(w.changed, func(o chan struct{}) bool { return o == c })
	}
}

// A shownRequest is a request as the page gets it, with the seconds left now.
type shownRequest struct {
	*Request
	Left int `json:"seconds"`
}

// list returns what is waiting.
func (w *web) list() []shownRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []shownRequest{}
	for _, q := range w.waiting {
		out = append(out, shownRequest{q.r, int(q.r.TimeLeft().Seconds())})
	}
	return out
}

var errNotWaiting = errors.New("this request is not waiting any more")

// take takes an answer to a request; the first one only.
func (w *web) take(a Answer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.waiting {
		if !same(q.r.ID, a.ID) {
			continue
		}
		select {
		case q.answer <- a:
			return nil
		default:
			return errNotWaiting
		}
	}
	return errNotWaiting
}

func randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

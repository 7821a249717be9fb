// Package evaltest provides a language model for tests: a server on loopback that implements the OpenAI chat
// API. It plays an evaluator that obeys every payload and still returns the right canary, and misbehaves on
// request.
//
// The name of the model in a request selects the behaviour, so that one server can test a whole command line:
// see [ModelNames].
package evaltest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Request is a request that the server received.
type Request struct {
	Header                 http.Header
	Model                  string
	System                 string
	User                   string
	Canary                 string // from the system message, or from the user message if there is no system message
	Body                   map[string]any
	SequenceNumber         int // counted from 1, over all models
	PerModelSequenceNumber int // number of the request among those for Model, counted from 1

	onResponseStall func() // see [Server.OnResponseStall]
}

// A Behaviour answers a request.
type Behaviour func(w http.ResponseWriter, hr *http.Request, r Request)

// A Server is a running test server.
type Server struct {
	*httptest.Server

	mu                  sync.Mutex
	requests            []Request
	requestCountByModel map[string]int
	behavioursByModel   map[string]Behaviour
	previousCanary      string // canary of the previous request
	onResponseStall     func()
}

// NewServer starts a server. The caller must close it.
func NewServer() *Server { return start(httptest.NewServer) }

// NewTLSServer starts a server with TLS. The caller must close it.
func NewTLSServer() *Server { return start(httptest.NewTLSServer) }

func start(run func(http.Handler) *httptest.Server) *Server {
	s := &Server{requestCountByModel: map[string]int{}, behavioursByModel: map[string]Behaviour{}}
	s.Server = run(http.HandlerFunc(s.serve))
	return s
}

// BaseURL returns the URL for the setting base_url.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// SetModelBehaviour adds a behaviour under a model's name.
func (s *Server) SetModelBehaviour(model string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behavioursByModel[model] = b
}

// OnResponseStall registers f, which [StallAfterText] calls when it begins to wait.
func (s *Server) OnResponseStall(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onResponseStall = f
}

// Requests returns all requests received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ModelNames returns the names of the models that the server knows.
func ModelNames() []string { return slices.Sorted(maps.Keys(behavioursByModelName())) }

var canaryLine = regexp.MustCompile(`VERIFICATION TOKEN: (\S+)`)

func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	var body struct {
		Model    string
		Messages []struct{ Role, Content string }
	}
	raw, err := io.ReadAll(hr.Body)
	if err != nil {
		return
	}
	if hr.Method != http.MethodPost || !strings.HasSuffix(hr.URL.Path, "/chat/completions") || json.Unmarshal(raw, &body) != nil {
		http.Error(w, `{"error":{"message":"not a chat completion"}}`, http.StatusNotFound)
		return
	}
	r := Request{Header: hr.Header.Clone(), Model: body.Model}
	if err := json.Unmarshal(raw, &r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, m := range body.Messages {
		switch m.Role {
		case "system":
			r.System = m.Content
		case "user":
			r.User = m.Content
		}
	}
	if m := canaryLine.FindStringSubmatch(r.System + r.User); m != nil {
		r.Canary = m[1]
	}
	s.mu.Lock()
	s.requestCountByModel[r.Model]++
	r.PerModelSequenceNumber = s.requestCountByModel[r.Model]
	r.SequenceNumber = len(s.requests) + 1
	s.requests = append(s.requests, r)
	r.onResponseStall = s.onResponseStall
	b := s.behavioursByModel[r.Model]
	foreign := s.previousCanary
	s.previousCanary = r.Canary
	s.mu.Unlock()
	switch {
	case b != nil:
	case r.Model == "foreign-canary":
		if foreign == "" {
			foreign = strings.Repeat("0", len(r.Canary))
		}
		b = Say(reply("ALLOW", "0.99", foreign))
	default:
		if b = behavioursByModelName()[r.Model]; b == nil {
			b = Status(http.StatusNotFound, "", fmt.Sprintf("model %q not found", r.Model))
		}
	}
	b(w, hr, r)
}

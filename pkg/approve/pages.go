package approve

import (
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed web/index.html
var indexHTML string

//go:embed web/app.js
var appJS string

//go:embed web/style.css
var styleCSS string

// pageHandler serves the approval page. Any web page that the person has open, and any host name that an
// attacker resolves to this machine, can send requests here. So each request needs the right Host header, each
// POST the right Origin header, and all requests but those for the empty page and the login need the cookie and
// the token of a browser that knows the page's secret. onAnswerTaken is called after each request with an answer
// is handled.
func (s *pageServer) pageHandler(onAnswerTaken func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.handleIndex)
	mux.HandleFunc("GET /app.js", serveStatic("text/javascript; charset=utf-8", &appJS))
	mux.HandleFunc("GET /style.css", serveStatic("text/css; charset=utf-8", &styleCSS))
	mux.HandleFunc("POST /hello", s.handleHandshakeHello)
	mux.HandleFunc("POST /session", s.handleBrowserLogin)
	mux.HandleFunc("POST /key", s.handlePageSecretRequest)
	mux.HandleFunc("GET /events", s.requireKnownBrowser(s.handleWaitingQuestionsStream))
	mux.HandleFunc("POST /whole", s.requireKnownBrowser(s.handleUncutQuestionFields))
	mux.HandleFunc("POST /answer", s.requireKnownBrowser(func(rw http.ResponseWriter, r *http.Request) {
		s.handleAnswer(rw, r)
		onAnswerTaken()
	}))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		if why := s.requestNotFromPageReason(r); why != "" {
			http.Error(rw, why, http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(rw, r.Body, maxPostBytes)
		mux.ServeHTTP(rw, r)
	})
}

// requestNotFromPageReason returns why a request cannot come from the approval page, such as a cross-site
// request or DNS rebinding; "" if it can come from the page.
func (s *pageServer) requestNotFromPageReason(r *http.Request) string {
	// With another name for this machine (DNS rebinding), the browser would treat an attacker's page
	// as this one.
	if r.Host != s.page.Address && r.Host != s.localhostAddress() {
		return "the address has an unknown host name; open the address that 'shield approvals' prints"
	}
	origin := r.Header.Get("Origin")
	if origin == "" && r.Method != http.MethodGet || origin != "" && origin != "http://"+r.Host {
		return "the request comes from another site; open the address that 'shield approvals' prints"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // missing header, this page, or a URL typed by the person
		return ""
	default:
		if r.URL.Path == "/" && r.Method == http.MethodGet {
			return "" // allowed: a person clicked a link to the page, which shows nothing to a browser without the code or key
		}
		return "the request comes from another page; open the address that 'shield approvals' prints"
	}
}

func (s *pageServer) localhostAddress() string {
	_, port, err := net.SplitHostPort(s.page.Address)
	if err != nil {
		return ""
	}
	return net.JoinHostPort("localhost", port)
}

// handleIndex serves the page, which is empty until it has proved that it knows the
// secret.
func (s *pageServer) handleIndex(rw http.ResponseWriter, _ *http.Request) {
	nonce, err := randomHex(16)
	if err != nil {
		http.Error(rw, "no random numbers are available; restart shield", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'", nonce))
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(rw, strings.ReplaceAll(indexHTML, "NONCE", nonce)) // a write fails if the browser is gone
}

func serveStatic(contentType string, content *string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(rw, *content) // a write fails if the browser is gone
	}
}

// handleWaitingQuestionsStream sends the list of waiting requests, again whenever it changes.
func (s *pageServer) handleWaitingQuestionsStream(rw http.ResponseWriter, r *http.Request) {
	flusher, ok := rw.(http.Flusher)
	if !ok {
		http.Error(rw, "internal error: the page cannot be streamed; please report this", http.StatusInternalServerError)
		return
	}
	// The stream lasts longer than a request may take to arrive.
	if err := http.NewResponseController(rw).SetReadDeadline(time.Time{}); err != nil {
		http.Error(rw, "internal error: the page cannot be streamed; please report this", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	b, cancel := s.subscribe()
	defer cancel()
	beat := time.NewTicker(pageEventsHeartbeatInterval)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			_, err = io.WriteString(rw, ":\n\n")
			flusher.Flush()
		case <-b.pageStateChanged:
			shown, version := s.pageState()
			var text []byte
			if text, err = json.Marshal(shown); err == nil {
				_, err = fmt.Fprintf(rw, "data: %s\n\n", text)
			}
			flusher.Flush()
			s.recordSentPageStateVersion(b, version)
		}
		if err != nil {
			return
		}
	}
}

// handleUncutQuestionFields sends all fields of a waiting question in full; the list of waiting questions, sent
// before, contains only the beginnings of long fields.
func (s *pageServer) handleUncutQuestionFields(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		ID string `json:"id"`
	}
	if !decodeJSON(rw, r, &in) {
		return
	}
	fields, err := s.uncutQuestionFields(in.ID)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
		return
	}
	sendJSON(rw, fields)
}

// handleAnswer takes an answer from the page.
func (s *pageServer) handleAnswer(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		ID     string   `json:"id"`
		Also   []string `json:"also"`
		Choice string   `json:"choice"`
		Reason string   `json:"reason"`
	}
	if !decodeJSON(rw, r, &in) {
		return
	}
	if !slices.Contains([]string{choiceDeny, choiceOnce, choiceRemember, choiceAdvanceApproval}, in.Choice) && classOfChoice(in.Choice) == "" {
		http.Error(rw, "the answer is not one that the page shows; reload the page", http.StatusBadRequest)
		return
	}
	s.answerDeliveryLock.RLock() // keeps this process from exiting before it has sent the response
	defer s.answerDeliveryLock.RUnlock()
	given, err := s.storeFirstAnswer(in.ID, in.Also, in.Choice, in.Reason)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
		return
	}
	sendJSON(rw, given)
}

// decodeJSON decodes the body of a request, and answers with an error if it is not JSON.
func decodeJSON(rw http.ResponseWriter, r *http.Request, into any) bool {
	// A form of another page cannot send this type.
	if r.Header.Get("Content-Type") != "application/json" {
		http.Error(rw, "not JSON", http.StatusUnsupportedMediaType)
		return false
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		http.Error(rw, "not a request of the approval page; reload the page", http.StatusBadRequest)
		return false
	}
	return true
}

// sendJSON sends a value as JSON and flushes it, so that the browser receives it immediately.
func sendJSON(rw http.ResponseWriter, value any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(value) // a write fails if the browser is gone
	if f, ok := rw.(http.Flusher); ok {
		f.Flush()
	}
}

// equalSecrets compares secrets in constant time.
func equalSecrets(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

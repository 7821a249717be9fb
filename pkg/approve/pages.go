package approve

import (
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

//go:embed web/index.html
var indexHTML string

//go:embed web/app.js
var appJS string

//go:embed web/style.css
var styleCSS string

// pages serves the page. Every other page that the person has open, and every
// name that an attacker lets resolve to this machine, can send requests here;
// so each of them must bear the right Host, posts the right Origin, and all but
// the empty page the cookie that was given for the token.
func (w *web) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", w.index)
	mux.HandleFunc("GET /app.js", static("text/javascript; charset=utf-8", &appJS))
	mux.HandleFunc("GET /style.css", static("text/css; charset=utf-8", &styleCSS))
	mux.HandleFunc("POST /session", w.session)
	mux.HandleFunc("GET /events", w.known(w.events))
	mux.HandleFunc("POST /answer", w.known(w.answered))
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h := rw.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		if why := w.foreign(r); why != "" {
			http.Error(rw, why, http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(rw, r.Body, maxPost)
		mux.ServeHTTP(rw, r)
	})
}

// foreign returns why a request does not come from this page, "" if it may.
func (w *web) foreign(r *http.Request) string {
	// By another name of this machine (DNS rebinding), the browser would take an
	// attacker's page for this one.
	if r.Host != w.host && r.Host != w.localhost() {
		return "unknown host"
	}
	origin := r.Header.Get("Origin")
	if origin == "" && r.Method != http.MethodGet || origin != "" && origin != "http://"+r.Host {
		return "foreign origin"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // absent, this page, typed by the person
		return ""
	default:
		if r.URL.Path == "/" && r.Method == http.MethodGet {
			return "" // a link that was clicked; the page says nothing without a token
		}
		return "foreign page"
	}
}

func (w *web) localhost() string {
	_, port, err := net.SplitHostPort(w.host)
	if err != nil {
		return ""
	}
	return net.JoinHostPort("localhost", port)
}

// index serves the page, which is empty until it has shown the token.
func (w *web) index(rw http.ResponseWriter, _ *http.Request) {
	nonce, err := randomHex(16)
	if err != nil {
		http.Error(rw, "no random numbers", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'", nonce))
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(rw, strings.ReplaceAll(indexHTML, "NONCE", nonce)) // the browser has gone
}

func static(kind string, text *string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(rw, *text) // the browser has gone
	}
}

// cookieName differs by port, since browsers share cookies between ports.
func (w *web) cookieName() string {
	_, port, _ := net.SplitHostPort(w.host)
	return "shield_" + port
}

// session gives a cookie for the token.
func (w *web) session(rw http.ResponseWriter, r *http.Request) {
	token, err := io.ReadAll(r.Body)
	if err != nil || !same(string(token), w.token) {
		http.Error(rw, "wrong token", http.StatusForbidden)
		return
	}
	cookie, err := randomHex(32)
	if err != nil {
		http.Error(rw, "no random numbers", http.StatusInternalServerError)
		return
	}
	w.mu.Lock()
	w.cookies = append(w.cookies, cookie)
	if len(w.cookies) > maxBrowsers {
		w.cookies = w.cookies[1:]
	}
	w.mu.Unlock()
	http.SetCookie(rw, &http.Cookie{Name: w.cookieName(), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	rw.WriteHeader(http.StatusNoContent)
}

// known lets only browsers through that have shown the token.
func (w *web) known(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(w.cookieName()); err != nil || !w.hasCookie(c.Value) {
			http.Error(rw, "open the link that shield has printed", http.StatusUnauthorized)
			return
		}
		next(rw, r)
	}
}

func (w *web) hasCookie(value string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := false
	for _, c := range w.cookies {
		if same(c, value) {
			found = true
		}
	}
	return found
}

// events sends the list of waiting requests, again whenever it changes.
func (w *web) events(rw http.ResponseWriter, r *http.Request) {
	flusher, ok := rw.(http.Flusher)
	if !ok {
		http.Error(rw, "no streaming", http.StatusInternalServerError)
		return
	}
	// The stream lasts longer than a request may take to arrive.
	if err := http.NewResponseController(rw).SetReadDeadline(time.Time{}); err != nil {
		http.Error(rw, "no streaming", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	changed, cancel := w.subscribe()
	defer cancel()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			_, err = io.WriteString(rw, ":\n\n")
		case <-changed:
			var list []byte
			if list, err = json.Marshal(w.list()); err == nil {
				_, err = fmt.Fprintf(rw, "data: %s\n\n", list)
			}
		}
		if err != nil {
			return
		}
		flusher.Flush()
	}
}

// answered takes an answer from the page.
func (w *web) answered(rw http.ResponseWriter, r *http.Request) {
	// A form of another page cannot send this type.
	if r.Header.Get("Content-Type") != "application/json" {
		http.Error(rw, "not JSON", http.StatusUnsupportedMediaType)
		return
	}
	var in struct {
		ID     string `json:"id"`
		Choice string `json:"choice"`
		Reason string `json:"reason"`
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		http.Error(rw, "not an answer", http.StatusBadRequest)
		return
	}
	a, err := chosen(in.Choice, in.Reason)
	if err != nil {
		http.Error(rw, "not a choice", http.StatusBadRequest)
		return
	}
	a.ID = in.ID
	if err := w.take(a); err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

// The choices that the page offers.
const (
	choiceDeny     = "deny"
	choiceWhy      = "why"
	choiceOnce     = "once"
	choiceRemember = "remember"
)

func chosen(choice, reason string) (Answer, error) {
	switch choice {
	case choiceDeny:
		return Answer{}, nil
	case choiceWhy:
		return Answer{Reason: strings.TrimSpace(reason)}, nil
	case choiceOnce:
		return Answer{Approve: true}, nil
	case choiceRemember:
		return Answer{Approve: true, Remember: rememberFor}, nil
	default:
		return Answer{}, errUnanswered
	}
}

// same compares secrets in constant time.
func same(a, b string) bool { return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

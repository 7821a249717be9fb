package approve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strings"
)

// Page and server prove to each other that they know the same secret, and
// neither sends it: while no process serves the page, any program can listen at
// its address, and what a browser sends there must be useless to it. The
// secret is the code of a link or, once a page was opened by one, the key.
//
//	page:    kind, its nonce
//	server:  its nonce, HMAC("shield server", host, both nonces)
//	page:    kind, the server's nonce, HMAC("shield page", host, both nonces)
//	server:  a cookie, good with this process alone, and the key

// nonceLength is the length of a nonce, in hex digits.
const nonceLength = 64

// A greeting is what the page sends; Proof only the second time.
type greeting struct {
	Kind  string `json:"kind"` // of secret: code or key
	Nonce string `json:"nonce"`
	Proof string `json:"proof,omitempty"`
}

func (s *server) secret(kind string) string {
	switch kind {
	case "code":
		return s.where().Code
	case "key":
		return s.page.Key
	default:
		return ""
	}
}

// prove returns the proof that who (server or page) knows the secret and speaks
// for host.
func prove(secret, who, host, pageNonce, serverNonce string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(strings.Join([]string{who, host, pageNonce, serverNonce}, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// hello proves to a browser that this is shield.
func (s *server) hello(rw http.ResponseWriter, r *http.Request) {
	var in greeting
	if !decode(rw, r, &in) {
		return
	}
	secret := s.secret(in.Kind)
	if secret == "" || len(in.Nonce) != nonceLength || strings.Trim(in.Nonce, "0123456789abcdef") != "" {
		http.Error(rw, "not a greeting", http.StatusBadRequest)
		return
	}
	nonce, err := randomHex(nonceLength / 2)
	if err != nil {
		http.Error(rw, "cannot draw random numbers", http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	s.challenges[nonce] = in.Nonce
	s.order = append(s.order, nonce)
	if len(s.order) > maxChallenges {
		delete(s.challenges, s.order[0])
		s.order = s.order[1:]
	}
	s.mu.Unlock()
	send(rw, greeting{Kind: in.Kind, Nonce: nonce, Proof: prove(secret, "shield server", r.Host, in.Nonce, nonce)})
}

// session gives a cookie and the key to a browser that knows a secret.
func (s *server) session(rw http.ResponseWriter, r *http.Request) {
	var in greeting
	if !decode(rw, r, &in) {
		return
	}
	s.mu.Lock()
	pageNonce, sent := s.challenges[in.Nonce]
	delete(s.challenges, in.Nonce) // good for one attempt
	s.mu.Unlock()
	secret := s.secret(in.Kind)
	if !sent || secret == "" || !same(in.Proof, prove(secret, "shield page", r.Host, pageNonce, in.Nonce)) {
		http.Error(rw, "wrong proof", http.StatusForbidden)
		return
	}
	cookie, err := randomHex(32)
	if err != nil {
		http.Error(rw, "cannot draw random numbers", http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	s.cookies = append(s.cookies, cookie)
	if len(s.cookies) > maxBrowsers {
		s.cookies = s.cookies[1:]
	}
	s.mu.Unlock()
	http.SetCookie(rw, &http.Cookie{Name: s.cookieName(), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	s.key(rw, r)
}

// key tells a page that was loaded again the key: it kept it in memory alone,
// where no page of another program can read it.
func (s *server) key(rw http.ResponseWriter, _ *http.Request) {
	send(rw, map[string]string{"key": s.page.Key})
}

// cookieName differs by port, since browsers share cookies between ports.
func (s *server) cookieName() string {
	_, port, _ := net.SplitHostPort(s.page.Address)
	return "shield_" + port
}

// known lets only browsers through that have proved that they know the secret.
func (s *server) known(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie(s.cookieName()); err != nil || !s.hasCookie(c.Value) {
			http.Error(rw, "open the link that 'shield approvals' prints", http.StatusUnauthorized)
			return
		}
		next(rw, r)
	}
}

func (s *server) hasCookie(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, c := range s.cookies {
		if same(c, value) {
			found = true
		}
	}
	return found
}

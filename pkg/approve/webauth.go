package approve

import (
	"cmp"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// The page and the server prove to each other that they know the same secret, and neither sends it:
// while no process serves the page, any program can listen at its address, and must not learn the
// secret from a browser. At first, the secret is derived from the code that a person types into the
// page; afterwards it is the key that the server sends to the page. A code is short, so
// [hashPageCode] derives the secret with a slow hash: a program that asks the server for its proof
// could otherwise try all codes against that proof.
//
//	page:    kind of secret, the page's nonce
//	server:  the server's nonce, the salt, HMAC("shield server", host, both nonces)
//	page:    kind of secret, the server's nonce, HMAC("shield page", host, both nonces)
//	server:  a cookie and a token, valid only together and only for this process, and the key
//
// A browser sends a cookie to every port of this machine, also to a server that an agent started
// and the person opens. The token is stored where only pages from this port can read it.

// nonceHexDigits is the length of a nonce, in hex digits.
const nonceHexDigits = 64

// A handshakeMessage is a message of the page; Proof is set only in the second one.
type handshakeMessage struct {
	Kind  string `json:"kind"` // kind of secret: code or key
	Nonce string `json:"nonce"`
	Proof string `json:"proof,omitempty"`
	Salt  string `json:"salt,omitempty"` // salt of the code; only the server sends it
}

// pageCodeHashRounds is how often PBKDF2 hashes a code, here and in app.js.
const pageCodeHashRounds = 300_000

// hashPageCode returns the salted PBKDF2 hash of the approval page's code, in hex. The hash is the secret that
// the page and the server prove to know.
func hashPageCode(code, salt string) (string, error) {
	key, err := pbkdf2.Key(sha256.New, strings.ReplaceAll(code, "-", ""), []byte(salt), pageCodeHashRounds, sha256.Size)
	return hex.EncodeToString(key), err
}

func (s *pageServer) handshakeSecret(handshakeKind string) string {
	switch handshakeKind {
	case "code":
		return s.pageCodeHash()
	case "key":
		return s.page.PageSecret
	default:
		return ""
	}
}

// pageCodeHash returns the hash of the page's current code, see [hashPageCode]; "" if it cannot be computed.
func (s *pageServer) pageCodeHash() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.codeHash == "" {
		s.codeHash, _ = hashPageCode(s.page.LoginCode, s.page.Salt) // if this fails, no browser gets access
	}
	return s.codeHash
}

// hasTooManyWrongCodes reports whether so many wrong codes were tried within a minute that codes
// are refused for now. If countOneMore is true, it first counts one more wrong code.
func (s *pageServer) hasTooManyWrongCodes(countOneMore bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock(); now.Sub(s.wrongCodesSince) >= time.Minute {
		s.wrongCodes, s.wrongCodesSince = 0, now
	}
	if countOneMore {
		s.wrongCodes++
	}
	return s.wrongCodes >= maxWrongCodesPerMinute
}

// computeSecretKnowledgeProof returns the proof that the prover (server or page) knows the secret. The proof is
// valid for this host and these nonces.
func computeSecretKnowledgeProof(secret, proverName, host, pageNonce, serverNonce string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(strings.Join([]string{proverName, host, pageNonce, serverNonce}, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// handleHandshakeHello proves to a browser that this is shield.
func (s *pageServer) handleHandshakeHello(rw http.ResponseWriter, r *http.Request) {
	var in handshakeMessage
	if !decodeJSON(rw, r, &in) {
		return
	}
	secret := s.handshakeSecret(in.Kind)
	if secret == "" || len(in.Nonce) != nonceHexDigits || strings.Trim(in.Nonce, "0123456789abcdef") != "" {
		http.Error(rw, "not a request of the approval page; reload the page", http.StatusBadRequest)
		return
	}
	nonce, err := randomHex(nonceHexDigits / 2)
	if err != nil {
		http.Error(rw, "no random numbers are available; restart shield", http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	s.browserNonceByServerNonce[nonce] = in.Nonce
	s.serverNoncesOldestFirst = append(s.serverNoncesOldestFirst, nonce)
	if len(s.serverNoncesOldestFirst) > maxOpenHandshakes {
		delete(s.browserNonceByServerNonce, s.serverNoncesOldestFirst[0])
		s.serverNoncesOldestFirst = s.serverNoncesOldestFirst[1:]
	}
	s.mu.Unlock()
	out := handshakeMessage{Kind: in.Kind, Nonce: nonce, Proof: computeSecretKnowledgeProof(secret, "shield server", r.Host, in.Nonce, nonce)}
	if in.Kind == "code" {
		out.Salt = s.currentPage().Salt
	}
	sendJSON(rw, out)
}

// handleBrowserLogin gives a cookie and the key to a browser that knows a secret.
func (s *pageServer) handleBrowserLogin(rw http.ResponseWriter, r *http.Request) {
	var in handshakeMessage
	if !decodeJSON(rw, r, &in) {
		return
	}
	s.mu.Lock()
	pageNonce, sent := s.browserNonceByServerNonce[in.Nonce]
	delete(s.browserNonceByServerNonce, in.Nonce) // valid for one attempt
	s.mu.Unlock()
	if in.Kind == "code" && s.hasTooManyWrongCodes(false) {
		http.Error(rw, "too many wrong codes; wait a minute", http.StatusTooManyRequests)
		return
	}
	secret := s.handshakeSecret(in.Kind)
	if !sent || secret == "" || !equalSecrets(in.Proof, computeSecretKnowledgeProof(secret, "shield page", r.Host, pageNonce, in.Nonce)) {
		s.hasTooManyWrongCodes(in.Kind == "code")
		http.Error(rw, "wrong code; type the code that 'shield approvals' prints", http.StatusForbidden)
		return
	}
	cookie, err := randomHex(32)
	token, err2 := randomHex(32)
	if err = errors.Join(err, err2); err != nil {
		http.Error(rw, "no random numbers are available; restart shield", http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	s.knownBrowsers = append(s.knownBrowsers, knownBrowser{cookie, token})
	if len(s.knownBrowsers) > maxBrowsers {
		s.knownBrowsers = s.knownBrowsers[1:]
	}
	s.mu.Unlock()
	http.SetCookie(rw, &http.Cookie{Name: s.cookieName(), Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	sendJSON(rw, map[string]string{"key": s.page.PageSecret, "token": token})
}

// handlePageSecretRequest sends PageSecret to a known browser after a reload of the page. The page keeps this
// secret only in memory, where no page of another program can read it, and so loses it on a reload. Other
// browsers get nothing.
func (s *pageServer) handlePageSecretRequest(rw http.ResponseWriter, r *http.Request) {
	if !s.isKnownBrowser(r) {
		rw.WriteHeader(http.StatusNoContent)
		return
	}
	sendJSON(rw, map[string]string{"key": s.page.PageSecret})
}

// A knownBrowser is a browser that has proved that it knows the approval page's code or PageSecret; cookie and
// token identify it.
type knownBrowser struct{ cookie, token string }

// tokenHeader is the header of the token; the event stream, for which a page cannot set a header, has
// the token in its URL.
const (
	tokenHeader         = "X-Shield-Token"
	tokenQueryParameter = "token"
)

// cookieName returns a name that differs by port, since browsers share cookies between ports.
func (s *pageServer) cookieName() string {
	_, port, _ := net.SplitHostPort(s.page.Address)
	return "shield_" + port
}

// requireKnownBrowser returns a handler that calls next for known browsers and rejects the requests of all
// others, see [pageServer.isKnownBrowser].
func (s *pageServer) requireKnownBrowser(next http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if !s.isKnownBrowser(r) {
			http.Error(rw, "open the approval page and type its code", http.StatusUnauthorized)
			return
		}
		next(rw, r)
	}
}

// isKnownBrowser reports whether a request has the cookie and the token of a browser in knownBrowsers.
func (s *pageServer) isKnownBrowser(r *http.Request) bool {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return false
	}
	token := cmp.Or(r.Header.Get(tokenHeader), r.URL.Query().Get(tokenQueryParameter))
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, b := range s.knownBrowsers {
		if equalSecrets(b.cookie, cookie.Value) && equalSecrets(b.token, token) {
			found = true
		}
	}
	return found
}

package modelstore

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
)

// downloadStallTimeout is how long a download can go without data before it fails.
const downloadStallTimeout = 60 * time.Second

// isURL reports whether a source is a URL rather than a path.
func isURL(source string) bool { return strings.Contains(source, "://") }

// checkURL parses and checks the URL of an archive. Its errors quote at most the host name, because
// the other parts can contain a password.
func checkURL(source string) (*url.URL, error) {
	u, err := url.Parse(source)
	switch {
	case err != nil:
		return nil, errors.New("the source is not a URL, folder or archive; write https://HOST/PATH or a path")
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the source is not a URL, folder or archive; write https://HOST/PATH or a path")
	case u.User != nil:
		return nil, errors.New("the URL must not contain a user or password; remove it")
	case u.Scheme == "http" && !effect.IsLoopbackHost(effect.CanonicalHost(u.Hostname())):
		return nil, fmt.Errorf("http to %.80q can be read and changed in transit; use https", u.Hostname())
	}
	return u, nil
}

// downloadArchive downloads an archive into f. The environment's proxy is not used, since
// an agent may have set it.
func downloadArchive(ctx context.Context, u *url.URL, f *os.File) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(downloadStallTimeout, func() {
		cancel(fmt.Errorf("the server sent no data for %v; check the connection and try again", downloadStallTimeout))
	})
	defer stalled.Stop()
	transport := &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:     true, // the digest is that of the bytes that are sent
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if u.Scheme == "http" {
		transport.DialContext = (&net.Dialer{Control: effect.RefuseNonLoopbackDial}).DialContext
	}
	client := &http.Client{
		Transport: transport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || len(via) > 5 {
				return errors.New("too many redirects, or a redirect to a URL without https; use the final URL")
			}
			return nil
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the URL may hold a token
		}
		return contextCause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers with HTTP status %d instead of 200; check the URL", resp.StatusCode)
	}
	body := &limitedReader{r: stallTimerReader{resp.Body, stalled}, bytesLeft: maxModelBytes}
	if _, err := io.Copy(f, body); err != nil {
		return contextCause(ctx, err)
	}
	return nil
}

// contextCause returns why a context ended, if it did.
func contextCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// A stallTimerReader restarts a timer whenever it reads data.
type stallTimerReader struct {
	r          io.Reader
	stallTimer *time.Timer
}

func (p stallTimerReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n > 0 {
		p.stallTimer.Reset(downloadStallTimeout)
	}
	return n, err
}

// checkSum returns an error unless want is the SHA-256 of the file, in hex.
func checkSum(ctx context.Context, f *os.File, want string) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, contextReader{ctx, f}); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != strings.ToLower(want) {
		return fmt.Errorf("the archive has the SHA-256 digest %s instead of %.64s: it was changed, or --sha256 is wrong; compare both with the publisher's digest", got, want)
	}
	return nil
}

package bundle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/owner"
)

// Limits of a download.
const (
	downloadTimeout = 30 * time.Second
	maxRedirects    = 3
)

// IsURL reports whether a source is a URL rather than a path.
func IsURL(source string) bool { return strings.Contains(source, "://") }

// CheckSourceURL returns an error for a URL that must not be downloaded from.
func CheckSourceURL(source string) error {
	if !IsURL(source) {
		return nil
	}
	u, err := url.Parse(source)
	switch {
	case err != nil:
		return errors.New("the address is not a URL; write https://HOST/PATH or the path of a file")
	case u.Scheme != "https" || u.Hostname() == "":
		return errors.New("the address is neither a file nor an https URL; write https://HOST/PATH or the path of a file")
	case u.User != nil:
		return errors.New("the URL must not contain a user or password; remove it")
	}
	return nil
}

// RedactSourceURL returns a source for messages: a URL without its query, which can contain a token.
func RedactSourceURL(source string) string {
	if u, err := url.Parse(source); err == nil && IsURL(source) {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		return u.String()
	}
	return source
}

// FetchArchive reads an archive from a file or downloads it. roots, if not nil, replace the system's
// certificates. Proxy variables are ignored, since an agent can set them.
func FetchArchive(ctx context.Context, pathOrURL string, roots *x509.CertPool) ([]byte, error) {
	if err := CheckSourceURL(pathOrURL); err != nil {
		return nil, err
	}
	if !IsURL(pathOrURL) {
		data, _, err := owner.ReadRegularFile(pathOrURL, MaxArchiveBytes)
		return data, err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			DisableCompression:     true,
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects, or a redirect to a URL without https; use the final URL", maxRedirects)
			}
			return nil
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pathOrURL, nil)
	if err != nil {
		return nil, errors.New("the address is not a URL; write https://HOST/PATH or the path of a file")
	}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the URL can contain a token
		}
		return nil, describeTimeout(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with HTTP status %d instead of 200; check policy.bundle", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxArchiveBytes+1))
	if err != nil {
		return nil, describeTimeout(ctx, err)
	}
	if len(data) > MaxArchiveBytes {
		return nil, fmt.Errorf("the file is larger than %d MiB; ask its publisher for a smaller one", MaxArchiveBytes>>20)
	}
	return data, nil
}

// describeTimeout returns an error that names the time limit if a download exceeded it, or else the same error.
func describeTimeout(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the download did not finish within %v and was stopped; check the connection and try again", downloadTimeout)
	}
	return err
}

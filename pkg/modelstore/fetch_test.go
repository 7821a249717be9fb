package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

func TestDownload(t *testing.T) {
	t.Parallel()
	archive := gzipped(tarOf(t, inOrder("m/", plain())...))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(srv.Close)
	s := newStore(t)
	m, err := s.Install(t.Context(), srv.URL+"/a/tiny.tgz?token=hunter2#x", InstallOptions{ArchiveSHA256Hex: strings.ToUpper(sum(archive))})
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "tiny" || m.Source != srv.URL+"/a/tiny.tgz" {
		t.Errorf("manifest %+v; the source must not have the token", m)
	}
	if _, problems, err := s.DigestAndManifestDifferences(t.Context(), "tiny"); problems != nil || err != nil {
		t.Errorf("%q, error %v", problems, err)
	}
}

func TestDownloadRefuses(t *testing.T) {
	t.Parallel()
	archive := gzipped(tarOf(t, inOrder("m/", plain())...))
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/tiny", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write(archive)
	})
	mux.HandleFunc("/not-found", http.NotFound)
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/tiny", http.StatusFound) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(archive)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	good := sum(archive)
	for name, tt := range map[string]struct{ source, sum, want string }{
		"no digest":           {srv.URL + "/tiny", "", "needs --sha256"},
		"a digest too short":  {srv.URL + "/tiny", good[:32], "64 hexadecimal digits"},
		"another digest":      {srv.URL + "/tiny", strings.Repeat("0", 64), "the archive has the SHA-256 digest " + good},
		"not found":           {srv.URL + "/not-found", good, "status 404"},
		"without https":       {srv.URL + "/moved", good, "without https"},
		"cut":                 {srv.URL + "/cut", good, "unexpected EOF"},
		"http":                {"http://models.example/tiny", good, "use https"},
		"http of a network":   {"http://10.0.0.1/tiny", good, "use https"},
		"localhost of others": {"http://localhost.example/tiny", good, "use https"},
		"password":            {"https://me:hunter2@models.example/tiny", good, "user or password"},
		"other scheme":        {"ftp://models.example/tiny", good, "the source is not a URL, folder or archive; write https://HOST/PATH or a path"},
		"file":                {"file:///tmp/tiny", good, "the source is not a URL, folder or archive; write https://HOST/PATH or a path"},
		"no host":             {"https:///tiny", good, "the source is not a URL, folder or archive; write https://HOST/PATH or a path"},
		"no URL":              {"https://models.example/%zz/tiny", good, "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			s := newStore(t)
			_, err := s.Install(t.Context(), tt.source, InstallOptions{Name: "tiny", ArchiveSHA256Hex: tt.sum})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if asked.Load() > 0 && name != "another digest" {
				t.Error("it was downloaded")
			}
			if left := seen(t, s); len(left) != 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// TestTakenNameIsNotDownloaded holds that nothing is fetched in vain.
func TestTakenNameIsNotDownloaded(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was downloaded") }))
	t.Cleanup(srv.Close)
	s := newStore(t)
	if _, err := s.Install(t.Context(), folder(t, plain()), InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Install(t.Context(), srv.URL+"/tiny.tgz", InstallOptions{ArchiveSHA256Hex: strings.Repeat("0", 64)}); !errors.Is(err, ErrExists) {
		t.Errorf("%v, want ErrExists", err)
	}
}

func TestDownloadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "some")
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	s := newStore(t)
	if _, err := s.Install(ctx, srv.URL+"/tiny", InstallOptions{ArchiveSHA256Hex: strings.Repeat("0", 64)}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	if left := seen(t, s); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

// TestDownloadIgnoresProxies: were the environment's proxy used, nothing would
// come. Not parallel: it sets the environment.
func TestDownloadIgnoresProxies(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	archive := gzipped(tarOf(t, inOrder("m/", plain())...))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(srv.Close)
	u, err := checkURL(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := downloadArchive(t.Context(), u, f); err != nil {
		t.Error(err)
	}
}

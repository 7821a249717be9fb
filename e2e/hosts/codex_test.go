//go:build unix

package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHostsCodexTrust holds that Codex skips a hook that no person has trusted, that
// hook status says so, and that both see it when a person has.
func TestHostsCodexTrust(t *testing.T) {
	d := driverOf("codex")
	installed(t, d)
	d.args = slices.DeleteFunc(slices.Clone(d.args), func(a string) bool { return a == "--dangerously-bypass-hook-trust" })
	c := call{"shell", "touch unwanted"}
	r := newRun(t, d, []call{c}, "")
	if out, err := r.command(time.Minute, r.shield, "hook", "install", "--permission-request", "--timeout", "20s", "codex"); err != nil {
		t.Fatal(out)
	}
	r.env = append(r.env, "CODEX_HOME="+filepath.Join(r.home, ".codex"))
	if out := r.start(); !r.ran(c) {
		t.Errorf("Codex does not skip a hook that is not trusted any more: %.800s", out)
	}
	if out, err := r.command(time.Minute, r.shield, "hook", "status", "codex"); err == nil {
		t.Errorf("status calls a hook enforced that is not trusted: %.800s", out)
	}
	out, err := r.command(time.Minute, "sh", "-c", `(printf '%s\n' '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"},"capabilities":{"experimentalApi":true}}}' '{"method":"initialized"}' '{"id":2,"method":"hooks/list","params":{"cwds":["'"$PWD"'"]}}'; sleep 5) | `+r.program()+` app-server`)
	hooks := regexp.MustCompile(`"key":"([^"]*hooks.json:\w+:0:0)".*?"currentHash":"([^"]*)"`).FindAllStringSubmatch(out, -1)
	if len(hooks) != 3 {
		t.Fatalf("Codex does not list a hook before tools, one after them and one before questions: %v\n%.2000s", err, out)
	}
	config := filepath.Join(r.home, ".codex", "config.toml")
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(hooks, func(a, b []string) int { return strings.Compare(b[1], a[1]) }) // the one before tools is first, and the one before questions last
	trust := string(before)
	for i, m := range hooks {
		trust += fmt.Sprintf("[hooks.state.%q]\ntrusted_hash = %q\n", m[1], m[2])
		r.write(config, trust)
		out, err := r.command(time.Minute, r.shield, "hook", "status", "codex")
		results, questions := strings.Contains(out, "tool results are"), strings.Contains(out, "shield does not answer all permission prompts of the host")
		if err != nil || results != (i < 1) || questions != (i < 2) {
			t.Errorf("status does not see the trust of %d hooks that Codex wrote: %v, %.800s", i+1, err, out)
		}
	}
	if err := os.Remove(filepath.Join(r.work, "unwanted")); err != nil {
		t.Fatal(err)
	}
	r.model.bodies = nil
	if out := r.start(); r.ran(c) || !r.model.saw(reason) {
		t.Errorf("a trusted hook does not deny: %.800s", out)
	}
}

//go:build unix

package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mark is in the environment of the server, which one of its tools prints.
const mark = "windmill"

// TestHostsGateway has hosts call tools of a server from npm through shield mcp, which
// 'shield mcp install' puts before it, and no hook: what is allowed runs, what is denied
// does not and the model is told why.
func TestHostsGateway(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			installed(t, d)
			if d.servers.file == "" {
				t.Skip("shield mcp install does not know its list")
			}
			record(t, d.name, through(t, d))
		})
	}
}

func through(t *testing.T, d driver) map[string]string {
	server := filepath.Join(hostsFolder, "server-everything", "node_modules", ".bin", "mcp-server-everything")
	if _, err := os.Stat(server); err != nil {
		t.Skipf("not installed: %v", err)
	}
	r := newRun(t, d, []call{{"mcp", "get-sum"}, {"mcp", "get-env"}}, "")
	d.servers.apply(r)
	list := filepath.Join(r.home, d.servers.file)
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	r.write(list, strings.ReplaceAll(string(text), "@EVERYTHING@", server))
	if out, err := r.command(time.Minute, r.shield, "mcp", "install", d.name); err != nil || !strings.Contains(out, "everything") {
		t.Fatalf("%v: %s", err, out)
	}
	out := r.start()
	row := map[string]string{"gateway allowed": "ran", "gateway denied": "blocked, told why"}
	if !r.model.saw("The sum of 1 and 1 is 2") {
		row["gateway allowed"] = "BLOCKED"
		t.Errorf("get-sum did not run: %.800s\n%s", out, r.model.told("shield"))
	}
	switch {
	case r.model.saw(mark):
		row["gateway denied"] = "RAN"
		t.Errorf("the model read the environment of the server: %.800s", out)
	case !r.model.saw(reason):
		row["gateway denied"] = "NOT ASKED"
		t.Errorf("the model was not told why: %.800s\n%s", out, r.model.told("shield"))
	}
	return row
}

//go:build unix

package hosts

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/host"
)

// columns are the properties, in the order of docs/hosts.md.
var columns = []string{"shell allowed", "write allowed", "mcp allowed", "shell denied", "write denied", "mcp denied",
	"missing", "killed", "hanging", "garbage", "silent", "log line before the answer"}

// record puts what was seen of a host into the table that SHIELD_HOSTS_DOC names,
// in place of what was seen of it before.
func record(t *testing.T, name string, row map[string]string) {
	t.Helper()
	path := os.Getenv("SHIELD_HOSTS_DOC")
	if path == "" {
		return
	}
	h, err := host.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cells := []string{h.Title(), versionOf(name), time.Now().UTC().Format(time.DateOnly)}
	for _, c := range columns {
		cells = append(cells, row[c])
	}
	line := "| " + strings.Join(cells, " | ") + " |"
	var out []string
	found := false
	lines := strings.Split(string(doc), "\n")
	for i, old := range lines {
		switch {
		case strings.HasPrefix(old, "| "+h.Title()+" |"):
			old, found = line, true
		case !found && strings.HasPrefix(old, "|") && (i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "|")):
			if !strings.HasPrefix(lines[i], "| "+h.Title()) {
				out, old, found = append(out, old), line, true
			}
		}
		out = append(out, old)
	}
	if !found {
		t.Fatal(fmt.Errorf("%s has no table", path))
	}
	if err := os.WriteFile(path, []byte(strings.Join(out, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

package cmd

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/ancestry"
)

// TestClientSession holds which gateways share a session: those of one client,
// and no others.
func TestClientSession(t *testing.T) {
	t.Parallel()
	known := map[int]ancestry.Process{
		10: {Name: "client", Parent: 1, StartTicks: 700}, 11: {Name: "sh", Parent: 10, StartTicks: 800}, 12: {Name: "env", Parent: 11, StartTicks: 801},
		20: {Name: "an (odd) one) S 9", Parent: 1, StartTicks: 900}, 30: {Name: "bash", Parent: 1, StartTicks: 950}, 60: {Name: "sh", Parent: 40, StartTicks: 5},
		70: {Name: "client", StartTicks: 3}, // the first process of a container
	}
	for pid := range maxLauncherDepth + 1 {
		known[100+pid] = ancestry.Process{Name: "sh", Parent: 101 + pid, StartTicks: 9}
	}
	above := func(pid int) (out []ancestry.Process) {
		for p, ok := known[pid]; ok; p, ok = known[pid] {
			p.PID = pid
			out = append(out, p)
			pid = p.Parent
		}
		return out
	}
	for parent, want := range map[int]string{
		10: "mcp-10-700", 11: "mcp-10-700", 12: "mcp-10-700", 20: "mcp-20-900", 30: "mcp-30-950", 40: "mcp-40", 60: "mcp-40", 70: "mcp-70-3", 99: "mcp-99", 100: "mcp-108",
	} {
		if got := mcpClientSessionID(parent, above(parent)); got != want {
			t.Errorf("started by %d: %s, want %s", parent, got, want)
		}
	}
}

// TestHostProcesses: the host is the first process above a hook that is neither shield
// nor what starts it.
func TestHostProcesses(t *testing.T) {
	t.Parallel()
	w := &Environment{judgePID: 50, ShieldExecutablePath: "/usr/bin/shield"}
	chain := []ancestry.Process{
		{PID: 50, Name: "shield", StartTicks: 9}, {PID: 49, Name: "shield", Exe: "/usr/bin/shield", StartTicks: 8}, {PID: 48, Name: "timeout", StartTicks: 7},
		{PID: 47, Name: "sh", StartTicks: 6}, {PID: 46, Name: "claude", StartTicks: 5}, {PID: 45, Name: "bash", StartTicks: 4}, {PID: 44, Name: "claude", StartTicks: 3},
	}
	if got := strings.Join(hostProcessNames(w, chain), " "); got != "46-5 45-4 44-3" {
		t.Error(got)
	}
	if got := hostProcessNames(w, nil); got != nil {
		t.Error(got)
	}
}

package cmd

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestClientSession holds which gateways share a session: those of one client,
// and no others.
func TestClientSession(t *testing.T) {
	t.Parallel()
	line := func(name string, parent, start int) string {
		return fmt.Sprintf("1 (%s) S %d %s%d 0", name, parent, strings.Repeat("0 ", 17), start)
	}
	stats := map[int]string{
		10: line("client", 1, 700), 11: line("sh", 10, 800), 12: line("env", 11, 801), 20: line("an (odd) one) S 9", 1, 900),
		30: line("bash", 1, 950), 40: "40 (cut", 50: line("sh", 50, 1), 60: line("sh", 40, 5),
	}
	for parent, want := range map[int]string{
		10: "mcp-10-700", 11: "mcp-10-700", 12: "mcp-10-700", 20: "mcp-20-900", 30: "mcp-30-950", 40: "mcp-40", 50: "mcp-50", 60: "mcp-40", 99: "mcp-99",
	} {
		if got := clientSession(parent, func(pid int) string { return stats[pid] }); got != want {
			t.Errorf("started by %d: %s, want %s", parent, got, want)
		}
	}
	if text := procStat(os.Getpid()); text != "" {
		if _, parent, start := processStat(text); parent != os.Getppid() || start == "" {
			t.Errorf("%q: parent %d, start %q", text, parent, start)
		}
	}
}

package cmd

import (
	"fmt"
	"slices"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/shield"
)

// launcherPrograms are programs that are between a client and the gateway without being
// the client: the shells by which some clients start their servers.
var launcherPrograms = []string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "env", "cmd.exe"}

// maxStarters is how many of them may stand one behind the other.
const maxStarters = 8

// clientSession returns the session of what an MCP client does through all of its
// servers: what it reads through one may leave through another. The client is the
// process that has started this one, named by its ID and, on Linux, its time of
// start, so that a later process with the same ID has a session of its own. above are
// the parent and its ancestors.
func clientSession(parent int, above []ancestry.Process) string {
	for i, p := range above {
		if i == maxStarters {
			break
		}
		if !slices.Contains(launcherPrograms, p.Name) || p.Parent <= 1 {
			return fmt.Sprintf("mcp-%d-%d", p.PID, p.Start)
		}
		parent = p.Parent
	}
	return fmt.Sprintf("mcp-%d", parent)
}

// hostProcesses returns names of the process of the host that waits for this one and of
// those above it, the nearest first; none where that cannot be told. Shells, timeout and
// shield itself are between a host and its hook.
func hostProcesses(w *World, above []ancestry.Process) (out []string) {
	for _, p := range above {
		between := slices.Contains(launcherPrograms, p.Name) || p.Name == "timeout" || p.PID == w.pid || w.Executable != "" && p.Exe == w.Executable
		if len(out) > 0 || !between {
			out = append(out, fmt.Sprintf("%d-%d", p.PID, p.Start))
		}
	}
	return out
}

// sessionsOf has sessions be the word of a host, of which this process is asked one.
func sessionsOf(cfg *shield.Config, w *World, host, parent string) {
	cfg.Host, cfg.Parent = host, parent
	cfg.Processes = func() []string {
		above, _ := ancestry.Of(w.pid) // those that could be read are enough: a host above them is not found
		return hostProcesses(w, above)
	}
}

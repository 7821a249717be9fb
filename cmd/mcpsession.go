package cmd

import (
	"fmt"
	"slices"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/shield"
)

// mcpServerLauncherPrograms are programs between a client and the gateway that are not the client: the shells,
// and env, with which some clients start servers.
var mcpServerLauncherPrograms = []string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "env", "cmd.exe"}

// maxLauncherDepth is how many launchers may be nested.
const maxLauncherDepth = 8

// mcpClientSessionID returns the session of an MCP client, one for all its servers: data read
// through one server may leave through another. The client is the process that started this one,
// identified by its ID and, on Linux, its start time, so that a later process with the same ID gets
// another session. ancestors are the parent and its ancestors.
func mcpClientSessionID(parentPID int, ancestors []ancestry.Process) string {
	for i, p := range ancestors {
		if i == maxLauncherDepth {
			break
		}
		if !slices.Contains(mcpServerLauncherPrograms, p.Name) || p.Parent <= 1 {
			return fmt.Sprintf("mcp-%d-%d", p.PID, p.StartTicks)
		}
		parentPID = p.Parent
	}
	return fmt.Sprintf("mcp-%d", parentPID)
}

// hostProcessNames returns the names of the host process that waits for this one and of its ancestors,
// nearest first; none if unknown. Shells, timeout and shield itself may be between a host and its
// hook.
func hostProcessNames(w *Environment, above []ancestry.Process) (out []string) {
	for _, p := range above {
		between := slices.Contains(mcpServerLauncherPrograms, p.Name) || p.Name == "timeout" || p.PID == w.judgePID || w.ShieldExecutablePath != "" && p.Exe == w.ShieldExecutablePath
		if len(out) > 0 || !between {
			out = append(out, fmt.Sprintf("%d-%d", p.PID, p.StartTicks))
		}
	}
	return out
}

// setSessionOrigin marks sessions as reported by a host, with the given parent session.
func setSessionOrigin(cfg *shield.Config, w *Environment, hostName, parentSessionID string) {
	cfg.AgentHostName, cfg.ParentSessionID = hostName, parentSessionID
	cfg.HostAndAncestorProcessNames = func() []string {
		above, _ := ancestry.ProcessAndAncestors(w.judgePID) // ignore the error: it only hides ancestors, so the host may not be found
		return hostProcessNames(w, above)
	}
}

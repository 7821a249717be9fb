package cmd

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// starters are programs that stand between a client and the gateway without being
// the client: the shells by which some clients start their servers.
var starters = []string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "env", "cmd.exe"}

// maxStarters is how many of them may stand one behind the other.
const maxStarters = 8

// clientSession returns the session of what an MCP client does through all of its
// servers: what it reads through one may leave through another. The client is the
// process that has started this one, named by its ID and, on Linux, its time of
// start, so that a later process with the same ID has a session of its own.
func clientSession(parent int, stat func(pid int) string) string {
	for range maxStarters {
		name, above, start := processStat(stat(parent))
		if start == "" {
			break
		}
		if !slices.Contains(starters, name) || above <= 1 {
			return fmt.Sprintf("mcp-%d-%s", parent, start)
		}
		parent = above
	}
	return fmt.Sprintf("mcp-%d", parent)
}

// procStat returns what Linux says of a process; "" elsewhere.
func procStat(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return string(text)
}

// processStat returns a process's name, its parent and when it has started, in
// ticks since the machine did; no start if the text says none of it.
func processStat(text string) (name string, parent int, start string) {
	_, rest, ok := strings.Cut(text, "(")
	end := strings.LastIndexByte(rest, ')') // a name may hold brackets itself
	if !ok || end < 0 {
		return "", 0, ""
	}
	fields := strings.Fields(rest[end+1:]) // from the third on
	if len(fields) < 20 {
		return "", 0, ""
	}
	parent, err := strconv.Atoi(fields[1])
	if _, number := strconv.ParseUint(fields[19], 10, 64); err != nil || number != nil {
		return "", 0, ""
	}
	return rest[:end], parent, fields[19]
}

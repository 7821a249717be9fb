package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// Judged is in the environment of a command that shield judged and runs: its children can
// take it out of their own, and not out of its.
const Judged = "SHIELD_JUDGED=1"

// CleanEnv returns an environment without the variables that make some program
// run or load something other than what it was told, and with no relative
// folder in PATH, where a program's name would find a file of the workspace.
// Variables that a person asked to keep stay as they are. gone names what was
// dropped, in order.
func CleanEnv(env, keep []string) (out, gone []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		kept := slices.ContainsFunc(keep, func(k string) bool { return strings.EqualFold(k, name) })
		switch {
		case kept:
		case knowledge.Changes(name):
			gone = append(gone, name)
			continue
		case strings.EqualFold(name, "PATH"):
			entry = name + "=" + absoluteFolders(value)
		}
		out = append(out, entry)
	}
	slices.Sort(gone)
	return out, slices.Compact(gone)
}

// absoluteFolders returns a search path without its relative and empty
// elements. It is never empty, which shells take for the current folder.
func absoluteFolders(list string) string {
	folders := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
	if len(folders) == 0 {
		return "/usr/bin:/bin"
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

// variable returns the value of a variable in an environment; "" if it is not
// there.
func variable(env []string, name string) string {
	for _, entry := range env {
		if n, value, ok := strings.Cut(entry, "="); ok && (n == name || filepath.Separator == '\\' && strings.EqualFold(n, name)) {
			return value
		}
	}
	return ""
}

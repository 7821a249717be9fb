package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// JudgedCommandEnvEntry is set in the environment of a command that shield judged and runs. Its children can remove
// it from their own environment, but not from the command's.
const JudgedCommandEnvEntry = "SHIELD_JUDGED=1"

// DropCodeLoadingVariables returns an environment without variables that make programs load or run
// other code, and without relative folders in PATH. Variables in keptNames are not changed.
// droppedNames are the names of the dropped variables, sorted.
func DropCodeLoadingVariables(env, keptNames []string) (cleanedEnv, droppedNames []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		kept := slices.ContainsFunc(keptNames, func(k string) bool { return strings.EqualFold(k, name) })
		switch {
		case kept:
		case knowledge.VariableLoadsCode(name):
			droppedNames = append(droppedNames, name)
			continue
		case strings.EqualFold(name, "PATH"):
			entry = name + "=" + searchPathOfAbsoluteFolders(value)
		}
		cleanedEnv = append(cleanedEnv, entry)
	}
	sorted.SortStrings(droppedNames)
	return cleanedEnv, slices.Compact(droppedNames)
}

// searchPathOfAbsoluteFolders returns a search path without relative and empty elements. It is never empty, since
// shells interpret an empty one as the current folder.
func searchPathOfAbsoluteFolders(searchPath string) string {
	folders := slices.DeleteFunc(filepath.SplitList(searchPath), func(dir string) bool { return !filepath.IsAbs(dir) })
	if len(folders) == 0 {
		return "/usr/bin:/bin"
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

// lookupVariable returns the value of a variable in an environment; "" if it is not
// there.
func lookupVariable(env []string, name string) string {
	for _, entry := range env {
		if n, value, ok := strings.Cut(entry, "="); ok && (n == name || filepath.Separator == '\\' && strings.EqualFold(n, name)) {
			return value
		}
	}
	return ""
}

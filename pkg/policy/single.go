package policy

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Policy files, and links on their path, may be among files that the agent works
// with. An effect on the whole folder counts less there than elsewhere: a search
// of the workspace does not count as reading the policy, and a tool that may write
// anywhere in the workspace only possibly writes to it.

// single reports whether a glob is for such files.
func (n names) single() bool { return n.glob == "$SHIELD_POLICY" || n.glob == "$SHIELD_WAY" }

// isSingle reports whether a path is such a file.
func (x *index) isSingle(path string) bool {
	return slices.ContainsFunc(x.single, func(file string) bool { return strings.EqualFold(file, path) })
}

// meetsSingle reports whether an effect on a pattern could change such a file
// itself, not only something below a folder that the pattern also matches.
func (x *index) meetsSingle(e *effect.Effect) bool {
	return e.Kind != effect.ReadFile && slices.ContainsFunc(x.single, func(file string) bool {
		return e.Recursive || effect.Overlap(e.Path, effect.Quote(file), true)
	})
}

// holdsRoot reports whether a workspace folder is folder or inside it.
func (x *index) holdsRoot(folder string) bool {
	folder = strings.TrimSuffix(folder, "/") + "/"
	return slices.ContainsFunc(x.roots, func(root string) bool { return strings.HasPrefix(root+"/", folder) })
}

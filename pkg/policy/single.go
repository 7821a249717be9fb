package policy

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Files of policy, and links on the way to them, may lie among files that the
// agent works with. What an effect does to the whole folder says less there
// than elsewhere: a search of the workspace is no look at the policy, and a
// tool that may write anywhere in the workspace only perhaps writes to it.

// single reports whether a glob is about such files.
func (n names) single() bool { return n.glob == "$SHIELD_POLICY" || n.glob == "$SHIELD_WAY" }

// isSingle reports whether a path is that of such a file.
func (x *index) isSingle(path string) bool {
	return slices.ContainsFunc(x.single, func(file string) bool { return strings.EqualFold(file, path) })
}

// meetsSingle reports whether an effect on a pattern could change such a file
// itself, rather than one below a folder that the pattern also fits.
func (x *index) meetsSingle(e *effect.Effect) bool {
	return e.Kind != effect.ReadFile && slices.ContainsFunc(x.single, func(file string) bool {
		return e.Recursive || effect.Overlap(e.Path, effect.Quote(file), true)
	})
}

// holdsRoot reports whether a workspace folder is, or lies in, the one given.
func (x *index) holdsRoot(folder string) bool {
	folder = strings.TrimSuffix(folder, "/") + "/"
	return slices.ContainsFunc(x.roots, func(root string) bool { return strings.HasPrefix(root+"/", folder) })
}

package policy

import (
	"path"
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

// holdsLoneFiles reports whether such a file lies directly in a folder, other than
// that of a workspace, in which all kinds of files are written all day.
func (x *index) holdsLoneFiles(folder string) bool {
	return !slices.Contains(x.roots, folder) && slices.ContainsFunc(x.single, func(file string) bool {
		return strings.EqualFold(path.Dir(file), folder)
	})
}

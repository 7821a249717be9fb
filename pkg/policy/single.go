package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Policy files, and links on their path, may be in folders in which the agent works. Effects on the whole
// folder are weaker evidence there: a search of the workspace does not count as reading the policy, and a
// tool that may write anywhere in the workspace only possibly writes to the policy.

// isForPolicyFiles reports whether a glob is $SHIELD_POLICY, the policy files, or $SHIELD_WAY, those parent
// folders of shield's files that are symbolic links or do not exist.
func (n segmentGlob) isForPolicyFiles() bool {
	return n.glob == "$SHIELD_POLICY" || n.glob == "$SHIELD_WAY"
}

// isPolicyPath reports whether a path is a policy file, or a parent of shield's files that is a link or missing.
func (x *ruleIndex) isPolicyPath(path string) bool {
	return slices.ContainsFunc(x.policyPaths, func(file string) bool { return strings.EqualFold(file, path) })
}

// mayChangePolicyPath reports whether an effect on a pattern could change a policy file itself, not only a file below
// a folder that the pattern also matches.
func (x *ruleIndex) mayChangePolicyPath(e *effect.Effect) bool {
	return e.Kind != effect.ReadFile && slices.ContainsFunc(x.policyPaths, func(file string) bool {
		return e.Recursive || effect.PatternsOverlap(e.Path, effect.QuoteGlobMeta(file), true)
	})
}

// holdsPolicyFile reports whether a folder directly contains a policy file and is not a workspace root, in
// which files are written all the time.
func (x *ruleIndex) holdsPolicyFile(folder string) bool {
	return !slices.Contains(x.workspaceRoots, folder) && slices.ContainsFunc(x.policyPaths, func(file string) bool {
		return strings.EqualFold(path.Dir(file), folder)
	})
}

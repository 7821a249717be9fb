// Package facts defines the stored form of a kind of action. A person's answer that is bound to a
// kind also applies to later actions of this kind.
package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// An ActionKind describes a kind of action by facts and findings. It covers every action whose
// facts and findings are a subset of its own.
type ActionKind struct {
	ActionFactTexts             []string `json:"facts" yaml:"facts"`       // sorted
	MatchedRuleAndClassifierIDs []string `json:"findings" yaml:"findings"` // IDs of rules and classifiers that matched; sorted
}

// Covers reports whether every action of kind o is also of kind k.
func (k *ActionKind) Covers(o *ActionKind) bool {
	return len(o.ActionFactTexts) > 0 && isSubset(o.ActionFactTexts, k.ActionFactTexts) && isSubset(o.MatchedRuleAndClassifierIDs, k.MatchedRuleAndClassifierIDs)
}

func isSubset(some, of []string) bool {
	for _, s := range some {
		if !slices.Contains(of, s) {
			return false
		}
	}
	return true
}

// Key returns a text that identifies a kind.
func (k *ActionKind) Key() string {
	h := sha256.New()
	for _, list := range [][]string{k.ActionFactTexts, k.MatchedRuleAndClassifierIDs} {
		fmt.Fprintf(h, "%d", len(list))
		for _, s := range list {
			fmt.Fprintf(h, " %d:%s", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// CoversOnlyOneAction reports whether the kind is bound to the hash of a single action, so that it covers only
// repetitions of this action.
func (k *ActionKind) CoversOnlyOneAction() bool {
	return len(k.ActionFactTexts) > 0 && strings.HasPrefix(k.ActionFactTexts[0], "action ")
}

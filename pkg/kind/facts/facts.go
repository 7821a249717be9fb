// Package facts is what a standing answer stores of a kind of action.
package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A Kind is what is known of a kind of action. It covers an action whose facts and findings
// are among its own.
type Kind struct {
	Facts    []string `json:"facts" yaml:"facts"`       // sorted
	Findings []string `json:"findings" yaml:"findings"` // what rules and classifiers said; sorted
}

// Covers reports whether an action of another kind is one of this.
func (k *Kind) Covers(o *Kind) bool {
	return len(o.Facts) > 0 && within(o.Facts, k.Facts) && within(o.Findings, k.Findings)
}

func within(some, of []string) bool {
	for _, s := range some {
		if !slices.Contains(of, s) {
			return false
		}
	}
	return true
}

// Key identifies a kind.
func (k *Kind) Key() string {
	h := sha256.New()
	for _, list := range [][]string{k.Facts, k.Findings} {
		fmt.Fprintf(h, "%d", len(list))
		for _, s := range list {
			fmt.Fprintf(h, " %d:%s", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// String returns the facts for a person, the programs first.
func (k *Kind) String() string {
	var first, rest []string
	for _, f := range k.Facts {
		if strings.HasPrefix(f, "run ") || strings.HasPrefix(f, "tool ") {
			first = append(first, f)
		} else {
			rest = append(rest, f)
		}
	}
	return strings.Join(append(first, rest...), "; ")
}

// IsExact reports whether a kind holds one action alone.
func (k *Kind) IsExact() bool { return len(k.Facts) > 0 && strings.HasPrefix(k.Facts[0], "action ") }

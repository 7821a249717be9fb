package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// globLists matches file names against several lists of globs (forms) at once.
type globLists struct {
	globs       *effect.Globs
	listIndexes []int // for each glob, the index of its list, in ascending order
}

// newGlobLists returns a matcher for n lists of globs; globs returns the list with an index.
func newGlobLists(n int, globs func(form int) []string) *globLists {
	f, all := &globLists{}, []string(nil)
	for i := range n {
		for _, glob := range globs(i) {
			all, f.listIndexes = append(all, glob), append(f.listIndexes, i)
		}
	}
	var err error
	if f.globs, err = effect.NewGlobs(all, nil); err != nil {
		panic(err) // cannot happen: a test builds all globs
	}
	return f
}

// matchingLists returns the indexes of the forms whose globs match a file, in ascending order.
func (f *globLists) matchingLists(file string) (out []int) {
	for _, i := range f.globs.AppendTouched(nil, file, false, false) {
		out = append(out, f.listIndexes[i])
	}
	return slices.Compact(out)
}

package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// globListMatcher matches file names against several lists of globs (forms) at once.
type globListMatcher struct {
	globs                *effect.Globs
	listIndexByGlobIndex []int // for each glob, the index of its list, in ascending order
}

// newGlobListMatcher returns a matcher for n lists of globs; globs returns the list with an index.
func newGlobListMatcher(listCount int, globsOfList func(form int) []string) *globListMatcher {
	f, all := &globListMatcher{}, []string(nil)
	for i := range listCount {
		for _, glob := range globsOfList(i) {
			all, f.listIndexByGlobIndex = append(all, glob), append(f.listIndexByGlobIndex, i)
		}
	}
	var err error
	if f.globs, err = effect.NewGlobs(all, nil); err != nil {
		panic(err) // cannot happen: a test builds all globs
	}
	return f
}

// matchingLists returns the indexes of the glob lists that match a file, in ascending order.
func (f *globListMatcher) matchingLists(file string) (out []int) {
	for _, i := range f.globs.AppendTouchedGlobIndices(nil, file, false, false) {
		out = append(out, f.listIndexByGlobIndex[i])
	}
	return slices.Compact(out)
}

package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// A globListMatcher matches file names against several lists of globs at once.
type globListMatcher struct {
	globs                *effect.Globs
	listIndexByGlobIndex []int // for each glob in globs, the index of the list that contains it; ascending
}

// newGlobListMatcher returns a matcher for listCount lists of globs. globsOfList returns the list with an index
// from 0 to listCount-1.
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

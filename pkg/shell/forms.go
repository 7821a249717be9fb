package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// forms matches file names against several lists of globs (forms) at once.
type forms struct {
	globs *effect.Globs
	of    []int // index of the form of each glob, in ascending order
}

// newForms returns the forms of n lists of globs.
func newForms(n int, globs func(form int) []string) *forms {
	f, all := &forms{}, []string(nil)
	for i := range n {
		for _, glob := range globs(i) {
			all, f.of = append(all, glob), append(f.of, i)
		}
	}
	var err error
	if f.globs, err = effect.NewGlobs(all, nil); err != nil {
		panic(err) // cannot happen: a test builds all globs
	}
	return f
}

// named returns the indexes of the forms whose globs match a file, in ascending order.
func (f *forms) named(file string) (out []int) {
	for _, i := range f.globs.AppendTouched(nil, file, false, false) {
		out = append(out, f.of[i])
	}
	return slices.Compact(out)
}

package shell

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// forms are the names of the files of several forms, looked up all at once.
type forms struct {
	globs *effect.Globs
	of    []int // the form that each glob is of, in ascending order
}

// newForms returns the forms of some lists of globs.
func newForms(n int, globs func(form int) []string) *forms {
	f, all := &forms{}, []string(nil)
	for i := range n {
		for _, glob := range globs(i) {
			all, f.of = append(all, glob), append(f.of, i)
		}
	}
	var err error
	if f.globs, err = effect.NewGlobs(all, nil); err != nil {
		panic(err) // a test builds all
	}
	return f
}

// named returns the forms that a file may be of, in ascending order.
func (f *forms) named(file string) (out []int) {
	for _, i := range f.globs.AppendTouched(nil, file, false, false) {
		out = append(out, f.of[i])
	}
	return slices.Compact(out)
}

package command

import (
	"path"
	"slices"
)

// A Loader says which files a program runs because they lie in the folder that
// it works in, or are given to it; see loads.yaml.
type Loader struct {
	Names  []string // globs of the last name of such files
	Words  []string // globs of arguments of which one must be there; empty if none
	Recipe string   // how the file that says what runs is read; "" if it is not
}

// Loaders returns what a program loads when it runs with some arguments.
func Loaders(program string, args []string) []Loader {
	var out []Loader
	for _, i := range loaderIndexes(program) {
		if l := loaders[i]; len(l.Words) == 0 || slices.ContainsFunc(args, func(arg string) bool { return named(l.Words, path.Base(arg)) }) {
			out = append(out, l)
		}
	}
	return out
}

// Loads reports whether a file of a path is one that the loader runs.
func (l *Loader) Loads(file string) bool { return named(l.Names, path.Base(file)) }

func named(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { ok, _ := path.Match(glob, name); return ok })
}

package command

import (
	"path"
	"slices"
	"strings"
)

// A Loader says which files a program runs because they are in the folder that
// it works in, or are given to it; see loads.yaml.
type Loader struct {
	Names  []string // globs of the last name of such files
	Words  []string // globs of arguments of which one must be there; empty if none
	Reads  []string // files that are looked at where they lie
	Recipe string   // how the file that says what runs is read; "" if it is not
	Goals  []string // WORD=GOAL,…: what of the recipe runs for a first operand
	Folder []string // options that name the folder
	File   []string // options that name the recipe
	Text   []string // options whose value is a part of the recipe
	Values []string // other options with a value
	Given  bool     // what a glob with a wildcard names is loaded if an argument names it, and not because it lies there
	ends   string   // the last bytes of what Names match; "" for any
}

// Loaders returns what a program loads when it runs with some arguments: lines of the
// table, which no one changes.
func Loaders(program string, args []string) []*Loader {
	var out []*Loader
	for _, i := range loaderIndexes(program) {
		if l := &loaders[i]; len(l.Words) == 0 || slices.ContainsFunc(args, func(arg string) bool { return named(l.Words, path.Base(arg)) }) {
			out = append(out, l)
		}
	}
	return out
}

// Loads reports whether a file of a path is one that the loader runs.
func (l *Loader) Loads(file string) bool {
	name := path.Base(file)
	return (l.ends == "" || strings.IndexByte(l.ends, name[len(name)-1]) >= 0) && named(l.Names, name)
}

// Finds reports whether a file of a path is one that the loader runs because it lies
// there, whatever the arguments name.
func (l *Loader) Finds(file string) bool {
	if !l.Given {
		return l.Loads(file)
	}
	return slices.Contains(l.Names, path.Base(file))
}

// named reports whether one of some globs matches a name. Most are told apart by their
// end, which costs far less than matching.
func named(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		if !endsAs(name, glob) {
			return false
		}
		ok, _ := path.Match(glob, name)
		return ok
	})
}

// A recipe is a line of the table of recipes.yaml.
type recipe struct {
	format    string
	files     []string
	elsewhere bool // it runs in a container or on another machine
}

// Recipe returns how a file that says what runs is read, by its path: a format of
// package recipe, or a language; "" if its name says neither.
func Recipe(file string) (format string, elsewhere bool) {
	for i := range recipes {
		r := &recipes[i]
		for _, glob := range r.files {
			if !endsAs(file, glob) {
				continue
			}
			if ok, _ := path.Match(glob, lastNames(file, strings.Count(glob, "/")+1)); ok {
				return r.format, r.elsewhere
			}
		}
	}
	return FileLanguage(file), false
}

// endsAs reports whether a file can match a glob, judged by their last characters alone: those
// must be equal, unless the glob ends with a wildcard or a class.
func endsAs(file, glob string) bool {
	if file == "" || glob == "" {
		return true
	}
	last := glob[len(glob)-1]
	return last == file[len(file)-1] || strings.IndexByte("*?]", last) >= 0
}

// lastNames returns the last n names of a path.
func lastNames(file string, n int) string {
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] != '/' {
			continue
		}
		if n--; n == 0 {
			return file[i+1:]
		}
	}
	return file
}

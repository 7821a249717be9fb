package command

import (
	"path"
	"slices"
	"strings"
)

// A CodeFileLoader describes the files that a program runs because they are in its working folder
// or its arguments; see loads.yaml.
type CodeFileLoader struct {
	FileNameGlobs           []string // globs of the file names
	RequiredArgGlobs        []string // globs of arguments, one of which must be present; empty for none
	AnalyzedFilePaths       []string // files that shield reads from disk and analyzes
	RecipeFormat            string   // format of the file that names the code to run; "" for none
	RecipeGoalsByOperand    []string // WORD=GOAL,…: goals of the recipe that run if the first operand is WORD
	FolderOptions           []string // options whose value is the program's working folder
	RecipePathOptions       []string // options for the recipe's path
	RecipeTextOptions       []string // options whose value is text of the recipe, such as make --eval
	OptionsWithIgnoredValue []string // other options that take a value; the value is skipped
	GlobFilesMustBeInArgs   bool     // files that match a glob with a wildcard are loaded only if an argument names them
	fileNameLastBytes       string   // possible last bytes of names that match FileNameGlobs; "" for any
}

// CodeFileLoaders returns the loaders of a program that runs with args; nil if there are none. They are shared
// entries of the table that is compiled from loads.yaml, and must not be changed.
func CodeFileLoaders(program string, args []string) []*CodeFileLoader {
	var out []*CodeFileLoader
	for _, i := range loaderIndexes(program) {
		if l := &loaders[i]; len(l.RequiredArgGlobs) == 0 || slices.ContainsFunc(args, func(arg string) bool { return matchesAnyGlob(l.RequiredArgGlobs, path.Base(arg)) }) {
			out = append(out, l)
		}
	}
	return out
}

// Loads reports whether the loader runs a file with this path.
func (l *CodeFileLoader) Loads(file string) bool {
	name := path.Base(file)
	return (l.fileNameLastBytes == "" || strings.IndexByte(l.fileNameLastBytes, name[len(name)-1]) >= 0) && matchesAnyGlob(l.FileNameGlobs, name)
}

// LoadsFileNotInArgs reports whether the loader runs a file because it exists, even if no argument names it.
func (l *CodeFileLoader) LoadsFileNotInArgs(file string) bool {
	if !l.GlobFilesMustBeInArgs {
		return l.Loads(file)
	}
	return slices.Contains(l.FileNameGlobs, path.Base(file))
}

// matchesAnyGlob reports whether a glob matches a name. Comparing the last characters first avoids most of the matching.
func matchesAnyGlob(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		if !hasGlobLiteralSuffix(name, glob) {
			return false
		}
		ok, _ := path.Match(glob, name)
		return ok
	})
}

// A recipeFileFormat is an entry of recipes.yaml: a format of build and task files, such as
// Makefiles.
type recipeFileFormat struct {
	formatName   string
	pathGlobs    []string
	runsRemotely bool // runs in a container or on another machine
}

// RecipeFormat returns the format of the recipe file at a path, such as "make", or the language of
// a script file; "" for other files.
func RecipeFormat(recipePath string) (format string, runsRemotely bool) {
	for i := range recipes {
		r := &recipes[i]
		for _, glob := range r.pathGlobs {
			if !hasGlobLiteralSuffix(recipePath, glob) {
				continue
			}
			if ok, _ := path.Match(glob, lastPathElements(recipePath, strings.Count(glob, "/")+1)); ok {
				return r.formatName, r.runsRemotely
			}
		}
	}
	return FileLanguage(recipePath), false
}

// hasGlobLiteralSuffix reports whether a file can match a glob, judged by the glob's literal end alone: what is behind
// its last wildcard, class or escape.
func hasGlobLiteralSuffix(file, glob string) bool {
	for i, j := len(file)-1, len(glob)-1; j >= 0 && strings.IndexByte(`*?]\`, glob[j]) < 0; i, j = i-1, j-1 {
		if i < 0 || file[i] != glob[j] {
			return false
		}
	}
	return true
}

// lastPathElements returns the last n elements of a path.
func lastPathElements(file string, n int) string {
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

// Package confine is the process that holds a contained program: it makes the view that the
// program gets, starts it from a thread that is held to a profile, sees what is refused, and
// stays until the program has ended, whose children end with it.
//
// It is shield again, started by package contain, and begins before the rest of shield is there.
// So it imports next to nothing, and not even os: Go initialises a package when all are ready that
// it imports, in the order of their names, and those of shield take longer than all that is done here.
package confine

import "slices"

// within reports whether a canonical path is a folder or lies in it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || len(path) > len(folder) && path[len(folder)] == '/' && path[:len(folder)] == folder
}

// Within reports whether a canonical path is one of the folders or lies in one.
func Within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
}

// Holds reports whether a folder is one of the paths or holds one.
func Holds(folder string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return within(p, folder) })
}

// Package confine is the process that contains a program: it sets up the program's view of the file
// system, starts it from a restricted thread, reports denied accesses, and stays until the program and
// its children have ended.
//
// Package contain starts it as another process of shield's own executable. It runs before the rest of
// shield is initialized, so it imports very little, not even os: Go initializes a package as soon as
// its imports are initialized, in the order of package paths.
package confine

import "slices"

// within reports whether a canonical path is a folder or inside it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || len(path) > len(folder) && path[len(folder)] == '/' && path[:len(folder)] == folder
}

// Within reports whether a canonical path is one of the folders or inside one.
func Within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
}

// FolderHoldsAny reports whether a folder equals or contains one of the paths.
func FolderHoldsAny(folder string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return within(p, folder) })
}

//go:build !unix

package evaluate

import "io/fs"

const openFlags = 0

// checkAccess accepts every file: access lists are not visible in a file mode.
func checkAccess(string, fs.FileInfo) error { return nil }

//go:build !unix

package analysis

import "io/fs"

// inode returns zeros: this system has no device and inode numbers.
func inode(fs.FileInfo) (device, number uint64) { return 0, 0 }

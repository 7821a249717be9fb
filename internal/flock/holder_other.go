//go:build !linux

package flock

import "os"

// DescribeLockHolderProcess always returns "": this system does not report which process holds a
// lock.
func DescribeLockHolderProcess(*os.File) string { return "" }

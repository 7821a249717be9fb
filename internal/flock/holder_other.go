//go:build !linux

package flock

import "os"

// DescribeLockHolderProcess is not known on this system.
func DescribeLockHolderProcess(*os.File) string { return "" }

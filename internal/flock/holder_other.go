//go:build !linux

package flock

import "os"

// Holder is not known on this system.
func Holder(*os.File) string { return "" }

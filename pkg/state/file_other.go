//go:build !unix

package state

import "os"

const noFollow = 0

// othersMayWrite is not told by the mode here: the profile's folder is private
// by its access list.
func othersMayWrite(os.FileInfo) bool { return false }

func syncFolder(string) error { return nil }

//go:build !unix

package audit

import "os"

const noFollow = 0

// Modes say nothing here: the profile's folder is private by its access list.
func othersMayWrite(os.FileInfo) bool { return false }

func othersMayRead(os.FileInfo) bool { return false }

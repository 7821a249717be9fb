//go:build !unix

package audit

import "os"

const noFollow = 0

func syncFolder(string) error { return nil }

// othersMayRead reports false: mode bits have no meaning here; the profile folder is private by its
// access control list.
func othersMayRead(os.FileInfo) bool { return false }

//go:build !unix

package audit

import "os"

const noFollow = 0

func syncFolder(string) error { return nil }

// othersMayRead returns false: on systems other than Unix, such as Windows, mode bits do not say
// who can read a file. The access control list of the user's profile folder keeps other users out.
func othersMayRead(os.FileInfo) bool { return false }

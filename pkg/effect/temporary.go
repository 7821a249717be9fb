package effect

import "strings"

// temporary are the folders that the system clears.
var temporary = [...]string{"/tmp/", "/var/tmp/", "/private/tmp/"}

// Temporary returns the temporary folder that contains a canonical path, and the rest of the path; both are
// "" if there is none.
func Temporary(path string) (folder, rest string) {
	for _, folder := range temporary {
		if rest, ok := strings.CutPrefix(path, folder); ok {
			return strings.TrimSuffix(folder, "/"), rest
		}
	}
	return "", ""
}

// Shared reports whether a canonical path is in a folder that all users share for short-lived files: a
// temporary folder, or one in memory.
func Shared(path string) bool {
	folder, _ := Temporary(path)
	return folder != "" || strings.HasPrefix(path, "/dev/shm/")
}

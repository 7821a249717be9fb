package effect

import "strings"

// temporary are the folders that the system clears away.
var temporary = [...]string{"/tmp/", "/var/tmp/", "/private/tmp/"}

// Temporary returns the folder for temporary files that a canonical path is in, and what
// follows behind it; both are "" if it is in none.
func Temporary(path string) (folder, rest string) {
	for _, folder := range temporary {
		if rest, ok := strings.CutPrefix(path, folder); ok {
			return strings.TrimSuffix(folder, "/"), rest
		}
	}
	return "", ""
}

// Shared reports whether a canonical path is in a folder where all users put what goes away by itself: one for
// temporary files, or one in memory.
func Shared(path string) bool {
	folder, _ := Temporary(path)
	return folder != "" || strings.HasPrefix(path, "/dev/shm/")
}

package effect

import "strings"

// temporaryFolders are the folders that the system clears.
var temporaryFolders = [...]string{"/tmp/", "/var/tmp/", "/private/tmp/"}

// CutTemporaryFolder returns the temporary folder that contains a canonical path, and the rest of the path; both are
// "" if there is none.
func CutTemporaryFolder(path string) (folder, rest string) {
	for _, folder := range temporaryFolders {
		if rest, ok := strings.CutPrefix(path, folder); ok {
			return strings.TrimSuffix(folder, "/"), rest
		}
	}
	return "", ""
}

// IsInSharedTemporaryFolder reports whether a canonical path is in a folder that all users share for short-lived files: a
// temporary folder, or one in memory.
func IsInSharedTemporaryFolder(path string) bool {
	folder, _ := CutTemporaryFolder(path)
	return folder != "" || strings.HasPrefix(path, "/dev/shm/")
}

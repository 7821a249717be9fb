package effect

import (
	"path"
	"strings"
)

// Meant returns the part of a pattern that says what is meant by it: the last
// name, and the folders before it as far as they are written out. "src/*/a.go"
// may reach a folder of keys, and does not mean it; "~/.ssh/*" does. meant is a
// pattern only if its last name is one that says something.
func Meant(pattern string) (meant string, still bool) {
	base := path.Base(pattern)
	folder := strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x").Replace(path.Dir(pattern))
	if strings.Trim(base, "*?") == "" {
		return folder + "/x", false
	}
	return folder + "/" + base, strings.ContainsAny(base, "*?[")
}

// Says reports whether a pattern contains a character that is certain and more
// than a dot, which only says that a file is hidden.
func Says(pattern string) bool {
	return strings.ContainsFunc(pattern, func(r rune) bool { return !strings.ContainsRune(`*?[]!^\/.`, r) })
}

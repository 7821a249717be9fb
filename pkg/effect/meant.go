package effect

import (
	"path"
	"strings"
)

// IntendedPath returns the intended part of a pattern: the last name, and the folders with wildcards replaced by a
// letter. "src/*/a.go" could match a file in a folder of keys, but is not meant to; "~/.ssh/*" is. still says
// that meant is a pattern, because its last name has text beside the wildcard.
func IntendedPath(pattern string) (meant string, still bool) {
	base := path.Base(pattern)
	folder := strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x").Replace(path.Dir(pattern))
	if strings.Trim(base, "*?") == "" {
		return folder + "/x", false
	}
	return folder + "/" + base, strings.ContainsAny(base, "*?[")
}

// HasLiteralText reports whether a pattern contains a literal character other than a dot, which only marks hidden
// files.
func HasLiteralText(pattern string) bool {
	return strings.ContainsFunc(pattern, func(r rune) bool { return !strings.ContainsRune(`*?[]!^\/.`, r) })
}

package effect

import (
	"path"
	"strings"
)

// ExamplePathForPattern returns an example of the path that a pattern is meant to name. A wildcard
// in a folder name becomes the letter x, and so does a last name without literal text: "src/*/a.go"
// becomes "src/x/a.go", and "~/.ssh/*" becomes "~/.ssh/x". remainsPattern reports whether the
// result is still a pattern, because its last name contains both text and wildcards.
func ExamplePathForPattern(pattern string) (examplePath string, remainsPattern bool) {
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

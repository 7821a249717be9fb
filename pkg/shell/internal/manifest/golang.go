package manifest

import (
	"path"
	"strings"
)

// GoModulePath returns the module path in the text of a go.mod, "" if there is none.
func GoModulePath(goModText string) string {
	for line := range strings.Lines(goModText) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module"); ok && rest != strings.TrimLeft(rest, " \t\"`") {
			rest, _, _ = strings.Cut(rest, "//")
			return strings.Trim(rest, " \t\"`")
		}
	}
	return ""
}

// GoProgramName returns the name of the program built from a Go package.
func GoProgramName(packagePath string) string {
	name := path.Base(packagePath)
	if digits, ok := strings.CutPrefix(name, "v"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
		name = path.Base(path.Dir(packagePath)) // the last element is a major version
	}
	return name
}

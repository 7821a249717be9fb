package manifest

import (
	"path"
	"strings"
)

// GoModule returns the path of the module that a go.mod describes, "" if it names none.
func GoModule(text string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module"); ok && rest != strings.TrimLeft(rest, " \t\"`") {
			rest, _, _ = strings.Cut(rest, "//")
			return strings.Trim(rest, " \t\"`")
		}
	}
	return ""
}

// GoName returns the name of the program that a Go package is built to.
func GoName(pkg string) string {
	name := path.Base(pkg)
	if digits, ok := strings.CutPrefix(name, "v"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
		name = path.Base(path.Dir(pkg)) // a major version
	}
	return name
}

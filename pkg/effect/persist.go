package effect

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// PersistenceClass returns the class of a file that runs code later (autostart, shell startup, hooks) if an effect
// touches or may touch such a file, and "" otherwise. Writing such a file is a [Persist] effect with the
// class as its Reason.
//
// Files of most classes are rarely written in everyday work. Files of some classes, such as build_script, are
// often written: project settings that also contain commands; see [IsEverydayClass].
func PersistenceClass(path string, pattern, recursive bool) string {
	g, err := persistGlobs()
	if err != nil {
		return "unknown"
	}
	i, ok := g.Touches(path, pattern, recursive)
	if !ok {
		return ""
	}
	for _, class := range knowledge.LaterClasses {
		if i < len(class.Globs) {
			return class.Name
		}
		i -= len(class.Globs)
	}
	return ""
}

// PersistenceClass calls the package function [PersistenceClass]. Paths in the place's home folder
// are looked up as paths in /root, which the function knows as a home folder.
func (pl *Place) PersistenceClass(path string, pattern, recursive bool) string {
	if rest, ok := strings.CutPrefix(path, pl.Home+"/"); ok && pl.Home != "" {
		path = "/root/" + rest
	}
	return PersistenceClass(path, pattern, recursive)
}

// IsEverydayClass reports whether files of a class are written in everyday work.
func IsEverydayClass(class string) bool {
	for i := range knowledge.LaterClasses {
		if c := &knowledge.LaterClasses[i]; c.Name == class {
			return c.Everyday
		}
	}
	return false
}

var persistGlobs = sync.OnceValues(func() (*Globs, error) {
	var globs []string
	for _, class := range knowledge.LaterClasses {
		globs = append(globs, class.Globs...)
	}
	return NewGlobs(globs, nil)
})

package effect

import (
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// PersistenceClassName returns the class of a file that runs code later (autostart, shell startup, hooks) if an effect
// touches or may touch such a file, and "" otherwise. Writing such a file is a [Persist] effect with the
// class as its Reason.
//
// Files of most classes are rarely written in everyday work. Files of some classes, such as build_script, are
// often written: project settings that also contain commands; see [IsOftenWrittenPersistenceClass].
func PersistenceClassName(path string, isPattern, includesDescendants bool) string {
	g, err := persistGlobs()
	if err != nil {
		return "unknown"
	}
	i, ok := g.FirstPossibleMatch(path, isPattern, includesDescendants)
	if !ok {
		return ""
	}
	for _, class := range knowledge.LaterClasses {
		if i < len(class.Globs) {
			return class.ClassName
		}
		i -= len(class.Globs)
	}
	return ""
}

// PersistenceClassName calls the package function [PersistenceClassName]. A path in the home folder
// pl.Home is looked up as a path in /root, which that function knows as a home folder.
func (pl *PathContext) PersistenceClassName(path string, pattern, recursive bool) string {
	if rest, ok := strings.CutPrefix(path, pl.Home+"/"); ok && pl.Home != "" {
		path = "/root/" + rest
	}
	return PersistenceClassName(path, pattern, recursive)
}

// IsOftenWrittenPersistenceClass reports whether files of a class are written in everyday work.
func IsOftenWrittenPersistenceClass(class string) bool {
	for i := range knowledge.LaterClasses {
		if c := &knowledge.LaterClasses[i]; c.ClassName == class {
			return c.IsOftenWritten
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

package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Options say where actions are judged. The zero Options know no folder.
type Options struct {
	Shell    Shell    // reads commands; nil reads none
	Written  Written  // reads what is written to files; nil reads none
	CWD      string   // where shield was started; the only root if it may be one and Roots is empty
	Home     string   // the person's home folder
	Roots    []string // folders that count as workspace
	FoldCase bool     // the file system ignores case
	Files    bool     // look at local files: resolve symbolic links, read scripts; else judge as if no file existed
	Trusted  Trusted  // places that data may go to in ordinary work
}

// New returns an Analyzer for a place. It is an error if a folder is not
// absolute, or a root is one that must not be; see [effect.CheckRoot].
func New(o Options) (*Analyzer, error) {
	blank := effect.Place{}
	canonical := func(what, path string) (string, error) {
		if path == "" {
			return "", nil
		}
		p, isPattern := blank.Path(path, false)
		if isPattern {
			return "", fmt.Errorf("%s %q is no absolute path", what, path)
		}
		return p, nil
	}
	place := effect.Place{FoldCase: o.FoldCase, Script: noFile}
	var err error
	if place.Home, err = canonical("home folder", o.Home); err != nil {
		return nil, err
	}
	if place.CWD, err = canonical("folder", o.CWD); err != nil {
		return nil, err
	}
	f := newFiles()
	if o.Files {
		place.Links, place.Script = f.links, f.script
		f.trust(place.Home)
	}
	for _, r := range o.Roots {
		root, err := canonical("root", r)
		if err != nil {
			return nil, err
		}
		if err := effect.CheckRoot(root, place.Home); err != nil {
			return nil, err
		}
		f.trust(root)
		if err := f.addRoot(&place, root); err != nil {
			return nil, err
		}
	}
	f.trust(place.CWD)
	if len(o.Roots) == 0 && effect.CheckRoot(place.CWD, place.Home) == nil {
		// Started where no root can be, shield has none: nothing is harmless.
		if err := f.addRoot(&place, place.CWD); err != nil {
			place.Roots = nil
		}
	}
	trust, err := o.Trusted.compile()
	if err != nil {
		return nil, err
	}
	return &Analyzer{Shell: o.Shell, Written: o.Written, Place: place, trust: trust}, nil
}

// addRoot adds a root by its name and by what it is behind symbolic links.
func (f *files) addRoot(place *effect.Place, root string) error {
	place.Roots = append(place.Roots, root)
	if place.Links == nil {
		return nil
	}
	real := place.Links(root)
	f.roots = append(f.roots, strings.TrimSuffix(real, "/")+"/")
	if real == root || slices.Contains(place.Roots, real) {
		return nil
	}
	if err := effect.CheckRoot(real, place.Home); err != nil {
		return err
	}
	place.Roots = append(place.Roots, real)
	return nil
}

// followed returns what a canonical path is behind symbolic links, and whether
// that is another path. Of a pattern the part before the first wildcard is
// followed.
func followed(path string, pattern bool, links func(string) string) (string, bool) {
	if !pattern {
		real := links(path)
		if real == path {
			return path, false
		}
		real, _ = (&effect.Place{}).Path(real, false)
		return real, real != path
	}
	wild := strings.IndexAny(path, `*?[\`)
	if wild < 0 {
		wild = len(path)
	}
	cut := strings.LastIndexByte(path[:wild], '/')
	if cut <= 0 {
		return path, false
	}
	real := links(path[:cut])
	if real == path[:cut] {
		return path, false
	}
	if strings.ContainsAny(real, `*?[\`) {
		return "**" + path[cut:], true
	}
	return strings.TrimSuffix(real, "/") + path[cut:], true
}

package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A sight says how much of a partly unknown path is known.
type sight uint8

const (
	clear sight = iota // the file name is known, at least in part
	dim                // a folder is known, the name in it is not
	dark               // nothing is known
)

// folder returns the known part of a pattern: its folders up to the first unknown
// one.
func folder(pattern string) string {
	unknown := strings.IndexAny(pattern, `*?[\\`)
	if unknown < 0 {
		return pattern
	}
	end := strings.LastIndexByte(pattern[:unknown], '/')
	if end <= 0 {
		return "/"
	}
	return pattern[:end]
}

// look returns how much of the path a pattern gives.
func look(pattern string) sight {
	name := pattern[strings.LastIndexByte(pattern, '/')+1:]
	switch {
	case effect.Says(name):
		return clear
	case effect.Says(pattern), strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "/**"):
		return dim
	default:
		return dark
	}
}

// names is a glob whose known segments are compared with those of a pattern.
type names struct {
	glob string
	vars map[string][]string
}

// floating reports whether the glob matches a name in any folder.
func (n names) floating() bool { return strings.HasPrefix(n.glob, "**/") }

// outside reports whether nothing that the glob matches is below a folder, or is
// that folder, because it has too few folders above it.
func (n names) outside(folder string) bool {
	if !strings.HasPrefix(n.glob, "/") || strings.Contains(n.glob, "**") || folder == "/" {
		return false
	}
	deep, top := strings.Count(n.glob, "/"), strings.Count(folder, "/")
	return deep < top || deep == top && !effect.Overlap(n.glob, effect.Quote(folder), true)
}

// kept reports whether a folder is the hidden one in which the glob's files lie, such
// as ~/.aws. In ~/.config lie those of all programs.
func (n names) kept(folder string) bool {
	parent := path.Dir(n.glob)
	return strings.Contains(folder, "/.") && !strings.HasSuffix(folder, "/.config") && effect.Says(parent) && strings.EqualFold(path.Base(parent), path.Base(folder))
}

// inHome reports whether a folder is in the home folder: what a glob matches below
// it is there only if someone uses it.
func (n names) inHome(folder string) bool {
	return slices.ContainsFunc(n.vars["HOME"], func(home string) bool {
		return strings.HasPrefix(folder, home+"/")
	})
}

// ofOthers reports whether what the glob matches below a folder can only be in the
// home folder of another user, of whom nothing is known to be there.
func (n names) ofOthers(folder string) bool {
	return strings.HasPrefix(n.glob, "~/") && folder != "/" && len(n.vars["HOME"]) > 0 && !slices.ContainsFunc(n.vars["HOME"], func(home string) bool {
		return home == folder || strings.HasPrefix(home, folder+"/") || strings.HasPrefix(folder, home+"/")
	})
}

// A share says how many of a glob's known segments a pattern contains.
type share uint8

const (
	none  share = iota
	last        // the last segment, and no other
	maybe       // the last segment and one more, if what is unknown in the pattern makes it so
	all         // the last segment and one more, if the glob has one
)

// named returns how many of the glob's known segments a pattern contains.
func (n names) named(pattern string) share {
	rest, ok := strings.CutPrefix(n.glob, "$")
	if !ok {
		return shared(pattern, n.glob)
	}
	name, rest, _ := strings.Cut(rest, "/")
	best := none
	for _, folder := range n.vars[name] {
		best = max(best, shared(pattern, folder+"/"+rest))
	}
	return best
}

// shared compares the last two known segments of a glob with the known segments
// of a pattern. A glob without known segments, such as ~/**, matches everything
// that could be there.
func shared(pattern, glob string) share {
	found, wanted, known := 0, 0, true
	for end := len(glob); end > 0 && wanted < 2; {
		start := strings.LastIndexByte(glob[:end], '/')
		segment := glob[start+1 : end]
		end = start
		if !effect.Says(segment) || segment == "~" {
			continue
		}
		wanted++
		names, sure := segmentIn(pattern, segment)
		if !names && wanted == 1 {
			return none
		}
		if names {
			found++
			known = known && sure
		}
	}
	switch {
	case found < wanted:
		return last
	case !known:
		return maybe
	default:
		return all
	}
}

// weak reports whether a segment of a pattern says too little to name a file, such as "*.json".
func weak(segment string) bool {
	return strings.IndexByte(segment, '*') >= 0 && strings.IndexAny(segment, `*?[\`) == 0
}

// segmentIn reports whether a segment of a pattern of which something is known
// could be the given one, and whether it says so: what a shell expands, such as
// "id_*", does.
func segmentIn(pattern, segment string) (names, sure bool) {
	for part := range strings.SplitSeq(pattern, "/") {
		if effect.Says(part) && effect.Overlap(part, segment, true) {
			names, sure = true, sure || !strings.Contains(part, "**") && !weak(part)
		}
	}
	return names, sure
}

// emptied returns the folder that an effect empties: "rm -rf ~/*" counts like
// "rm -rf ~".
func emptied(e *effect.Effect) (folder string, ok bool) {
	if !e.Recursive || e.Kind != effect.DeleteDirectory && e.Kind != effect.DeleteFile {
		return "", false
	}
	for _, end := range [...]string{"/*", "/**"} {
		if folder, ok = strings.CutSuffix(e.Path, end); ok {
			if folder == "" {
				folder = "/"
			}
			return folder, true
		}
	}
	return "", false
}

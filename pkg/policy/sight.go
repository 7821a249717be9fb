package policy

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A sight says how much of a pattern's path is known.
type sight uint8

const (
	clear sight = iota // the name is known, at least in part
	dim                // a folder is known, the name below it is not
	dark               // nothing is known
)

// folder returns the part of a pattern that is known: its folders up to the
// first that is not.
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

// look returns how much a pattern says of the path it stands for.
func look(pattern string) sight {
	name := pattern[strings.LastIndexByte(pattern, '/')+1:]
	switch {
	case says(name):
		return clear
	case says(pattern), strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "/**"):
		return dim
	default:
		return dark
	}
}

// says reports whether a pattern holds a character that stands for something
// certain. A dot says no more than that a file is hidden.
func says(pattern string) bool {
	return strings.ContainsFunc(pattern, func(r rune) bool { return !strings.ContainsRune(`*?[]!^\/.`, r) })
}

// names are the segments by which a glob is known.
type names struct {
	glob string
	vars map[string][]string
}

// floating reports whether the glob is about a name in any folder.
func (n names) floating() bool { return strings.HasPrefix(n.glob, "**/") }

// A share says how much of what a glob names a pattern names too.
type share uint8

const (
	none share = iota
	last       // the last segment, and no other
	all        // the last segment and one more, if the glob has one
)

// named returns how much of what the glob names a pattern names.
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

// shared compares the last two segments of a glob that say something with
// those of a pattern that do. A glob that says nothing, such as ~/**, is met
// by whatever could lie there.
func shared(pattern, glob string) share {
	found, wanted := 0, 0
	for end := len(glob); end > 0 && wanted < 2; {
		start := strings.LastIndexByte(glob[:end], '/')
		segment := glob[start+1 : end]
		end = start
		if !says(segment) || segment == "~" {
			continue
		}
		wanted++
		if names := segmentIn(pattern, segment); !names && wanted == 1 {
			return none
		} else if names {
			found++
		}
	}
	switch {
	case found == wanted:
		return all
	default:
		return last
	}
}

// segmentIn reports whether a segment of a pattern that says something could
// be the one given.
func segmentIn(pattern, segment string) bool {
	for part := range strings.SplitSeq(pattern, "/") {
		if says(part) && effect.Overlap(part, segment, true) {
			return true
		}
	}
	return false
}

// emptied returns the folder that an effect empties: "rm -rf ~/*" is as bad as
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

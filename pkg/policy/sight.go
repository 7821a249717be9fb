package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A knownPathPart says how much of a partly unknown path is known.
type knownPathPart uint8

const (
	knownPathPartFileName   knownPathPart = iota // the file name is at least partly known
	knownPathPartFolderOnly                      // a folder is known, but not the file name
	knownPathPartNone                            // nothing is known
)

// literalFolderPrefix returns the known start of a pattern: its folders up to the first wildcard.
func literalFolderPrefix(pattern string) string {
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

// knownPathPartOf returns how much of a partly unknown path is known. In pattern, wildcards stand for the
// unknown parts of the path.
func knownPathPartOf(pattern string) knownPathPart {
	name := pattern[strings.LastIndexByte(pattern, '/')+1:]
	switch {
	case effect.HasLiteralText(name):
		return knownPathPartFileName
	case effect.HasLiteralText(pattern), strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "/**"):
		return knownPathPartFolderOnly
	default:
		return knownPathPartNone
	}
}

// A segmentGlob is a glob whose literal segments are compared with the segments of a pattern.
type segmentGlob struct {
	glob string
	vars map[string][]string
}

// matchesAnyFolder reports whether the glob matches a name in any folder.
func (n segmentGlob) matchesAnyFolder() bool { return strings.HasPrefix(n.glob, "**/") }

// cannotMatchBelow reports whether the glob has too few folders to match a folder or anything below it.
func (n segmentGlob) cannotMatchBelow(folder string) bool {
	if !strings.HasPrefix(n.glob, "/") || strings.Contains(n.glob, "**") || folder == "/" {
		return false
	}
	deep, top := strings.Count(n.glob, "/"), strings.Count(folder, "/")
	return deep < top || deep == top && !effect.PatternsOverlap(n.glob, effect.QuoteGlobMeta(folder), true)
}

// isGlobDirectlyInHiddenFolder reports whether a folder is the hidden folder that contains the glob's files, such as ~/.aws.
// ~/.config does not count: it contains files of all programs.
func (n segmentGlob) isGlobDirectlyInHiddenFolder(folder string) bool {
	parent := path.Dir(n.glob)
	return strings.Contains(folder, "/.") && !strings.HasSuffix(folder, "/.config") && effect.HasLiteralText(parent) && strings.EqualFold(path.Base(parent), path.Base(folder))
}

// isFolderInHome reports whether a folder is inside the home folder.
func (n segmentGlob) isFolderInHome(folder string) bool {
	return slices.ContainsFunc(n.vars["HOME"], func(home string) bool {
		return strings.HasPrefix(folder, home+"/")
	})
}

// matchesOnlyOtherUsersHomesBelow reports whether the glob's matches below a folder can only be in other users' home folders, whose
// files are unknown.
func (n segmentGlob) matchesOnlyOtherUsersHomesBelow(folder string) bool {
	return strings.HasPrefix(n.glob, "~/") && folder != "/" && len(n.vars["HOME"]) > 0 && !slices.ContainsFunc(n.vars["HOME"], func(home string) bool {
		return home == folder || strings.HasPrefix(home, folder+"/") || strings.HasPrefix(folder, home+"/")
	})
}

// A segmentMatch says how many of a glob's literal segments a pattern contains.
type segmentMatch uint8

const (
	segmentMatchNone        segmentMatch = iota
	segmentMatchLastOnly                 // the last literal segment of the glob, but not the literal segment before it
	segmentMatchPossiblyAll              // all compared segments, but at least one of them only if an unknown part of the pattern matches it
	segmentMatchAll                      // all compared segments: the last two literal ones of the glob, or fewer if it has fewer
)

// matchSegments returns how many of the glob's literal segments a pattern contains.
func (n segmentGlob) matchSegments(pattern string) segmentMatch {
	rest, ok := strings.CutPrefix(n.glob, "$")
	if !ok {
		return compareSegments(pattern, n.glob)
	}
	name, rest, _ := strings.Cut(rest, "/")
	best := segmentMatchNone
	for _, folder := range n.vars[name] {
		best = max(best, compareSegments(pattern, folder+"/"+rest))
	}
	return best
}

// compareSegments compares the last two literal segments of a glob with the segments of a pattern. A glob without
// literal segments, such as ~/**, counts as fully contained.
func compareSegments(pattern, glob string) segmentMatch {
	found, wanted, known := 0, 0, true
	for end := len(glob); end > 0 && wanted < 2; {
		start := strings.LastIndexByte(glob[:end], '/')
		segment := glob[start+1 : end]
		end = start
		if !effect.HasLiteralText(segment) || segment == "~" {
			continue
		}
		wanted++
		names, sure := matchesAnyPatternSegment(pattern, segment)
		if !names && wanted == 1 {
			return segmentMatchNone
		}
		if names {
			found++
			known = known && sure
		}
	}
	switch {
	case found < wanted:
		return segmentMatchLastOnly
	case !known:
		return segmentMatchPossiblyAll
	default:
		return segmentMatchAll
	}
}

// startsWithWildcard reports whether a segment of a pattern contains a * and starts with a wildcard or an
// escaped character, as "*.json" does: too little to identify a file.
func startsWithWildcard(segment string) bool {
	return strings.IndexByte(segment, '*') >= 0 && strings.IndexAny(segment, `*?[\`) == 0
}

// matchesAnyPatternSegment reports whether any segment of a pattern can match the given path segment (mayMatch),
// and whether the match is certain (mustMatch). A shell glob such as "id_*" certainly matches "id_rsa"; "*.json"
// and unknown text only possibly match.
func matchesAnyPatternSegment(pattern, segment string) (mayMatch, mustMatch bool) {
	for part := range strings.SplitSeq(pattern, "/") {
		if effect.HasLiteralText(part) && effect.PatternsOverlap(part, segment, true) {
			mayMatch, mustMatch = true, mustMatch || !strings.Contains(part, "**") && !startsWithWildcard(part)
		}
	}
	return mayMatch, mustMatch
}

// emptiedFolder returns the folder that an effect empties: "rm -rf ~/*" counts like "rm -rf ~".
func emptiedFolder(e *effect.Effect) (folder string, ok bool) {
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

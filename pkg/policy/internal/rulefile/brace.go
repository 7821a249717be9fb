package rulefile

import "strings"

// maxBraceExpansions is the maximum number of globs that one glob with braces expands to.
const maxBraceExpansions = 64

// ExpandGlobBraces returns the globs that a glob with braces expands to: a/{b,c} becomes a/b and a/c. A glob with
// unbalanced braces, or with more than 64 expansions, is returned unchanged.
func ExpandGlobBraces(glob string) []string {
	if strings.IndexByte(glob, '{') < 0 {
		return []string{glob}
	}
	if out, ok := expandBraces(nil, glob); ok {
		return out
	}
	return []string{glob}
}

func expandBraces(out []string, glob string) ([]string, bool) {
	open, end, commas := findBraces(glob)
	switch {
	case open < 0:
		return append(out, glob), len(out) < maxBraceExpansions
	case end < 0:
		return nil, false
	}
	from := open + 1
	for _, to := range append(commas, end) {
		var ok bool
		if out, ok = expandBraces(out, glob[:open]+glob[from:to]+glob[end+1:]); !ok {
			return nil, false
		}
		from = to + 1
	}
	return out, true
}

// findBraces finds the first braces of a glob and the commas inside. open is -1 if the glob has no braces, end is
// -1 if they are not closed.
func findBraces(glob string) (open, end int, commas []int) {
	open, end = -1, -1
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return open, end, commas
}

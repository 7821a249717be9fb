package prefilter

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/sorted"
)

const (
	maxExactStrings = 64 // strings that an exact set may hold
	maxClassRunes   = 12 // runes of a character class that are spelled out
)

// RequiredLiterals returns literals in lower case, each at least [MinLiteralBytes] bytes
// long, of which every text that expr matches contains at least one, without
// regard to ASCII letter case. It returns nil if there are none.
//
// With (?i), K and S also match the Kelvin sign and the long s. Those matches
// are not covered: texts are folded before they are scanned.
func RequiredLiterals(expr string) ([]string, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	in := inspectRegexp(re.Simplify())
	best := in.required
	if isMoreSelective(in.exact, best) {
		best = in.exact
	}
	if shortestLength(best) < MinLiteralBytes {
		return nil, nil
	}
	return dropSupersets(best), nil
}

// Bounds of what [SecondaryRequiredLiteralSets] returns.
const (
	maxSecondaryRequiredLiteralSets    = 2
	maxLiteralsPerSecondaryRequiredSet = 16 // literals of a set
)

// SecondaryRequiredLiteralSets returns further sets of literals like that of [RequiredLiterals]: a text that
// expr matches contains a literal of each, too.
func SecondaryRequiredLiteralSets(expr string) ([][]string, error) {
	first, err := RequiredLiterals(expr)
	if first == nil || err != nil {
		return nil, err
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, set := range inspectRegexp(re.Simplify()).requiredSets {
		if set = dropSupersets(set); shortestLength(set) >= MinLiteralBytes && len(set) <= maxLiteralsPerSecondaryRequiredSet && !slices.Equal(set, first) {
			out = append(out, set)
		}
	}
	sorted.By(out, func(a, b []string) int {
		return cmp.Or(cmp.Compare(shortestLength(b), shortestLength(a)), cmp.Compare(len(a), len(b)), slices.Compare(a, b))
	})
	out = slices.CompactFunc(out, slices.Equal)
	return out[:min(len(out), maxSecondaryRequiredLiteralSets)], nil
}

// A literalInfo says what is known of the texts that an expression matches.
type literalInfo struct {
	exact        []string   // all texts that the expression matches; nil if they are not known
	required     []string   // each contains one of these, if not nil
	requiredSets [][]string // every matched text contains at least one member of each of these sets
}

func inspectRegexp(re *syntax.Regexp) literalInfo {
	switch re.Op {
	case syntax.OpLiteral:
		var b strings.Builder
		for _, r := range re.Rune {
			if r >= utf8.RuneSelf && re.Flags&syntax.FoldCase != 0 {
				return literalInfo{} // the letter has other cases, which a scan for literals does not find
			}
			b.WriteRune(lowerRune(r))
		}
		return literalInfo{exact: []string{b.String()}}
	case syntax.OpCharClass:
		in := literalInfo{exact: classStrings(re.Rune), required: classPrefixes(re.Rune)}
		if in.required != nil {
			in.requiredSets = [][]string{in.required}
		}
		return in
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return literalInfo{exact: []string{""}}
	case syntax.OpCapture:
		return inspectRegexp(re.Sub[0])
	case syntax.OpPlus:
		in := inspectRegexp(re.Sub[0])
		return literalInfo{required: moreSelectiveSet(in.exact, in.required), requiredSets: in.allRequiredSets()}
	case syntax.OpQuest:
		if in := inspectRegexp(re.Sub[0]); in.exact != nil && len(in.exact) < maxExactStrings {
			return literalInfo{exact: append([]string{""}, in.exact...)}
		}
	case syntax.OpConcat:
		return inspectConcat(re.Sub)
	case syntax.OpAlternate:
		return inspectAlternate(re.Sub)
	}
	return literalInfo{}
}

// inspectConcat joins neighbours that are known exactly, and keeps the best
// set of literals that it meets.
func inspectConcat(subs []*syntax.Regexp) literalInfo {
	exact := []string{""}
	whole := true
	var required []string
	var sets [][]string
	for _, sub := range subs {
		in := inspectRegexp(sub)
		if in.exact != nil && len(in.exact)*len(exact) <= maxExactStrings {
			exact = crossProduct(exact, in.exact)
			continue
		}
		required = moreSelectiveSet(required, exact)
		sets = append(sets, exact)
		exact, whole = []string{""}, false
		if in.exact != nil {
			exact = in.exact
		}
		required = moreSelectiveSet(required, in.required)
		sets = append(sets, in.requiredSets...)
	}
	if whole {
		return literalInfo{exact: exact}
	}
	return literalInfo{required: moreSelectiveSet(required, exact), requiredSets: append(sets, exact)}
}

// allRequiredSets returns the sets of which each text contains one literal each.
func (in *literalInfo) allRequiredSets() [][]string {
	if in.exact != nil {
		return append(in.requiredSets, in.exact)
	}
	return in.requiredSets
}

func inspectAlternate(subs []*syntax.Regexp) literalInfo {
	var exact, required []string
	isExact, isRequired := true, true
	for _, sub := range subs {
		in := inspectRegexp(sub)
		exact = append(exact, in.exact...)
		isExact = isExact && in.exact != nil
		best := moreSelectiveSet(in.exact, in.required)
		required = append(required, best...)
		isRequired = isRequired && best != nil
	}
	var out literalInfo
	if isExact && len(exact) <= 4*maxExactStrings {
		out.exact = exact
	}
	if isRequired {
		out.required, out.requiredSets = required, [][]string{required}
	}
	return out
}

func moreSelectiveSet(a, b []string) []string {
	if isMoreSelective(b, a) {
		return b
	}
	return a
}

// isMoreSelective reports whether a selects more sharply than b.
func isMoreSelective(a, b []string) bool {
	wa, wb := shortestLength(a), shortestLength(b)
	if wa != wb {
		return wa > wb
	}
	return len(a) < len(b)
}

// shortestLength is the length of the shortest literal, up to a length beyond which a
// literal is as good as any.
func shortestLength(set []string) int {
	if len(set) == 0 {
		return -1
	}
	shortest := 6
	for _, s := range set {
		shortest = min(shortest, len(s))
	}
	return shortest
}

// dropSupersets drops literals that contain another.
func dropSupersets(set []string) []string {
	var out []string
next:
	for i, s := range set {
		for j, other := range set {
			if i != j && strings.Contains(s, other) && (s != other || j < i) {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

func crossProduct(a, b []string) []string {
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// classStrings spells out a small character class.
func classStrings(ranges []rune) []string {
	var out []string
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > maxClassRunes {
			return nil
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if !utf8.ValidRune(r) {
				return nil
			}
			s := string(lowerRune(r))
			if len(out) == 0 || out[len(out)-1] != s {
				out = append(out, s)
			}
			if len(out) > 2*maxClassRunes {
				return nil
			}
		}
	}
	return out
}

// classPrefixes returns the first three bytes of each rune of a class beyond
// the basic plane, if they are few.
func classPrefixes(ranges []rune) []string {
	var out []string
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r = (r | 0x3f) + 1 {
			if r < 0x10000 || len(out) == maxClassRunes {
				return nil
			}
			out = append(out, string(r)[:3])
		}
	}
	return out
}

func lowerRune(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r | 0x20
	}
	return r
}

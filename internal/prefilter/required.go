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
	maxExactStrings = 64 // maximum number of strings in a list of all texts that an expression matches
	maxClassRunes   = 12 // runes of a character class that are spelled out
)

// RequiredLiteralAlternatives returns literals in lower case, each at least [MinLiteralBytes] bytes long, of
// which every text that expr matches contains at least one, without regard to ASCII letter case. It returns nil
// if there are none.
//
// With (?i), K and S also match the Kelvin sign and the long s. Those matches are not covered, unless the caller
// folds these letters before the scan.
func RequiredLiteralAlternatives(expr string) ([]string, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	in := findRegexpLiterals(re.Simplify())
	best := in.requiredAlternatives
	if isMoreSelective(in.exactMatches, best) {
		best = in.exactMatches
	}
	if shortestLength(best) < MinLiteralBytes {
		return nil, nil
	}
	return dropLiteralsContainingOthers(best), nil
}

// Bounds of what [AdditionalRequiredLiteralSets] returns.
const (
	maxAdditionalRequiredLiteralSets = 2
	maxLiteralsPerAdditionalSet      = 16 // literals of a set
)

// AdditionalRequiredLiteralSets returns further sets of literals like that of [RequiredLiteralAlternatives]: a text that
// expr matches contains a literal of each, too.
func AdditionalRequiredLiteralSets(expr string) ([][]string, error) {
	first, err := RequiredLiteralAlternatives(expr)
	if first == nil || err != nil {
		return nil, err
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, set := range findRegexpLiterals(re.Simplify()).requiredAlternativeSets {
		if set = dropLiteralsContainingOthers(set); shortestLength(set) >= MinLiteralBytes && len(set) <= maxLiteralsPerAdditionalSet && !slices.Equal(set, first) {
			out = append(out, set)
		}
	}
	sorted.SortStableBy(out, func(a, b []string) int {
		return cmp.Or(cmp.Compare(shortestLength(b), shortestLength(a)), cmp.Compare(len(a), len(b)), slices.Compare(a, b))
	})
	out = slices.CompactFunc(out, slices.Equal)
	return out[:min(len(out), maxAdditionalRequiredLiteralSets)], nil
}

// A regexpLiterals says what is known of the texts that an expression matches.
type regexpLiterals struct {
	exactMatches            []string   // all texts that the expression matches; nil if they are not known
	requiredAlternatives    []string   // each matched text contains one of these, if not nil
	requiredAlternativeSets [][]string // every matched text contains at least one member of each of these sets
}

func findRegexpLiterals(re *syntax.Regexp) regexpLiterals {
	switch re.Op {
	case syntax.OpLiteral:
		var b strings.Builder
		for _, r := range re.Rune {
			if r >= utf8.RuneSelf && re.Flags&syntax.FoldCase != 0 {
				return regexpLiterals{} // the letter has other cases, which a scan for literals does not find
			}
			b.WriteRune(lowerRune(r))
		}
		return regexpLiterals{exactMatches: []string{b.String()}}
	case syntax.OpCharClass:
		in := regexpLiterals{exactMatches: classStrings(re.Rune), requiredAlternatives: classPrefixes(re.Rune)}
		if in.requiredAlternatives != nil {
			in.requiredAlternativeSets = [][]string{in.requiredAlternatives}
		}
		return in
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return regexpLiterals{exactMatches: []string{""}}
	case syntax.OpCapture:
		return findRegexpLiterals(re.Sub[0])
	case syntax.OpPlus:
		in := findRegexpLiterals(re.Sub[0])
		return regexpLiterals{requiredAlternatives: moreSelectiveSet(in.exactMatches, in.requiredAlternatives), requiredAlternativeSets: in.allRequiredSets()}
	case syntax.OpQuest:
		if in := findRegexpLiterals(re.Sub[0]); in.exactMatches != nil && len(in.exactMatches) < maxExactStrings {
			return regexpLiterals{exactMatches: append([]string{""}, in.exactMatches...)}
		}
	case syntax.OpConcat:
		return findConcatLiterals(re.Sub)
	case syntax.OpAlternate:
		return findAlternateLiterals(re.Sub)
	}
	return regexpLiterals{}
}

// findConcatLiterals returns the literals of a concatenation. It joins consecutive subexpressions
// that match only a short list of strings, and selects the set of required literals that the fewest
// texts contain.
func findConcatLiterals(subs []*syntax.Regexp) regexpLiterals {
	exact := []string{""}
	whole := true
	var required []string
	var sets [][]string
	for _, sub := range subs {
		in := findRegexpLiterals(sub)
		if in.exactMatches != nil && len(in.exactMatches)*len(exact) <= maxExactStrings {
			exact = crossProduct(exact, in.exactMatches)
			continue
		}
		required = moreSelectiveSet(required, exact)
		sets = append(sets, exact)
		exact, whole = []string{""}, false
		if in.exactMatches != nil {
			exact = in.exactMatches
		}
		required = moreSelectiveSet(required, in.requiredAlternatives)
		sets = append(sets, in.requiredAlternativeSets...)
	}
	if whole {
		return regexpLiterals{exactMatches: exact}
	}
	return regexpLiterals{requiredAlternatives: moreSelectiveSet(required, exact), requiredAlternativeSets: append(sets, exact)}
}

// allRequiredSets returns sets of literals. Each text that the expression matches contains at least
// one literal of each set.
func (in *regexpLiterals) allRequiredSets() [][]string {
	if in.exactMatches != nil {
		return append(in.requiredAlternativeSets, in.exactMatches)
	}
	return in.requiredAlternativeSets
}

func findAlternateLiterals(subs []*syntax.Regexp) regexpLiterals {
	var exact, required []string
	isExact, isRequired := true, true
	for _, sub := range subs {
		in := findRegexpLiterals(sub)
		exact = append(exact, in.exactMatches...)
		isExact = isExact && in.exactMatches != nil
		best := moreSelectiveSet(in.exactMatches, in.requiredAlternatives)
		required = append(required, best...)
		isRequired = isRequired && best != nil
	}
	var out regexpLiterals
	if isExact && len(exact) <= 4*maxExactStrings {
		out.exactMatches = exact
	}
	if isRequired {
		out.requiredAlternatives, out.requiredAlternativeSets = required, [][]string{required}
	}
	return out
}

func moreSelectiveSet(a, b []string) []string {
	if isMoreSelective(b, a) {
		return b
	}
	return a
}

// isMoreSelective reports whether literals presumably occur in fewer texts than thanLiterals: the
// shortest one is longer or, with equal lengths, there are fewer literals.
func isMoreSelective(literals, thanLiterals []string) bool {
	wa, wb := shortestLength(literals), shortestLength(thanLiterals)
	if wa != wb {
		return wa > wb
	}
	return len(literals) < len(thanLiterals)
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

// dropLiteralsContainingOthers drops literals that contain another.
func dropLiteralsContainingOthers(literals []string) []string {
	var out []string
next:
	for i, s := range literals {
		for j, other := range literals {
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

package effect

import (
	"strings"
	"unicode/utf8"
)

// Patterns have the syntax of [PatternsOverlap]. They are matched one segment at a time, which keeps comparisons
// polynomial: a segment is literal text, text with wildcards, or "**".

// A pathOrPatternSegment is one part of a path or pattern between slashes.
type pathOrPatternSegment struct {
	text string // unescaped if literal
	kind segmentKind

	// For a wildcard segment of a rule: the number of literal bytes at its start and end, at most 255.
	// Comparing the ends rules out most names.
	literalHeadLen, literalTailLen uint8
}

// storeLiteralHeadTailLengths counts the literal bytes at both ends of a wildcard segment.
func (s *pathOrPatternSegment) storeLiteralHeadTailLengths() {
	if s.kind == wildcardSegment {
		s.literalHeadLen, s.literalTailLen = uint8(min(literalPrefixLen(s.text), 255)), uint8(min(literalSuffixLen(s.text), 255))
	}
}

type segmentKind uint8

const (
	literalSegment  segmentKind = iota
	wildcardSegment             // contains *, ? or a class
	doubleStar                  // "**": any number of segments, also none
)

// matchesFirstAndLastByte reports whether a name begins with the first byte of a rule's segment and ends with
// its last byte, where these bytes are literal. Every name that the segment matches does.
func (s *pathOrPatternSegment) matchesFirstAndLastByte(name string) bool {
	return (s.literalHeadLen == 0 || name != "" && name[0] == s.text[0]) && (s.literalTailLen == 0 || name != "" && name[len(name)-1] == s.text[len(s.text)-1])
}

// maxPathOrPatternSegments is the maximum depth of a path; deeper parts become "**".
const maxPathOrPatternSegments = 256

// maxWildcardSegmentBytes is the maximum length in bytes of a wildcard segment, and maxWildcardSegments the maximum number of such
// segments. Longer segments keep only their literal prefix, and everything after too many of them becomes
// "**". Both only make a pattern match more, so nothing is missed, and keep comparisons fast.
const (
	maxWildcardSegmentBytes = 64
	maxWildcardSegments     = 8
)

// maxPathBytes is the maximum length in bytes of a path in system calls, after cleaning; anything longer becomes
// "**".
const maxPathBytes = 4096

const metaChars = `*?[\`

// containsGlobMetachar reports whether a text has a character with a special meaning in patterns.
func containsGlobMetachar(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[', '\\':
			return true
		}
	}
	return false
}

// QuoteGlobMeta escapes text so that as a pattern it matches only itself, see [PatternsOverlap].
func QuoteGlobMeta(s string) string {
	if !containsGlobMetachar(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(metaChars, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// patternSegment parses one segment of a pattern. Literal text is unescaped.
func patternSegment(s string) pathOrPatternSegment {
	if !containsGlobMetachar(s) {
		return pathOrPatternSegment{text: s}
	}
	if s == "**" {
		return pathOrPatternSegment{kind: doubleStar}
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		t, n := nextToken(s[i:])
		if t.kind != tokenRune {
			return pathOrPatternSegment{text: s, kind: wildcardSegment}
		}
		if s[i] == '\\' && n > 1 {
			b.WriteString(s[i+1 : i+n])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return pathOrPatternSegment{text: b.String()}
}

// A wildcardToken is one element of a wildcard segment.
type wildcardToken struct {
	kind  tokenKind
	r     rune
	class string // of a tokenClass: the text between the brackets
}

type tokenKind uint8

const (
	tokenRune tokenKind = iota
	tokenAny            // ?
	tokenStar
	tokenClass
)

// nextToken returns the first token of a non-empty pattern and its length in bytes. An unclosed bracket is
// literal, as in a shell.
func nextToken(s string) (wildcardToken, int) {
	switch s[0] {
	case '*':
		n := 1
		for n < len(s) && s[n] == '*' {
			n++
		}
		return wildcardToken{kind: tokenStar}, n
	case '?':
		return wildcardToken{kind: tokenAny}, 1
	case '[':
		if end := charClassEndIndex(s); end > 0 {
			return wildcardToken{kind: tokenClass, class: s[1:end]}, end + 1
		}
	case '\\':
		if len(s) > 1 {
			r, n := utf8.DecodeRuneInString(s[1:])
			return wildcardToken{r: r}, n + 1
		}
	}
	r, n := utf8.DecodeRuneInString(s)
	return wildcardToken{r: r}, n
}

// charClassEndIndex returns the index of the bracket that closes the class at the start of s, or 0. As in shells, a
// bracket in first place is a member, and named classes such as [:alpha:] are skipped.
func charClassEndIndex(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) {
		switch {
		case s[i] == ']':
			return i
		case s[i] == '[' && i+1 < len(s) && (s[i+1] == ':' || s[i+1] == '.' || s[i+1] == '='):
			end := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if end < 0 {
				return 0
			}
			i += end + 4
		case s[i] == '\\' && i+1 < len(s):
			i += 2
		default:
			i++
		}
	}
	return 0
}

// overlaps reports whether two tokens, neither of them a star, can match the same character. For two classes it
// returns true without comparing them, which is the strict answer.
func (t wildcardToken) overlaps(u wildcardToken) bool {
	switch {
	case t.kind == tokenRune && u.kind == tokenRune:
		return t.r == u.r
	case t.kind == tokenClass && u.kind == tokenRune:
		return inClass(t.class, u.r)
	case t.kind == tokenRune && u.kind == tokenClass:
		return inClass(u.class, t.r)
	}
	return true
}

// inClass reports whether a class contains r. Named classes count as containing every character, and case is
// ignored: classes are only used to find what an effect could touch.
func inClass(class string, r rune) bool {
	negated := class != "" && (class[0] == '!' || class[0] == '^')
	if negated {
		class = class[1:]
	}
	if strings.Contains(class, "[:") || strings.Contains(class, "[.") || strings.Contains(class, "[=") {
		return true
	}
	other := swapCase(r)
	in, inOther := false, false
	for i := 0; i < len(class); {
		lo, n := decodeCharacterClassRune(class[i:])
		i += n
		hi := lo
		if i+1 < len(class) && class[i] == '-' {
			hi, n = decodeCharacterClassRune(class[i+1:])
			i += n + 1
		}
		in = in || lo <= r && r <= hi
		inOther = inOther || lo <= other && other <= hi
	}
	if negated {
		return !in || !inOther
	}
	return in || inOther
}

func decodeCharacterClassRune(s string) (rune, int) {
	if s[0] == '\\' && len(s) > 1 {
		r, n := utf8.DecodeRuneInString(s[1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(s)
}

func swapCase(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}

// tokens appends the tokens of a segment to dst.
func (s pathOrPatternSegment) tokens(dst []wildcardToken) []wildcardToken {
	if s.kind == literalSegment {
		for _, r := range s.text {
			dst = append(dst, wildcardToken{r: r})
		}
		return dst
	}
	for i := 0; i < len(s.text); {
		t, n := nextToken(s.text[i:])
		dst = append(dst, t)
		i += n
	}
	return dst
}

// maxSegmentComparisonStates is the maximum number of states in a comparison of two wildcard segments.
const maxSegmentComparisonStates = 1 << 20

// overlaps reports whether two segments, neither of them "**", match a common name. It simulates both automata
// together.
func (s *pathOrPatternSegment) overlaps(u *pathOrPatternSegment) bool {
	if s.kind == literalSegment && u.kind == literalSegment {
		return s.text == u.text
	}
	if s.kind == literalSegment {
		return u.matches(s.text)
	}
	if u.kind == literalSegment {
		return s.matches(u.text)
	}
	if s.text == "*" || u.text == "*" || !firstAndLastBytesMayMatch(s.text, u.text) {
		return s.text == "*" || u.text == "*"
	}
	var abuf, bbuf [48]wildcardToken
	a, b := s.tokens(abuf[:0]), u.tokens(bbuf[:0])
	if len(a)*len(b) > maxSegmentComparisonStates {
		return true
	}
	var rowbuf [2][64]bool
	row, next := rowbuf[0][:], rowbuf[1][:]
	if len(b)+1 > len(row) {
		row, next = make([]bool, len(b)+1), make([]bool, len(b)+1)
	}
	row, next = row[:len(b)+1], next[:len(b)+1]
	row[0] = true
	for i := 0; i <= len(a); i++ {
		clear(next)
		for j := 0; j <= len(b); j++ {
			if row[j] {
				markNextSegmentComparisonStates(a, b, i, j, row, next)
			}
		}
		if i == len(a) {
			return row[len(b)]
		}
		row, next = next, row
	}
	return false
}

// firstAndLastBytesMayMatch reports whether two wildcard segments can agree in their first and last byte. This decides most
// comparisons.
func firstAndLastBytesMayMatch(a, b string) bool {
	x, y := a[0], b[0]
	if x != y && strings.IndexByte(metaChars, x) < 0 && strings.IndexByte(metaChars, y) < 0 {
		return false
	}
	x, y = a[len(a)-1], b[len(b)-1]
	return x == y || strings.IndexByte("*?]", x) >= 0 || strings.IndexByte("*?]", y) >= 0
}

// matches reports whether a wildcard segment matches a name. It backtracks only to the last star, so the time
// is at most the product of both lengths.
func (s *pathOrPatternSegment) matches(name string) bool {
	p := s.text
	if p == "*" {
		return true
	}
	if !s.matchesFirstAndLastByte(name) || len(name) < int(s.literalHeadLen) || name[:s.literalHeadLen] != p[:s.literalHeadLen] || len(name) < int(s.literalTailLen) || name[len(name)-int(s.literalTailLen):] != p[len(p)-int(s.literalTailLen):] {
		return false
	}
	if last := p[len(p)-1]; strings.IndexByte("*?]", last) < 0 && (name == "" || name[len(name)-1] != last) {
		return false
	}
	star, resume := -1, 0
	i, j := 0, 0
	for j < len(name) {
		if i < len(p) {
			t, n := nextToken(p[i:])
			if t.kind == tokenStar {
				i += n
				star, resume = i, j
				continue
			}
			r, size := rune(name[j]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(name[j:])
			}
			if t.overlaps(wildcardToken{r: r}) {
				i, j = i+n, j+size
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[resume:])
		resume += size
		i, j = star, resume
	}
	return strings.Trim(p[i:], "*") == ""
}

// markNextSegmentComparisonStates marks the states that follow the state (i, j), in which i tokens of a and j
// tokens of b have been compared. States with i tokens of a are marked in currentRow, and states with i+1 tokens
// in nextRow.
func markNextSegmentComparisonStates(a, b []wildcardToken, i, j int, currentRow, nextRow []bool) {
	aStar := i < len(a) && a[i].kind == tokenStar
	bStar := j < len(b) && b[j].kind == tokenStar
	switch {
	case aStar:
		nextRow[j] = true
		if j < len(b) {
			currentRow[j+1] = true
		}
	case bStar:
		currentRow[j+1] = true
		if i < len(a) {
			nextRow[j] = true
		}
	case i < len(a) && j < len(b) && a[i].overlaps(b[j]):
		nextRow[j+1] = true
	}
}

// isCoveredBy reports whether u certainly matches every name that s matches. It may return false
// although u matches them all.
func (s *pathOrPatternSegment) isCoveredBy(u *pathOrPatternSegment) bool {
	if s.kind == literalSegment {
		if u.kind == literalSegment {
			return s.text == u.text
		}
		return !strings.Contains(u.text, "[") && s.overlaps(u)
	}
	if u.kind == literalSegment {
		return false
	}
	if u.text == "*" || u.text == s.text {
		return true
	}
	// With a single star it is enough to compare the literal ends.
	pre, post, one := strings.Cut(u.text, "*")
	if !one || containsGlobMetachar(pre) || containsGlobMetachar(post) {
		return false
	}
	return literalPrefixLen(s.text) >= len(pre) && strings.HasPrefix(s.text, pre) &&
		literalSuffixLen(s.text) >= len(post) && strings.HasSuffix(s.text, post)
}

func literalPrefixLen(s string) int {
	if i := strings.IndexAny(s, metaChars); i >= 0 {
		return i
	}
	return len(s)
}

func literalSuffixLen(s string) int { return len(s) - 1 - strings.LastIndexAny(s, metaChars+"]") }

// appendSegments appends the segments of a canonical path or pattern to dst. The root
// of a POSIX path is not a segment; a drive and "unc:" are.
func appendSegments(dst []pathOrPatternSegment, path string, pattern bool) []pathOrPatternSegment {
	wilds := 0
	for path != "" {
		name, rest, _ := cutSlash(path, pattern)
		path = rest
		if name == "" {
			continue
		}
		if len(dst) >= maxPathOrPatternSegments || wilds == maxWildcardSegments {
			return append(dst, pathOrPatternSegment{kind: doubleStar})
		}
		if !pattern {
			dst = append(dst, pathOrPatternSegment{text: name})
			continue
		}
		s := patternSegment(name)
		if s.kind == wildcardSegment {
			wilds++
			if len(s.text) > maxWildcardSegmentBytes {
				s = widenToPrefixGlob(s)
			}
		}
		dst = append(dst, s)
	}
	return dst
}

// widenToPrefixGlob shortens a wildcard segment to its literal prefix and a star.
func widenToPrefixGlob(s pathOrPatternSegment) pathOrPatternSegment {
	star := "*"
	if hasInnerDoubleStar(s) {
		star = "**"
	}
	head := s.text[:min(literalPrefixLen(s.text), maxWildcardSegmentBytes)]
	return pathOrPatternSegment{text: strings.ToValidUTF8(head, "") + star, kind: wildcardSegment}
}

// cutSlash cuts at the first slash; in a pattern an escaped slash also separates.
func cutSlash(s string, pattern bool) (name, rest string, found bool) {
	i := strings.IndexByte(s, '/')
	if i < 0 {
		return s, "", false
	}
	name = s[:i]
	if pattern && strings.HasSuffix(name, `\`) && (len(name)-len(strings.TrimRight(name, `\`)))%2 == 1 {
		name = name[:len(name)-1]
	}
	return name, s[i+1:], true
}

// clipToMaxPath limits a pattern to the length that [PatternsOverlap] compares.
func clipToMaxPath(s string) string {
	if len(s) <= maxPathBytes {
		return s
	}
	cut := strings.LastIndexByte(s[:maxPathBytes], '/')
	return s[:cut+1] + "**"
}

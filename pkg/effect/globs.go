package effect

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
)

// Globs is an indexed set of path globs: each path is compared with only a few of them. Goroutines may share
// it.
//
// A glob starts with "/" or a drive ("c:/"), with "~/" for every home folder, with "$NAME/" for every folder
// in a variable, or with "**/" for any folder. Within it * matches any characters except a slash, ** between
// slashes any number of folders, ? one character, […] one of several, \x the character x, and {a,b} either of
// two. A trailing "/**" also matches the folder itself.
type Globs struct {
	expandedGlobs                           []expandedGlob
	compiled                                []atomic.Pointer[globRule] // rule of each expanded glob, compiled on first use: most processes compare few paths
	startFolders                            [][]pathOrPatternSegment   // folders in which globs begin, such as the folder of a variable; index 0 is for globs without such a folder
	absoluteRules, homeRules, anywhereRules ruleIndex
	possibleHomeFolders                     [][]pathOrPatternSegment // possible home folders
	knownHomeFolders                        [][]pathOrPatternSegment // home folders that are certain
}

// An expandedGlob is one valid glob after its braces and variables are expanded.
type expandedGlob struct {
	restAfterStart        string // the glob after its beginning: "/", "~/", "**/", or the folder in Globs.startFolders
	firstLiteralSegment   string // first segment, case folded, if it is literal
	globIndex             int32  // index of the original glob in the list given to [NewGlobs]
	startFolderIndex      int32  // index in Globs.startFolders
	nextWithSameHash      int32  // next expanded glob whose first segment has the same hash; -1 ends the list
	startKind             globStartKind
	isFirstSegmentLiteral bool // the first segment is literal
	matchesAnyDepth       bool // see [globRule]
}

// A globStartKind says what a glob starts with.
type globStartKind uint8

const (
	globStartRoot     globStartKind = iota // "/", a drive or the folder of a variable
	globStartHome                          // "~/"
	globStartAnywhere                      // "**/"
)

// A globRule is a compiled [expandedGlob].
type globRule struct {
	globIndex                    int                    // index of the glob it came from
	foldedSegments               []pathOrPatternSegment // case folded; without the home folder or a leading "**"
	exactSegments                []pathOrPatternSegment // like foldedSegments, but with the original case
	doubleStarBits               uint64                 // bit set of segments that are "**"
	leadingDoubleStarStartBit    uint64                 // 1, the bit of state 0, if the glob starts with "**" and so can begin at every segment; else 0
	literalTextSegmentBits       uint64                 // bit set of the segments that are evidence for a match, see [globRule.markLiteralTextSegments]
	isAnyDepthWithoutLiteralText bool                   // no segment has literal text that a path must contain, and the glob matches at any depth
	matchesAnyDepth              bool                   // matches at any depth below the start
	isSingleSegment              bool                   // a single segment, which matches the last name of a path
}

// A ruleIndex finds expanded globs by the text of their first segment.
type ruleIndex struct {
	globListHeadByHash        []int32 // by hash of the first segment: index of the first expanded glob with this hash, or -1; len is a power of two
	wildcardFirstSegmentGlobs []int32 // expanded globs whose first segment is not literal
	allRules                  []int32
}

const (
	maxGlobBytes       = 1024 // bytes
	maxGlobSegments    = 60   // segments of a glob; the states of a match, at most segments + 1, fit in a 64-bit word
	maxBraceExpansions = 64   // from the braces of one glob
)

// NewGlobs returns the set of some globs. vars maps variables to folders as canonical paths. A glob with a
// variable without folders matches nothing; a variable that is not in vars is an error. The folders of HOME
// are added to the usual home folders. An error names the invalid glob.
func NewGlobs(globs []string, vars map[string][]string) (*Globs, error) {
	n := len(globs)
	for _, glob := range globs {
		if strings.IndexByte(glob, '{') >= 0 {
			n += strings.Count(glob, ",")
		}
	}
	b := globBuilder{foldersByGlobVariable: vars, globs: &Globs{expandedGlobs: make([]expandedGlob, 0, n), startFolders: make([][]pathOrPatternSegment, 1, 16)}}
	b.globs.possibleHomeFolders, b.globs.knownHomeFolders = homeFolders(vars["HOME"])
	for i, glob := range globs {
		b.globIndex = int32(i)
		if err := b.addBraceGlob(glob); err != nil {
			return nil, fmt.Errorf("glob %q: %w", glob, err)
		}
	}
	b.indexGlobsByStartKind()
	return b.globs, nil
}

// A globBuilder adds globs to a set.
type globBuilder struct {
	globs                  *Globs
	foldersByGlobVariable  map[string][]string
	startFolderIndexByPath map[string]int32 // by canonical path of a folder that a variable in a glob stands for: its index in Globs.startFolders
	globIndex              int32
	expansionCount         int
}

// addBraceGlob expands the braces of a glob and adds the results.
func (b *globBuilder) addBraceGlob(glob string) error {
	if len(glob) > maxGlobBytes {
		return fmt.Errorf("it is longer than %d bytes; shorten it", maxGlobBytes)
	}
	b.expansionCount = 0
	return b.addBraceExpansions(glob)
}

func (b *globBuilder) addBraceExpansions(glob string) error {
	parts, err := braceAlternatives(glob)
	if err != nil {
		return err
	}
	if parts == nil {
		if b.expansionCount++; b.expansionCount > maxBraceExpansions {
			return fmt.Errorf("its braces stand for more than %d globs; write fewer alternatives", maxBraceExpansions)
		}
		return b.addBraceFreeGlob(glob)
	}
	for _, part := range parts {
		if err := b.addBraceExpansions(part); err != nil {
			return err
		}
	}
	return nil
}

// ExpandBraces returns the expansions of a glob with braces. It is for shield's own lists.
func ExpandBraces(glob string) []string {
	parts, err := braceAlternatives(glob)
	if parts == nil || err != nil {
		return []string{glob}
	}
	var out []string
	for _, part := range parts {
		out = append(out, ExpandBraces(part)...)
	}
	return out
}

// braceAlternatives returns the globs that the first braces of a glob expand to; nil if it has no braces.
func braceAlternatives(glob string) ([]string, error) {
	open := strings.IndexByte(glob, '{')
	for open > 0 && glob[open-1] == '\\' {
		i := strings.IndexByte(glob[open+1:], '{')
		if i < 0 {
			return nil, nil
		}
		open += 1 + i
	}
	if open < 0 {
		return nil, nil
	}
	start, depth := open+1, 0
	var parts []string
	for i := open; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, glob[:open]+glob[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, glob[:open]+glob[start:i])
			for k := range parts {
				parts[k] += glob[i+1:]
			}
			return parts, nil
		}
	}
	return nil, errors.New("a brace is not closed; add }")
}

// addBraceFreeGlob adds a glob without braces.
func (b *globBuilder) addBraceFreeGlob(glob string) error {
	head, rest, _ := strings.Cut(glob, "/")
	switch {
	case strings.IndexByte(glob, 0) >= 0:
		return errors.New("it contains a NUL byte; remove it")
	case head == "~" || head == "$HOME":
		return b.addExpandedGlob(expandedGlob{startKind: globStartHome, restAfterStart: rest})
	case head == "**":
		return b.addExpandedGlob(expandedGlob{startKind: globStartAnywhere, restAfterStart: rest, matchesAnyDepth: true})
	case strings.HasPrefix(head, "$"):
		folders, ok := b.foldersByGlobVariable[head[1:]]
		if !ok {
			return fmt.Errorf("unknown variable %s", head)
		}
		for _, folder := range folders {
			if err := b.addExpandedGlob(expandedGlob{startFolderIndex: b.startFolderIndex(folder), restAfterStart: rest, matchesAnyDepth: strings.HasPrefix(rest, "**/")}); err != nil {
				return err
			}
		}
		return nil
	case strings.HasPrefix(glob, "//"):
		return b.addExpandedGlob(expandedGlob{startFolderIndex: b.addStartFolderReturningIndex([]pathOrPatternSegment{{text: uncRoot}}), restAfterStart: strings.ToLower(glob[2:])})
	case head == uncRoot:
		return b.addExpandedGlob(expandedGlob{startFolderIndex: b.addStartFolderReturningIndex([]pathOrPatternSegment{{text: uncRoot}}), restAfterStart: strings.ToLower(rest)})
	case head == "" && glob != "":
		return b.addExpandedGlob(expandedGlob{restAfterStart: rest})
	case isDrive(head):
		return b.addExpandedGlob(expandedGlob{startFolderIndex: b.addStartFolderReturningIndex([]pathOrPatternSegment{patternSegment(strings.ToLower(head))}), restAfterStart: strings.ToLower(rest)})
	}
	return errors.New(`it is relative; start it with "/", "~/", "**/", "$WORKSPACE/" or a drive`)
}

// startFolderIndex returns the index in Globs.startFolders of a folder that a variable in a glob stands for,
// and adds the folder if it is missing. path is canonical.
func (b *globBuilder) startFolderIndex(path string) int32 {
	id, ok := b.startFolderIndexByPath[path]
	if !ok {
		if id = b.addStartFolderReturningIndex(appendSegments(nil, path, false)); b.startFolderIndexByPath == nil {
			b.startFolderIndexByPath = make(map[string]int32, 8)
		}
		b.startFolderIndexByPath[path] = id
	}
	return id
}

// addStartFolderReturningIndex adds a folder in which globs begin to Globs.startFolders, and returns its index
// there.
func (b *globBuilder) addStartFolderReturningIndex(segs []pathOrPatternSegment) int32 {
	b.globs.startFolders = append(b.globs.startFolders, segs)
	return int32(len(b.globs.startFolders) - 1)
}

// isDrive reports whether s is a drive such as "c:", or "?:" for any drive.
func isDrive(s string) bool {
	return len(s) == 2 && s[1] == ':' && (s[0] == '?' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z')
}

// addExpandedGlob checks an expanded glob and adds it to the set.
func (b *globBuilder) addExpandedGlob(s expandedGlob) error {
	anchor := b.globs.startFolders[s.startFolderIndex]
	if len(anchor)+strings.Count(s.restAfterStart, "/")+1 > maxGlobSegments {
		return fmt.Errorf("it is deeper than %d folders; shorten it", maxGlobSegments)
	}
	first, begun := pathOrPatternSegment{kind: wildcardSegment}, len(anchor) > 0
	if begun {
		first = anchor[0]
	}
	for rest := s.restAfterStart; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if err := validateGlobSegment(name); err != nil {
			return err
		}
		if !begun && !(name == "**" && s.startKind == globStartAnywhere) {
			first, begun = patternSegment(name), true
		}
	}
	if s.globIndex = b.globIndex; first.kind == literalSegment {
		s.isFirstSegmentLiteral, s.firstLiteralSegment = true, foldPath(first.text)
	}
	b.globs.expandedGlobs = append(b.globs.expandedGlobs, s)
	return nil
}

// indexGlobsByStartKind fills the indexes of the set.
func (b *globBuilder) indexGlobsByStartKind() {
	g := b.globs
	g.compiled = make([]atomic.Pointer[globRule], len(g.expandedGlobs))
	var all, wild [globStartAnywhere + 1]int
	for i := range g.expandedGlobs {
		s := &g.expandedGlobs[i]
		all[s.startKind]++
		if !s.isFirstSegmentLiteral {
			wild[s.startKind]++
		}
	}
	for k, n := range all {
		ix := g.index(globStartKind(k))
		ix.allRules, ix.wildcardFirstSegmentGlobs = make([]int32, 0, n), make([]int32, 0, wild[k])
		ix.globListHeadByHash = make([]int32, 1<<bits.Len(uint(n-wild[k])))
		for i := range ix.globListHeadByHash {
			ix.globListHeadByHash[i] = -1
		}
	}
	for i := range g.expandedGlobs {
		s, id := &g.expandedGlobs[i], int32(i)
		ix := g.index(s.startKind)
		ix.allRules = append(ix.allRules, id)
		if !s.isFirstSegmentLiteral {
			ix.wildcardFirstSegmentGlobs = append(ix.wildcardFirstSegmentGlobs, id)
			continue
		}
		head := ix.globListHeadOf(s.firstLiteralSegment)
		s.nextWithSameHash, *head = *head, id
	}
}

// index returns the index of the expanded globs that start in this way.
func (g *Globs) index(at globStartKind) *ruleIndex {
	switch at {
	case globStartHome:
		return &g.homeRules
	case globStartAnywhere:
		return &g.anywhereRules
	}
	return &g.absoluteRules
}

var firstSegmentHashSeed = maphash.MakeSeed()

// globListHeadOf returns a pointer to the head of the list of expanded globs whose first segment
// has the same hash as firstSegment.
func (ix *ruleIndex) globListHeadOf(firstSegment string) *int32 {
	return &ix.globListHeadByHash[maphash.String(firstSegmentHashSeed, firstSegment)&uint64(len(ix.globListHeadByHash)-1)]
}

// compiledRule returns the compiled rule of the expanded glob with an index.
func (g *Globs) compiledRule(expandedGlobIndex int32) *globRule {
	if r := g.compiled[expandedGlobIndex].Load(); r != nil {
		return r
	}
	r := g.compile(&g.expandedGlobs[expandedGlobIndex])
	g.compiled[expandedGlobIndex].Store(r) // another goroutine may store an equal one
	return r
}

// compile returns the compiled rule of an expanded glob.
func (g *Globs) compile(s *expandedGlob) *globRule {
	anchor := g.startFolders[s.startFolderIndex]
	r := &globRule{globIndex: int(s.globIndex), matchesAnyDepth: s.matchesAnyDepth}
	if s.startKind == globStartAnywhere {
		r.leadingDoubleStarStartBit = 1
	}
	r.exactSegments = append(make([]pathOrPatternSegment, 0, len(anchor)+strings.Count(s.restAfterStart, "/")+1), anchor...)
	for rest := s.restAfterStart; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		seg := globSegment(name)
		k := len(r.exactSegments)
		if seg.kind == doubleStar && (k == 0 && s.startKind == globStartAnywhere || k > 0 && r.exactSegments[k-1].kind == doubleStar) {
			continue
		}
		seg.storeLiteralHeadTailLengths()
		r.exactSegments = append(r.exactSegments, seg)
	}
	r.foldedSegments = r.exactSegments
	for i, seg := range r.exactSegments {
		folded := foldPath(seg.text)
		if folded == seg.text {
			continue
		}
		if &r.foldedSegments[0] == &r.exactSegments[0] {
			r.foldedSegments = slices.Clone(r.exactSegments)
		}
		r.foldedSegments[i].text = folded
		r.foldedSegments[i].storeLiteralHeadTailLengths()
	}
	r.markLiteralTextSegments(len(anchor))
	return r
}

// validateGlobSegment returns an error if the text is no segment of a glob.
func validateGlobSegment(name string) error {
	switch name {
	case "":
		return errors.New("it contains two slashes in a row; remove one")
	case ".", "..":
		return fmt.Errorf("it contains %q; write the folder's full path", name)
	}
	if strings.IndexByte(name, '[') < 0 {
		return nil
	}
	for i := 0; i < len(name); {
		t, n := nextToken(name[i:])
		if t.kind == tokenRune && t.r == '[' && n == 1 {
			return errors.New("a bracket is not closed; add ]")
		}
		i += n
	}
	return nil
}

// globSegment parses one valid segment of a glob.
func globSegment(name string) pathOrPatternSegment {
	s := patternSegment(name)
	if s.kind == wildcardSegment {
		s.text = collapseStars(s.text)
	}
	return s
}

// collapseStars replaces each run of stars in a segment by one star, which means the same. Escaped stars are kept.
func collapseStars(s string) string {
	if !strings.Contains(s, "**") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		t, n := nextToken(s[i:])
		if t.kind == tokenStar {
			b.WriteByte('*')
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// markLiteralTextSegments determines which segments are evidence that a pattern with an unknown start means a protected path:
// names, and wildcards with a literal prefix such as "id_*". "*.json" is too common, unless the rule has
// nothing else.
func (r *globRule) markLiteralTextSegments(anchorLen int) {
	var names, any uint64
	for i, s := range r.foldedSegments {
		bit := uint64(1) << i
		switch {
		case s.kind == doubleStar:
			r.doubleStarBits |= bit
		case i < anchorLen:
		case s.kind == literalSegment || literalPrefixLen(s.text) >= 2:
			names |= bit
		case strings.Trim(s.text, "*?") != "":
			any |= bit
		}
	}
	r.literalTextSegmentBits = names
	if names == 0 {
		r.literalTextSegmentBits = any
	}
	r.isAnyDepthWithoutLiteralText = r.literalTextSegmentBits == 0 && (r.matchesAnyDepth || r.doubleStarBits != 0)
	r.isSingleSegment = r.leadingDoubleStarStartBit != 0 && len(r.foldedSegments) == 1
}

// usualHomes are the home folders on Linux, BSD, macOS and Windows, also as named by WSL, Cygwin
// and Git Bash.
var usualHomes = [...]string{
	"/home/*", "/root", "/Users/*", "/var/root", "/var/home/*", "/usr/home/*", "/export/home/*",
	"?:/users/*", "?:/documents and settings/*",
	"/mnt/?/users/*", "/cygdrive/?/users/*", "/?/users/*",
}

// homeFolders returns all folders that "~" may be, case folded, and those that it certainly is.
func homeFolders(knownHomePaths []string) (possibleHomes, certainHomes [][]pathOrPatternSegment) {
	possibleHomes = make([][]pathOrPatternSegment, 0, len(knownHomePaths)+len(usualHomes))
	room := make([]pathOrPatternSegment, 0, 4*len(usualHomes))
	for _, h := range knownHomePaths {
		possibleHomes = append(possibleHomes, appendSegments(nil, foldPath(h), false))
		certainHomes = append(certainHomes, appendSegments(nil, h, false))
	}
	for _, h := range usualHomes {
		from := len(room)
		for name := range strings.SplitSeq(strings.Trim(h, "/"), "/") {
			room = append(room, patternSegment(strings.ToLower(name)))
		}
		possibleHomes = append(possibleHomes, room[from:len(room):len(room)])
	}
	return possibleHomes, certainHomes
}

package effect

import (
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// CanonicalPath returns the canonical form of a word of a command, or of a path in a payload: absolute, with
// slashes, without "." and "..", and with its usual name where the system has several. Variables with known
// folders and "~" are expanded. Paths of Windows start with a drive ("c:/users/me") or "unc:/" and are in lower
// case. CanonicalPath does not access files, except that it calls p.ResolveLinks to resolve ".." after a
// symbolic link. The caller must resolve other links.
//
// wordIsPattern says that word is a pattern as in [PatternsOverlap]: a shell glob, or partly unknown text, in
// which "**" matches the unknown part. CanonicalPath may return a pattern for a word that is not one: "**/notes"
// if the folder of a relative path is unknown, "/home/*" for an unknown home folder. The canonical form of a
// canonical path is the path itself. The result "" means that the word contains no path; a completely unknown
// path is "**".
func (p *PathContext) CanonicalPath(word string, wordIsPattern bool) (path string, isPattern bool) {
	if isAlreadyCanonicalPath(word, wordIsPattern) && !p.hasWindowsPaths() {
		if word[0] == '/' {
			return word, false
		}
		if len(p.CWD) > 1 && len(p.CWD)+len(word) < maxPathBytes && !isInFolderWithPathAliases(p.CWD) {
			return p.CWD + "/" + word, false
		}
	}
	word, _, _ = strings.Cut(word, "\x00")
	word, wordIsPattern = pathFromFileURL(word, wordIsPattern)
	if word == "" {
		return "", wordIsPattern
	}
	w := pathWalk{pathContext: p, isPattern: wordIsPattern}
	w.segs = make([]pathOrPatternSegment, 0, 24)
	w.walkFromRoot(word)
	return w.currentPathOrPattern()
}

// isAlreadyCanonicalPath reports whether a word is already canonical relative to its folder. Most words are, so this is a fast
// path.
func isAlreadyCanonicalPath(word string, isPattern bool) bool {
	if word == "" || len(word) > maxPathBytes || word[len(word)-1] == '/' && len(word) > 1 {
		return false
	}
	if word[0] == '/' && isInFolderWithPathAliases(word) {
		return false
	}
	after := byte('/')
	for i := 0; i < len(word); i++ {
		switch c := word[i]; c {
		case 0, '\\', '~', '$', '%', ':':
			return false
		case '*', '?', '[':
			if isPattern {
				return false
			}
		case '/':
			if after == '/' && i > 0 {
				return false
			}
		case '.':
			if after == '/' && (i+1 == len(word) || word[i+1] == '/' || word[i+1] == '.') {
				return false
			}
		}
		after = word[i]
	}
	return strings.Count(word, "/") < maxPathOrPatternSegments
}

// isInFolderWithPathAliases reports whether an absolute path is in a place where files have several names.
func isInFolderWithPathAliases(path string) bool {
	if len(path) < 2 {
		return false
	}
	switch path[1] {
	case 'p', 'P', 'd', 'D', 's', 'S', 'v', 'V', '.':
		for _, head := range [...]string{"/proc", "/private", "/dev", "/system", "/volumes", "/."} {
			if len(path) >= len(head) && strings.EqualFold(path[:len(head)], head) {
				return true
			}
		}
	}
	return false
}

// A pathWalk follows a path one segment at a time, since the meaning of ".." depends on the links before it.
type pathWalk struct {
	pathContext                  *PathContext
	isPattern                    bool   // the word is a pattern
	backslashSeparates           bool   // backslashes are separators
	currentFolderHasWindowsNames bool   // the current folder has Windows names
	root                         string // "/", unc or a drive; "" if unknown
	segs                         []pathOrPatternSegment
	linkLookupsDone              int // number of calls of PathContext.ResolveLinks
}

// maxDotDotLinkLookups is the maximum number of ".." that are resolved through links.
const maxDotDotLinkLookups = 16

// walkFromRoot determines the folder that a word starts from and follows the word.
func (w *pathWalk) walkFromRoot(word string) {
	w.currentFolderHasWindowsNames = w.contextHasWindowsPaths()
	w.backslashSeparates = w.isBackslashSeparatedPath(word)
	if w.backslashSeparates {
		word = w.enterAndTrimWindowsRoot(word)
	} else if word[0] == '/' {
		w.root = "/"
	}
	// A pattern that starts with unknown text may be absolute.
	if w.root == "" && !(w.isPattern && strings.HasPrefix(word, "**")) {
		word = w.enterStartFolder(word)
	}
	w.walkSegments(word, w.isPattern)
}

// enterStartFolder moves to the folder in which a relative path starts, and returns the
// rest of the path. That is the folder of a leading variable or "~", or else the current folder.
func (w *pathWalk) enterStartFolder(relativePath string) string {
	if base, rest, ok := w.resolveLeadingVariable(relativePath); ok {
		w.moveTo(base)
		return rest
	}
	w.moveTo(w.pathContext.CWD)
	return relativePath
}

// moveTo moves the walk to a canonical path; "" is an unknown folder.
func (w *pathWalk) moveTo(folder string) {
	w.segs = w.segs[:0]
	switch {
	case folder == "":
		w.root = ""
		w.segs = append(w.segs, pathOrPatternSegment{kind: doubleStar})
		return
	case strings.HasPrefix(folder, uncRoot):
		w.root, w.currentFolderHasWindowsNames = uncRoot, true
		folder = folder[len(uncRoot):]
	case isWindowsPath(folder):
		w.root, w.currentFolderHasWindowsNames = folder[:2], true
		folder = folder[2:]
	default:
		w.root, w.currentFolderHasWindowsNames = "/", false
	}
	isPattern := strings.HasPrefix(folder, "/home/*") || w.root == "?:" && containsGlobMetachar(folder)
	for folder != "" {
		var name string
		name, folder, _ = strings.Cut(folder, "/")
		if name != "" {
			w.appendSegment(name, isPattern)
		}
	}
}

// walkSegments follows the names of a word, without its root or leading variable, from the current folder of the
// walk. pattern says that the word is a pattern.
func (w *pathWalk) walkSegments(word string, pattern bool) {
	for word != "" {
		var name string
		if w.backslashSeparates {
			name, word = cutAtPathSeparator(word)
		} else {
			name, word, _ = cutSlash(word, pattern)
		}
		if w.currentFolderHasWindowsNames {
			name = normalizeWindowsFileName(name)
		}
		wildcard := pattern
		if pattern && !w.backslashSeparates {
			if s := patternSegment(name); s.kind == literalSegment {
				name, wildcard = s.text, false // an escaped name such as "\.\." is literal
			}
		}
		switch name {
		case "", ".":
		case "..":
			w.moveToParent()
		default:
			w.enterSegment(name, word != "", wildcard)
		}
	}
}

// patternMatchesDotDot reports whether a pattern matches "..": some shells expand ".*" to it.
func patternMatchesDotDot(segmentPattern string) bool {
	s := patternSegment(segmentPattern)
	return s.overlaps(&pathOrPatternSegment{text: ".."})
}

// enterSegment enters a folder or reaches a file. hasMoreSegments says that more segments of the
// path follow.
func (w *pathWalk) enterSegment(name string, hasMoreSegments, isPattern bool) {
	if hasMoreSegments && isPattern && name[0] == '.' && containsGlobMetachar(name) && patternMatchesDotDot(name) {
		w.moveTo("")
		return
	}
	if isUsernameVariable(name) {
		w.enterFolderNamedAfterUser()
		return
	}
	w.appendSegment(name, isPattern)
	w.resolvePathAliases()
}

// appendSegment appends one segment.
func (w *pathWalk) appendSegment(name string, pattern bool) {
	if len(w.segs) >= maxPathOrPatternSegments {
		if w.segs[len(w.segs)-1].kind != doubleStar {
			w.segs = append(w.segs, pathOrPatternSegment{kind: doubleStar})
		}
		return
	}
	s := pathOrPatternSegment{text: name}
	if w.currentFolderHasWindowsNames {
		if folded := foldPath(name); folded != "" { // a name of only invisible characters stays as it is
			name = folded
		}
		s.text = name
		if short := longNamePattern(name); short != "" {
			s = pathOrPatternSegment{text: short, kind: wildcardSegment}
		} else if pattern && strings.ContainsAny(name, "*?[") {
			s.kind = wildcardSegment
			if name == "**" {
				s = pathOrPatternSegment{kind: doubleStar}
			}
		}
	} else if pattern {
		s = patternSegment(name)
	}
	if n := len(w.segs); s.kind == doubleStar && n > 0 && w.segs[n-1].kind == doubleStar {
		return
	}
	w.segs = append(w.segs, s)
}

// moveToParent moves to the parent folder. If the current path is a symbolic link, it moves to the
// parent folder of the link's target.
func (w *pathWalk) moveToParent() {
	n := len(w.segs)
	if n == 0 {
		return
	}
	if w.segs[n-1].kind == doubleStar {
		return // the parent of an unknown folder is unknown
	}
	if links := w.pathContext.ResolveLinks; links != nil && w.root != "" && w.hasOnlyLiteralSegments() {
		if w.linkLookupsDone++; w.linkLookupsDone > maxDotDotLinkLookups {
			w.moveTo("")
			return
		}
		here, _ := w.currentPathOrPattern()
		if there := links(here); there != here {
			w.moveTo(there)
			n = len(w.segs)
			if n == 0 {
				return
			}
		}
	}
	w.segs = w.segs[:n-1]
}

func (w *pathWalk) hasOnlyLiteralSegments() bool {
	for _, s := range w.segs {
		if s.kind != literalSegment {
			return false
		}
	}
	return true
}

// currentPathOrPattern returns the current path, and whether it is a pattern.
func (w *pathWalk) currentPathOrPattern() (string, bool) {
	isPattern := w.root == "" || w.root == "?:" || !w.hasOnlyLiteralSegments()
	var b strings.Builder
	n := 4
	for _, s := range w.segs {
		n += len(s.text) + 3
	}
	b.Grow(n)
	switch {
	case w.root == "/":
		b.WriteByte('/')
	case w.root != "":
		b.WriteString(w.root)
		b.WriteByte('/')
	}
	for i, s := range w.segs {
		if i > 0 {
			b.WriteByte('/')
		}
		switch {
		case s.kind == doubleStar:
			b.WriteString("**")
		case s.kind == wildcardSegment || !isPattern:
			b.WriteString(s.text)
		case w.currentFolderHasWindowsNames:
			b.WriteString(quoteWindowsGlobMeta(s.text))
		default:
			b.WriteString(QuoteGlobMeta(s.text))
		}
		if b.Len() > maxPathBytes {
			return patternForTooLongPath(b.String(), isPattern), true
		}
	}
	return b.String(), isPattern
}

// patternForTooLongPath returns a pattern for a path that is longer than system calls accept.
func patternForTooLongPath(path string, isPattern bool) string {
	cut := strings.LastIndexByte(path[:maxPathBytes], '/')
	if !isPattern {
		return clipToMaxPath(QuoteGlobMeta(path[:cut+1]) + "**")
	}
	return path[:cut+1] + "**"
}

// pathFromFileURL returns the path of a file URL; it returns other words unchanged.
func pathFromFileURL(word string, isPattern bool) (string, bool) {
	if len(word) < 5 || !strings.EqualFold(word[:5], "file:") {
		return word, isPattern
	}
	path := word[5:]
	if i := strings.IndexAny(path, "?#"); i >= 0 && !isPattern {
		path = path[:i]
	}
	path = decode.DecodePercentEscapes(path)
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		host, below, _ := strings.Cut(rest, "/")
		path = "/" + below
		if host != "" && !MayBeThisMachine(CanonicalHost(host)) {
			path = uncRoot + "/" + host + path
		}
	}
	if len(path) >= 3 && path[0] == '/' && isDrive(path[1:3]) {
		path = path[1:]
	}
	path, _, _ = strings.Cut(path, "\x00")
	return path, isPattern
}

package effect

import "strings"

// uncRoot is the root of network paths: \\server\share is unc:/server/share. No path of another system starts
// with it.
const uncRoot = "unc:"

// isBackslashSeparatedPath reports whether a word is a Windows path, in which backslashes are separators.
func (w *pathWalk) isBackslashSeparatedPath(word string) bool {
	switch word[0] {
	case '\\':
		if strings.HasPrefix(word, `\\`) && len(word) > 2 && strings.ContainsAny(word[2:], `\/`) {
			return true
		}
		return w.contextHasWindowsPaths() || !w.isPattern && len(word) > 1 && (isAlnumOrUnderscore(word[1]) || word[1] == '?')
	case '/':
		return strings.HasPrefix(word, "//?/") || strings.HasPrefix(word, "//./") || w.contextHasWindowsPaths()
	case '%':
		_, _, ok := variableName(word)
		return ok || w.contextHasWindowsPaths()
	case '$':
		return len(word) > 5 && (strings.EqualFold(word[1:5], "env:") || strings.EqualFold(word[1:6], "{env:")) ||
			w.contextHasWindowsPaths() || strings.IndexByte(word, '\\') > 0 && !w.isPattern
	case '~', '.':
		// On systems other than Windows, names like ~\x and ..\x are unlikely, so a backslash after "~" or dots
		// means a Windows path.
		i := strings.IndexAny(word, `/\`)
		return w.contextHasWindowsPaths() || !w.isPattern && i > 0 && word[i] == '\\' && strings.Trim(word[:i], "~.") == ""
	case '?':
		return strings.HasPrefix(word, "?:/") && w.isPattern || w.contextHasWindowsPaths()
	}
	switch {
	case len(word) >= 2 && isDrive(word[:2]):
		return len(word) == 2 || word[2] == '/' || word[2] == '\\' || w.contextHasWindowsPaths()
	case len(word) >= len(uncRoot) && strings.EqualFold(word[:len(uncRoot)], uncRoot):
		return true
	}
	return w.contextHasWindowsPaths()
}

// contextHasWindowsPaths reports whether the current folder of the context is a Windows path, or,
// if the current folder is unknown, whether the home folder is one.
func (w *pathWalk) contextHasWindowsPaths() bool { return w.pathContext.hasWindowsPaths() }

func (p *PathContext) hasWindowsPaths() bool {
	return isWindowsPath(p.CWD) || p.CWD == "" && isWindowsPath(p.Home)
}

// isWindowsPath reports whether a canonical path is a Windows path.
func isWindowsPath(path string) bool {
	return strings.HasPrefix(path, uncRoot) || len(path) >= 2 && isDrive(path[:2])
}

// enterAndTrimWindowsRoot determines the root of a word, if it has one, and returns the rest.
func (w *pathWalk) enterAndTrimWindowsRoot(word string) string {
	slashed := strings.ReplaceAll(word, `\`, "/")
	for _, head := range [...]string{"//?/", "//./", "/??/"} {
		if strings.HasPrefix(slashed, head) {
			return w.enterDevicePath(slashed[len(head):], word[len(head):])
		}
	}
	switch {
	case len(word) >= len(uncRoot) && strings.EqualFold(word[:len(uncRoot)], uncRoot):
		return w.enterNetworkShare(word[len(uncRoot):])
	case strings.HasPrefix(slashed, "//"):
		return w.enterNetworkShare(word[2:])
	case len(word) >= 2 && isDrive(word[:2]):
		return w.enterAndTrimDrive(word)
	case slashed[0] == '/':
		// \x is on the current drive; in Git Bash, /c/x is c:\x.
		if len(slashed) >= 2 && isDrive(slashed[1:2]+":") && slashed[1] != '?' && (len(slashed) == 2 || slashed[2] == '/') {
			w.setDrive(slashed[1:2] + ":")
			return word[2:]
		}
		w.setDrive("?:")
		for _, known := range [...]string{w.pathContext.CWD, w.pathContext.Home} {
			if len(known) >= 2 && isDrive(known[:2]) {
				w.setDrive(known[:2])
				break
			}
		}
		return word[1:]
	}
	return word
}

func (w *pathWalk) setDrive(drive string) {
	w.root, w.currentFolderHasWindowsNames = strings.ToLower(drive), true
}

// enterAndTrimDrive enters a drive. "c:x" is relative to the current folder of c:.
func (w *pathWalk) enterAndTrimDrive(word string) string {
	rest := word[2:]
	if rest == "" || rest[0] == '/' || rest[0] == '\\' {
		w.setDrive(word[:2])
		return rest
	}
	if cwd := w.pathContext.CWD; len(cwd) > 1 && strings.EqualFold(cwd[:2], word[:2]) {
		w.moveTo(cwd)
		return rest
	}
	w.setDrive(word[:2])
	w.segs = append(w.segs, pathOrPatternSegment{kind: doubleStar})
	return rest
}

// enterDevicePath parses a path after \\?\ or \\.\, which use the kernel's names.
func (w *pathWalk) enterDevicePath(slashed, word string) string {
	head, _, _ := strings.Cut(slashed, "/")
	switch lower := strings.ToLower(head); {
	case lower == "unc":
		return w.enterNetworkShare(word[min(len(head)+1, len(word)):])
	case isDrive(head):
		w.setDrive(head)
		return word[2:]
	case lower == "globalroot" || strings.HasPrefix(lower, "volume{") || strings.HasPrefix(lower, "harddisk"):
		// A volume by another name: the drive is unknown.
		w.setDrive("?:")
		w.segs = append(w.segs, pathOrPatternSegment{kind: doubleStar})
		return word[len(head):]
	}
	w.root, w.currentFolderHasWindowsNames = uncRoot, true
	w.segs = append(w.segs, pathOrPatternSegment{text: "device"})
	return word
}

// enterNetworkShare parses a path after \\server\share. Shares of this machine are drives, or file systems of WSL.
func (w *pathWalk) enterNetworkShare(word string) string {
	word = strings.TrimLeft(word, `/\`)
	server, rest := cutAtPathSeparator(word)
	share, below := cutAtPathSeparator(rest)
	server = strings.ToLower(strings.TrimRight(server, "."))
	switch {
	case server == "wsl$", server == "wsl.localhost":
		w.root = "/"
		return below
	case server == "", MayBeThisMachine(uncHost(server)):
		if len(share) == 2 && share[1] == '$' && isDrive(share[:1]+":") {
			w.setDrive(share[:1] + ":")
			return below
		}
	}
	w.root, w.currentFolderHasWindowsNames = uncRoot, true
	return word
}

// uncHost returns the host of the server of a share. IPv6 addresses are encoded as names there.
func uncHost(server string) string {
	if literal, ok := strings.CutSuffix(server, ".ipv6-literal.net"); ok {
		literal, _, _ = strings.Cut(literal, "s") // cut off the zone: "s4" in fe80--1s4.ipv6-literal.net
		return CanonicalHost(strings.ReplaceAll(literal, "-", ":"))
	}
	return CanonicalHost(server)
}

func cutAtPathSeparator(s string) (name, rest string) {
	i := strings.IndexAny(s, `/\`)
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// normalizeWindowsFileName returns the name that Windows opens: without a stream (name:stream) and without trailing dots
// and spaces.
func normalizeWindowsFileName(name string) string {
	if i := strings.IndexByte(name, ':'); i >= 0 {
		name = name[:i]
	}
	name = strings.TrimRight(name, " ")
	if name == "." || name == ".." {
		return name
	}
	return strings.TrimRight(name, ". ")
}

// longNamePattern returns a pattern for the long names of a short name such as PROGRA~1; "" if it is not a short
// name. Short names omit spaces and dots, so SSH~1 may be ".ssh".
func longNamePattern(short string) string {
	stem, number, ok := strings.Cut(short, "~")
	if !ok || stem == "" || len(stem) > 6 {
		return ""
	}
	number, extension, _ := strings.Cut(number, ".")
	if number == "" || strings.Trim(number, "0123456789") != "" || len(extension) > 3 {
		return ""
	}
	var b strings.Builder
	b.WriteByte('*')
	for _, r := range stem + extension {
		b.WriteString(quoteWindowsGlobMeta(string(r)))
		b.WriteByte('*')
	}
	return b.String()
}

// quoteWindowsGlobMeta puts each of the wildcards *, ? and [ in brackets, so that it matches only
// itself. It does not escape them with backslashes, which are separators on Windows.
func quoteWindowsGlobMeta(s string) string {
	if !strings.ContainsAny(s, "*?[") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("*?[", s[i]) >= 0 {
			b.WriteString("[" + s[i:i+1] + "]")
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

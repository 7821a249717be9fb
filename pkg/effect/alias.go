package effect

import "strings"

// resolvePathAliases replaces the last segments of the walked path by the file's usual name, if the file
// has several names: in /proc, as a file descriptor in /dev, or on a macOS volume.
func (w *pathWalk) resolvePathAliases() {
	n := len(w.segs)
	if w.root != "/" || n == 0 {
		return
	}
	switch first := w.segs[0]; {
	case n == 1:
		return
	case matchesNameIgnoringCase(first, "proc"):
		w.resolveProcPath()
	case matchesNameIgnoringCase(first, "dev"):
		w.resolveDevPath()
	case w.resolveMacOSAlias(first):
	}
}

// matchesNameIgnoringCase reports whether a segment equals a name, ignoring case, or is a pattern other than "*"
// that matches the name.
func matchesNameIgnoringCase(s pathOrPatternSegment, name string) bool {
	if s.kind == literalSegment {
		return s.text == name || len(s.text) == len(name) && strings.EqualFold(s.text, name)
	}
	return s.kind == wildcardSegment && s.text != "*" && s.overlaps(&pathOrPatternSegment{text: name})
}

// resolveProcPath follows /proc/PID/root, cwd and fd, also below a thread's folder. "*" after /proc matches any
// process.
func (w *pathWalk) resolveProcPath() {
	segs := w.segs[1:]
	if len(segs) >= 3 && matchesNameIgnoringCase(segs[1], "task") {
		segs = segs[2:]
	}
	switch {
	case len(segs) == 2 && matchesNameIgnoringCase(segs[1], "root"):
		w.segs = w.segs[:0]
	case len(segs) == 2 && matchesNameIgnoringCase(segs[1], "cwd"):
		if self := segs[0].text; self == "self" || self == "thread-self" || w.segs[1].text == "self" {
			w.moveTo(w.pathContext.CWD)
		} else {
			w.moveTo("")
		}
	case len(segs) == 3 && matchesNameIgnoringCase(segs[1], "fd") && matchesNameIgnoringCase(segs[0], "self"):
		w.segs = append(w.segs[:0], pathOrPatternSegment{text: "dev"}, pathOrPatternSegment{text: "fd"}, segs[2])
	case len(segs) == 4 && matchesNameIgnoringCase(segs[1], "fd"):
		// A descriptor of a folder may lead to any folder.
		w.dropAllButLastSegment()
	}
}

// resolveDevPath renames standard streams to their names in /dev/fd.
func (w *pathWalk) resolveDevPath() {
	second := w.segs[1]
	switch len(w.segs) {
	case 2:
		for i, name := range [...]string{"stdin", "stdout", "stderr"} {
			if second.kind == literalSegment && second.text == name {
				w.segs = append(w.segs[:1], pathOrPatternSegment{text: "fd"}, pathOrPatternSegment{text: string(rune('0' + i))})
			}
		}
	case 4:
		if matchesNameIgnoringCase(second, "fd") {
			w.dropAllButLastSegment()
		}
	}
}

// dropAllButLastSegment keeps only the last segment, relative to an unknown folder.
func (w *pathWalk) dropAllButLastSegment() {
	last := w.segs[len(w.segs)-1]
	w.moveTo("")
	w.segs = append(w.segs, last)
}

// resolveMacOSAlias removes alternative names of macOS's folders: /private/etc is /etc, and the data volume is mounted
// below /System/Volumes.
func (w *pathWalk) resolveMacOSAlias(first pathOrPatternSegment) bool {
	second := w.segs[1]
	n := len(w.segs)
	switch {
	case n == 2 && matchesNameIgnoringCase(first, "private"):
		for _, name := range [...]string{"etc", "var", "tmp"} {
			if matchesNameIgnoringCase(second, name) {
				w.segs = append(w.segs[:0], second)
				return true
			}
		}
	case n == 3 && matchesNameIgnoringCase(first, "system") && matchesNameIgnoringCase(second, "volumes") && matchesNameIgnoringCase(w.segs[2], "data"),
		n == 2 && matchesNameIgnoringCase(first, "volumes") && matchesNameIgnoringCase(second, "macintosh hd"),
		n == 2 && matchesNameIgnoringCase(first, ".nofollow"):
		if n == 2 && matchesNameIgnoringCase(first, ".nofollow") {
			w.segs = append(w.segs[:0], second)
			return true
		}
		w.segs = w.segs[:0]
		return true
	case n == 3 && (matchesNameIgnoringCase(first, ".resolve") || matchesNameIgnoringCase(first, ".vol")):
		last := w.segs[2]
		if matchesNameIgnoringCase(first, ".vol") {
			w.moveTo("") // the path names a file by its inode number, so its folder is unknown
			return true
		}
		w.segs = append(w.segs[:0], last)
		return true
	}
	return false
}

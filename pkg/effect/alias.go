package effect

import "strings"

// resolveProcDevMacOSAlias replaces the last segments of the walked path by the file's usual name, if the file
// has several names: in /proc, as a file descriptor in /dev, or on a macOS volume.
func (w *pathWalk) resolveProcDevMacOSAlias() {
	n := len(w.segs)
	if w.root != "/" || n == 0 {
		return
	}
	switch first := w.segs[0]; {
	case n == 1:
		return
	case isNamed(first, "proc"):
		w.resolveProcPath()
	case isNamed(first, "dev"):
		w.resolveDevPath()
	case w.resolveMacOSAlias(first):
	}
}

// isNamed reports whether a segment equals a name, ignoring case, or is a pattern other than "*"
// that matches the name.
func isNamed(s segment, name string) bool {
	if s.kind == literalSegment {
		return s.text == name || len(s.text) == len(name) && strings.EqualFold(s.text, name)
	}
	return s.kind == wildcardSegment && s.text != "*" && s.overlaps(&segment{text: name})
}

// resolveProcPath follows /proc/PID/root, cwd and fd, also below a thread's folder. "*" after /proc matches any
// process.
func (w *pathWalk) resolveProcPath() {
	segs := w.segs[1:]
	if len(segs) >= 3 && isNamed(segs[1], "task") {
		segs = segs[2:]
	}
	switch {
	case len(segs) == 2 && isNamed(segs[1], "root"):
		w.segs = w.segs[:0]
	case len(segs) == 2 && isNamed(segs[1], "cwd"):
		if self := segs[0].text; self == "self" || self == "thread-self" || w.segs[1].text == "self" {
			w.moveTo(w.place.CWD)
		} else {
			w.moveTo("")
		}
	case len(segs) == 3 && isNamed(segs[1], "fd") && isNamed(segs[0], "self"):
		w.segs = append(w.segs[:0], segment{text: "dev"}, segment{text: "fd"}, segs[2])
	case len(segs) == 4 && isNamed(segs[1], "fd"):
		// A descriptor of a folder may lead to any folder.
		w.keepLastSegment()
	}
}

// resolveDevPath renames standard streams to their names in /dev/fd.
func (w *pathWalk) resolveDevPath() {
	second := w.segs[1]
	switch len(w.segs) {
	case 2:
		for i, name := range [...]string{"stdin", "stdout", "stderr"} {
			if second.kind == literalSegment && second.text == name {
				w.segs = append(w.segs[:1], segment{text: "fd"}, segment{text: string(rune('0' + i))})
			}
		}
	case 4:
		if isNamed(second, "fd") {
			w.keepLastSegment()
		}
	}
}

// keepLastSegment keeps only the last segment, relative to an unknown folder.
func (w *pathWalk) keepLastSegment() {
	last := w.segs[len(w.segs)-1]
	w.moveTo("")
	w.segs = append(w.segs, last)
}

// resolveMacOSAlias removes alternative names of macOS's folders: /private/etc is /etc, and the data volume is mounted
// below /System/Volumes.
func (w *pathWalk) resolveMacOSAlias(first segment) bool {
	second := w.segs[1]
	n := len(w.segs)
	switch {
	case n == 2 && isNamed(first, "private"):
		for _, name := range [...]string{"etc", "var", "tmp"} {
			if isNamed(second, name) {
				w.segs = append(w.segs[:0], second)
				return true
			}
		}
	case n == 3 && isNamed(first, "system") && isNamed(second, "volumes") && isNamed(w.segs[2], "data"),
		n == 2 && isNamed(first, "volumes") && isNamed(second, "macintosh hd"),
		n == 2 && isNamed(first, ".nofollow"):
		if n == 2 && isNamed(first, ".nofollow") {
			w.segs = append(w.segs[:0], second)
			return true
		}
		w.segs = w.segs[:0]
		return true
	case n == 3 && (isNamed(first, ".resolve") || isNamed(first, ".vol")):
		last := w.segs[2]
		if isNamed(first, ".vol") {
			w.moveTo("") // the path names a file by its inode number, so its folder is unknown
			return true
		}
		w.segs = append(w.segs[:0], last)
		return true
	}
	return false
}

package effect

import "strings"

// alias replaces the last segments of the walk if the file has several names: in /proc, as a descriptor, or
// on volumes of macOS.
func (w *walk) alias() {
	n := len(w.segs)
	if w.root != "/" || n == 0 {
		return
	}
	switch first := w.segs[0]; {
	case n == 1:
		return
	case is(first, "proc"):
		w.process()
	case is(first, "dev"):
		w.device()
	case w.macOS(first):
	}
}

// is reports whether a segment is a name, in any case, or a pattern other than "*" that matches it.
func is(s segment, name string) bool {
	if s.kind == literal {
		return s.text == name || len(s.text) == len(name) && strings.EqualFold(s.text, name)
	}
	return s.kind == wild && s.text != "*" && s.meets(&segment{text: name})
}

// process follows /proc/PID/root, cwd and fd, also below a thread's folder. "*" after /proc matches any
// process.
func (w *walk) process() {
	segs := w.segs[1:]
	if len(segs) >= 3 && is(segs[1], "task") {
		segs = segs[2:]
	}
	switch {
	case len(segs) == 2 && is(segs[1], "root"):
		w.segs = w.segs[:0]
	case len(segs) == 2 && is(segs[1], "cwd"):
		if self := segs[0].text; self == "self" || self == "thread-self" || w.segs[1].text == "self" {
			w.from(w.place.CWD)
		} else {
			w.from("")
		}
	case len(segs) == 3 && is(segs[1], "fd") && is(segs[0], "self"):
		w.segs = append(w.segs[:0], segment{text: "dev"}, segment{text: "fd"}, segs[2])
	case len(segs) == 4 && is(segs[1], "fd"):
		// A descriptor of a folder may lead to any folder.
		w.below()
	}
}

// device renames standard streams to their names in /dev/fd.
func (w *walk) device() {
	second := w.segs[1]
	switch len(w.segs) {
	case 2:
		for i, name := range [...]string{"stdin", "stdout", "stderr"} {
			if second.kind == literal && second.text == name {
				w.segs = append(w.segs[:1], segment{text: "fd"}, segment{text: string(rune('0' + i))})
			}
		}
	case 4:
		if is(second, "fd") {
			w.below()
		}
	}
}

// below keeps only the last segment, relative to an unknown folder.
func (w *walk) below() {
	last := w.segs[len(w.segs)-1]
	w.from("")
	w.segs = append(w.segs, last)
}

// macOS removes alternative names of macOS's folders: /private/etc is /etc, and the data volume is mounted
// below /System/Volumes.
func (w *walk) macOS(first segment) bool {
	second := w.segs[1]
	n := len(w.segs)
	switch {
	case n == 2 && is(first, "private"):
		for _, name := range [...]string{"etc", "var", "tmp"} {
			if is(second, name) {
				w.segs = append(w.segs[:0], second)
				return true
			}
		}
	case n == 3 && is(first, "system") && is(second, "volumes") && is(w.segs[2], "data"),
		n == 2 && is(first, "volumes") && is(second, "macintosh hd"),
		n == 2 && is(first, ".nofollow"):
		if n == 2 && is(first, ".nofollow") {
			w.segs = append(w.segs[:0], second)
			return true
		}
		w.segs = w.segs[:0]
		return true
	case n == 3 && (is(first, ".resolve") || is(first, ".vol")):
		last := w.segs[2]
		if is(first, ".vol") {
			w.from("") // a file by its inode number
			return true
		}
		w.segs = append(w.segs[:0], last)
		return true
	}
	return false
}

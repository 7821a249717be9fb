package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Change is what a patch does to a file.
type Change struct {
	Kind  effect.Kind // effect.WriteFile or effect.DeleteFile
	Path  string      // as the patch names it, without the a/ or b/ of git
	Added string      // the lines that it adds
	Gone  string      // the lines that it removes

	lines []string // all lines of it
}

// Applied returns what a file holds after a change, given what it held. ok is false if the lines
// that the change names are not there, or stand in more than one place and none of these is the line that it names.
func (c *Change) Applied(old string) (text string, ok bool) {
	var out, pre, post []string
	left := strings.SplitAfter(old, "\n")
	if left[len(left)-1] == "" {
		left = left[:len(left)-1]
	}
	done, line := 0, 0 // lines before left; where the part begins, counted from 1; 0 if it says nothing
	flush := func() bool {
		defer func() { pre, post = nil, nil }()
		at := standsAt(left, pre, max(line-done, 0))
		switch {
		case len(pre)+len(post) == 0:
			return true
		case at < 0, at > len(left), line > 0 && line <= done:
			return false
		}
		out, left, done = append(append(out, left[:at]...), post...), left[at+len(pre):], done+at+len(pre)
		return true
	}
	lines := c.lines
	for len(lines) > 0 && (strings.TrimSpace(lines[len(lines)-1]) == "" || strings.HasPrefix(lines[len(lines)-1], "*** ")) { // of no part
		lines = lines[:len(lines)-1]
	}
	for _, l := range append(slices.Clip(lines), "@@") {
		switch {
		case strings.HasPrefix(l, "@@"):
			if !flush() {
				return "", false
			}
			line = beginsAt(l)
		case l[0] == '+':
			post = append(post, l[1:])
		case l[0] == '-':
			pre = append(pre, l[1:])
		case l[0] == ' ', l == "\n", l == "\r\n":
			same := strings.TrimPrefix(l, " ")
			pre, post = append(pre, same), append(post, same)
		}
	}
	return strings.Join(append(out, left...), ""), true
}

// beginsAt returns the line of the old file at which a part of a patch begins, counted from 1, as its
// head "@@ -LINE,COUNT +LINE,COUNT @@" says it; 0 if the head says none.
func beginsAt(head string) int {
	rest, ok := strings.CutPrefix(head, "@@ -")
	if !ok {
		return 0
	}
	number, counts, _ := strings.Cut(rest, " ")
	number, count, _ := strings.Cut(number, ",")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || counts == "" {
		return 0
	}
	if count == "0" { // what is added comes after the line
		n++
	}
	return n
}

// standsAt returns where in some lines the lines of a part of a patch begin, which says that it is the
// line-th of them, 0 for nothing; negative if that is not known. What has no lines is at the end.
func standsAt(lines, part []string, line int) int {
	if len(part) == 0 {
		if line > 0 {
			return line - 1
		}
		return len(lines)
	}
	found, n := -1, 0
	for at := 0; at+len(part) <= len(lines); at++ {
		if slices.EqualFunc(lines[at:at+len(part)], part, func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }) {
			if at == line-1 {
				return at
			}
			found, n = at, n+1
		}
	}
	if n > 1 {
		return -1
	}
	return found
}

// changeHeads begin the lines of a patch that name a file: those of diff, and those of the
// form of apply_patch, which hosts read behind blanks, too.
var changeHeads = [...]struct {
	text string
	kind effect.Kind
}{
	{"+++ ", effect.WriteFile}, {"--- ", effect.WriteFile}, {"rename to ", effect.WriteFile}, {"copy to ", effect.WriteFile},
	{"*** Add File: ", effect.WriteFile}, {"*** Update File: ", effect.WriteFile}, {"*** Move to: ", effect.WriteFile}, {"*** Delete File: ", effect.DeleteFile},
}

// Changes returns what a patch changes, in its order.
func Changes(patch string) (out []Change) {
	var added, gone strings.Builder
	keep := func() {
		if len(out) > 0 {
			last := &out[len(out)-1]
			last.Added, last.Gone = last.Added+added.String(), last.Gone+gone.String()
		}
		added.Reset()
		gone.Reset()
	}
	for line := range strings.Lines(patch) {
		if c, ok := changeIn(line); ok {
			if keep(); c.Path != "/dev/null" {
				out = append(out, c)
			}
			continue
		}
		if len(out) > 0 {
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
		switch line[0] {
		case '+':
			added.WriteString(line[1:])
		case '-':
			gone.WriteString(line[1:])
		}
	}
	keep()
	return out
}

// changeIn reads a line that names a file.
func changeIn(line string) (c Change, ok bool) {
	if head := strings.TrimLeft(line, " \t"); strings.HasPrefix(head, "*** ") {
		line = head
	}
	for _, head := range changeHeads {
		if name, is := strings.CutPrefix(line, head.text); is {
			name, _, _ = strings.Cut(strings.TrimSpace(name), "\t")
			if len(name) > 2 && (name[:2] == "a/" || name[:2] == "b/") {
				name = name[2:]
			}
			return Change{Kind: head.kind, Path: name}, true
		}
	}
	return c, false
}

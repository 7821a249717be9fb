package command

import (
	"slices"
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

// Applied returns what a file holds after a change, given what it held. ok is false if the
// lines that the change names are not there.
func (c *Change) Applied(old string) (text string, ok bool) {
	var out, pre, post []string
	left := strings.SplitAfter(old, "\n")
	if left[len(left)-1] == "" {
		left = left[:len(left)-1]
	}
	flush := func() bool {
		defer func() { pre, post = nil, nil }()
		switch at := indexOf(left, pre); {
		case len(pre) == 0 && len(left) > 0 && len(post) > 0: // at the end
			out, left = append(append(out, left...), post...), nil
		case at < 0:
			return false
		default:
			out, left = append(append(out, left[:at]...), post...), left[at+len(pre):]
		}
		return true
	}
	for _, line := range append(c.lines, "@@") {
		switch {
		case strings.HasPrefix(line, "@@"):
			if !flush() {
				return "", false
			}
		case line[0] == '+':
			post = append(post, line[1:])
		case line[0] == '-':
			pre = append(pre, line[1:])
		case line[0] == ' ', line == "\n", line == "\r\n":
			same := strings.TrimPrefix(line, " ")
			pre, post = append(pre, same), append(post, same)
		}
	}
	return strings.Join(append(out, left...), ""), true
}

// indexOf returns where some lines stand in others, apart from the blanks around them; -1 if nowhere.
func indexOf(lines, part []string) int {
	for at := 0; at+len(part) <= len(lines); at++ {
		if slices.EqualFunc(lines[at:at+len(part)], part, func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }) {
			return at
		}
	}
	return -1
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

package command

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Change is what a patch does to a file.
type Change struct {
	Kind  effect.Kind // effect.WriteFile or effect.DeleteFile
	Path  string      // as the patch names it, without the a/ or b/ of git
	Added string      // the lines that it adds
	Gone  string      // the lines that it removes
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
		} else if line[0] == '+' {
			added.WriteString(line[1:])
		} else if line[0] == '-' {
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

package effect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What was chosen once is not looked for again, each key has a choice of its own, and
// only so many are kept.
func TestPaths(t *testing.T) {
	t.Parallel()
	p, looked := NewPaths([]string{"/a/x.go", "/a/y.py", "/b/x.go"}), 0
	ending := func(end string) []string {
		return p.Chosen(end, func(path string) bool { looked++; return strings.HasSuffix(path, end) })
	}
	for range 2 {
		if got := ending("x.go"); !slices.Equal(got, []string{"/a/x.go", "/b/x.go"}) {
			t.Errorf("x.go: %q", got)
		}
		if got := ending("y.py"); !slices.Equal(got, []string{"/a/y.py"}) {
			t.Errorf("y.py: %q", got)
		}
	}
	if got := p.Named("x.go"); !slices.Equal(got, []string{"/a/x.go", "/b/x.go"}) {
		t.Errorf("named x.go: %q", got)
	}
	if looked != 2*len(p.All()) {
		t.Errorf("looked at %d paths, want each once for each choice", looked)
	}
	for i := range 2 * maxChosen {
		ending(fmt.Sprint(i))
	}
	if len(p.chosen) > maxChosen {
		t.Errorf("%d choices are kept", len(p.chosen))
	}
}

func TestNoPaths(t *testing.T) {
	t.Parallel()
	var p *Paths
	if p.All() != nil || p.Chosen("", func(string) bool { return true }) != nil || p.Named("") != nil {
		t.Error("no paths hold one")
	}
}

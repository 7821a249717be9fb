package effect

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What was chosen once is not looked for again, each key has a choice of its own, and
// only so many are kept.
func TestPaths(t *testing.T) {
	t.Parallel()
	p, looked := NewPathList([]string{"/a/x.go", "/a/y.py", "/b/x.go"}), 0
	ending := func(end string) []string {
		return p.Select(end, func(path string) bool { looked++; return strings.HasSuffix(path, end) })
	}
	for range 2 {
		if got := ending("x.go"); !slices.Equal(got, []string{"/a/x.go", "/b/x.go"}) {
			t.Errorf("x.go: %q", got)
		}
		if got := ending("y.py"); !slices.Equal(got, []string{"/a/y.py"}) {
			t.Errorf("y.py: %q", got)
		}
	}
	if got := p.WithBaseName("x.go"); !slices.Equal(got, []string{"/a/x.go", "/b/x.go"}) {
		t.Errorf("named x.go: %q", got)
	}
	if looked != 2*len(p.All()) {
		t.Errorf("looked at %d paths, want each once for each choice", looked)
	}
	for i := range 2 * maxCachedSelectResults {
		ending(fmt.Sprint(i))
	}
	if len(p.cache.selections) > maxCachedSelectResults {
		t.Errorf("%d choices are kept", len(p.cache.selections))
	}
}

func TestNoPaths(t *testing.T) {
	t.Parallel()
	var p *PathList
	if p.All() != nil || p.Select("", func(string) bool { return true }) != nil || p.WithBaseName("") != nil {
		t.Error("no paths hold one")
	}
}

// After any changes the choices are those of the paths alone, of older paths, too, and
// what was looked at is not looked at again.
func TestNextPaths(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	looked := 0
	odd := func(path string) bool { looked++; return path[len(path)-1]%2 == 1 }
	have := map[string]bool{}
	p := NewPathList(nil)
	for i := range 2000 {
		old := p
		for range random.IntN(3) {
			have[fmt.Sprint("/", random.IntN(400))] = true
		}
		for path := range have {
			if random.IntN(50) == 0 {
				delete(have, path)
			}
			break
		}
		p = p.Update(slices.Sorted(maps.Keys(have)))
		asked := []*PathList{p}
		if i%7 == 0 {
			asked = []*PathList{old, p, old}
		}
		if i%3 == 0 {
			asked = nil
		}
		for _, p := range asked {
			want := slices.DeleteFunc(slices.Clone(p.All()), func(path string) bool { return path[len(path)-1]%2 == 0 })
			if got := p.Select("odd", odd); !slices.Equal(got, want) {
				t.Fatalf("change %d: %q, want %q", i, got, want)
			}
		}
	}
	p.Select("odd", odd)
	looked = 0
	if p = p.Update(append(slices.Clone(p.All()), "/x1")); p.Select("odd", odd) == nil || looked != 1 {
		t.Errorf("looked at %d paths to choose from one more", looked)
	}
	if p.Update(slices.Clone(p.All())) != p {
		t.Error("the same paths are others")
	}
}

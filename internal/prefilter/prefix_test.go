package prefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expr string
		want []string
		word bool
	}{
		{`abc`, []string{"abc"}, false},
		{`(?i)ABC`, []string{"abc"}, false},
		{`\babc`, []string{"abc"}, true},
		{`\b(?:abc|abcd|de) ?f`, []string{"abc f", "abcd f", "abcdf", "abcf", "de f", "def"}, true},
		{`(?:\babc|\bdef).*`, []string{"abc", "def"}, true},
		{`\b(?:abc|abcd|xyz)(?:\w+ )*f`, []string{"abc", "xyz"}, true},
		{`\b(?:abc|def)x*`, []string{"abc", "def"}, true},
		{`ab?c(?:d|e)`, []string{"abcd", "abce", "acd", "ace"}, false},
		{`(?:\babc|def)`, nil, false},
		{`ab.*`, nil, false},
		{`x*abc`, nil, false},
		{`(?:abc|d)`, nil, false},
		{`(?:abc)+`, []string{"abc"}, false},
		{`.abc`, nil, false},
		{`^`, nil, false},
	} {
		got, word, err := LiteralPrefixesOfMatches(tt.expr)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || word != tt.word && got != nil {
			t.Errorf("%s: at a word: %v, (-want +got):\n%s", tt.expr, word, diff)
		}
	}
	if _, _, err := LiteralPrefixesOfMatches("("); err == nil {
		t.Error("a broken expression gave no error")
	}
}

// TestEach holds that every place of every literal is visited, in either case.
func TestEach(t *testing.T) {
	t.Parallel()
	set, whole := TryNewLiteralSet([][]string{{"abc", "bcd"}, {"abc"}, {"xyz1"}})
	if !whole {
		t.Fatal("not all literals were kept")
	}
	got := map[[2]int]int{}
	EachLiteralMatch(set, "ABCD abc xyz1 xy", func(id, at int) { got[[2]int{id, at}]++ })
	want := map[[2]int]int{{0, 0}: 1, {1, 0}: 1, {0, 1}: 1, {0, 5}: 1, {1, 5}: 1, {2, 9}: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	EachLiteralMatch(set, "ab", func(int, int) { t.Error("found in a text that is too short") })
}

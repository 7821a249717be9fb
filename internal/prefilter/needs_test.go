package prefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNeedsOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr string
		want TextNeeds
	}{
		{`abc`, TextNeeds{3, 3, "abc", true}},
		{`(?i)abc-`, TextNeeds{4, 4, "-", true}},
		{`\bpat[A-Z]{14}\.[0-9a-f]{64}\b`, TextNeeds{64, 82, ".apt", true}},
		{`a|bcd`, TextNeeds{1, 1, "", true}},
		{`ab|cab`, TextNeeds{2, 2, "ab", true}},
		{`a?b*c+`, TextNeeds{1, 1, "c", true}},
		{`(?:ab){3,}`, TextNeeds{6, 6, "ab", true}},
		{`(?:a b){2}`, TextNeeds{2, 2, " ab", true}},
		{`a(?:b c)*d`, TextNeeds{1, 1, "ad", true}},
		{`[a-z:]{9}x`, TextNeeds{1, 1, "x", true}},
		{`a\sb`, TextNeeds{1, 1, "ab", false}},
		{`a[^b]`, TextNeeds{1, 1, "a", false}},
		{"a\nb", TextNeeds{1, 1, "\nab", false}},
		{`a.b`, TextNeeds{1, 1, "ab", true}},
		{`(?s)a.b`, TextNeeds{1, 1, "ab", false}},
		{`^a`, TextNeeds{1, 1, "a", false}},
		{`a$`, TextNeeds{1, 1, "a", false}},
		{`(?m)^a$`, TextNeeds{1, 1, "a", true}},
		{`[\x{e9}x]{5}`, TextNeeds{5, 5, "", true}},
		{`[^\x00-\x{10FFFF}]`, TextNeeds{1, 1, "", true}},
	}
	for _, tt := range tests {
		got, err := NeedsOf(tt.expr)
		if err != nil {
			t.Errorf("NeedsOf(%q): %v", tt.expr, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("NeedsOf(%q) (-want +got):\n%s", tt.expr, diff)
		}
	}
	if _, err := NeedsOf(`(`); err == nil {
		t.Error("NeedsOf a broken expression gave no error")
	}
}

func TestLookMeets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		need TextNeeds
		want bool
	}{
		{"", TextNeeds{}, true},
		{"", TextNeeds{MinWordRunLength: 1}, false},
		{"a-b_9", TextNeeds{MinWordRunLength: 5}, true},
		{"ab.cd", TextNeeds{MinWordRunLength: 3}, false},
		{"ab.cd", TextNeeds{MinWordOrSymbolRunLength: 5}, true},
		{"ab cd", TextNeeds{MinWordOrSymbolRunLength: 3}, false},
		{"é\xff", TextNeeds{MinWordRunLength: 3}, true},
		{"a:b@c", TextNeeds{RequiredBytes: ":@"}, true},
		{"a:b", TextNeeds{RequiredBytes: ":@"}, false},
	}
	for _, tt := range tests {
		look := NewTextFeatures(tt.text)
		if got := look.Satisfies(tt.need); got != tt.want {
			t.Errorf("a look at %q meets %+v: %v, want %v", tt.text, tt.need, got, tt.want)
		}
	}
}

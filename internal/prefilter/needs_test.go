package prefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNeedsOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr string
		want RequiredTextFeatures
	}{
		{`abc`, RequiredTextFeatures{3, 3, "abc", true}},
		{`(?i)abc-`, RequiredTextFeatures{4, 4, "-", true}},
		{`\bpat[A-Z]{14}\.[0-9a-f]{64}\b`, RequiredTextFeatures{64, 82, ".apt", true}},
		{`a|bcd`, RequiredTextFeatures{1, 1, "", true}},
		{`ab|cab`, RequiredTextFeatures{2, 2, "ab", true}},
		{`a?b*c+`, RequiredTextFeatures{1, 1, "c", true}},
		{`(?:ab){3,}`, RequiredTextFeatures{6, 6, "ab", true}},
		{`(?:a b){2}`, RequiredTextFeatures{2, 2, " ab", true}},
		{`a(?:b c)*d`, RequiredTextFeatures{1, 1, "ad", true}},
		{`[a-z:]{9}x`, RequiredTextFeatures{1, 1, "x", true}},
		{`a\sb`, RequiredTextFeatures{1, 1, "ab", false}},
		{`a[^b]`, RequiredTextFeatures{1, 1, "a", false}},
		{"a\nb", RequiredTextFeatures{1, 1, "\nab", false}},
		{`a.b`, RequiredTextFeatures{1, 1, "ab", true}},
		{`(?s)a.b`, RequiredTextFeatures{1, 1, "ab", false}},
		{`^a`, RequiredTextFeatures{1, 1, "a", false}},
		{`a$`, RequiredTextFeatures{1, 1, "a", false}},
		{`(?m)^a$`, RequiredTextFeatures{1, 1, "a", true}},
		{`[\x{e9}x]{5}`, RequiredTextFeatures{5, 5, "", true}},
		{`[^\x00-\x{10FFFF}]`, RequiredTextFeatures{1, 1, "", true}},
	}
	for _, tt := range tests {
		got, err := RequiredTextFeaturesOf(tt.expr)
		if err != nil {
			t.Errorf("NeedsOf(%q): %v", tt.expr, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("NeedsOf(%q) (-want +got):\n%s", tt.expr, diff)
		}
	}
	if _, err := RequiredTextFeaturesOf(`(`); err == nil {
		t.Error("NeedsOf a broken expression gave no error")
	}
}

func TestLookMeets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		need RequiredTextFeatures
		want bool
	}{
		{"", RequiredTextFeatures{}, true},
		{"", RequiredTextFeatures{MinWordRunLength: 1}, false},
		{"a-b_9", RequiredTextFeatures{MinWordRunLength: 5}, true},
		{"ab.cd", RequiredTextFeatures{MinWordRunLength: 3}, false},
		{"ab.cd", RequiredTextFeatures{MinWordOrSymbolRunLength: 5}, true},
		{"ab cd", RequiredTextFeatures{MinWordOrSymbolRunLength: 3}, false},
		{"é\xff", RequiredTextFeatures{MinWordRunLength: 3}, true},
		{"a:b@c", RequiredTextFeatures{ASCIIBytesInEveryMatch: ":@"}, true},
		{"a:b", RequiredTextFeatures{ASCIIBytesInEveryMatch: ":@"}, false},
	}
	for _, tt := range tests {
		look := NewTextFeatures(tt.text)
		if got := look.Satisfies(tt.need); got != tt.want {
			t.Errorf("a look at %q meets %+v: %v, want %v", tt.text, tt.need, got, tt.want)
		}
	}
}

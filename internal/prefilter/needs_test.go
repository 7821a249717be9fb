package prefilter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNeedsOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr string
		want Needs
	}{
		{`abc`, Needs{3, 3, "abc", true}},
		{`(?i)abc-`, Needs{4, 4, "-", true}},
		{`\bpat[A-Z]{14}\.[0-9a-f]{64}\b`, Needs{64, 82, ".apt", true}},
		{`a|bcd`, Needs{1, 1, "", true}},
		{`ab|cab`, Needs{2, 2, "ab", true}},
		{`a?b*c+`, Needs{1, 1, "c", true}},
		{`(?:ab){3,}`, Needs{6, 6, "ab", true}},
		{`(?:a b){2}`, Needs{2, 2, " ab", true}},
		{`a(?:b c)*d`, Needs{1, 1, "ad", true}},
		{`[a-z:]{9}x`, Needs{1, 1, "x", true}},
		{`a\sb`, Needs{1, 1, "ab", false}},
		{`a[^b]`, Needs{1, 1, "a", false}},
		{"a\nb", Needs{1, 1, "\nab", false}},
		{`a.b`, Needs{1, 1, "ab", true}},
		{`(?s)a.b`, Needs{1, 1, "ab", false}},
		{`^a`, Needs{1, 1, "a", false}},
		{`a$`, Needs{1, 1, "a", false}},
		{`(?m)^a$`, Needs{1, 1, "a", true}},
		{`[\x{e9}x]{5}`, Needs{5, 5, "", true}},
		{`[^\x00-\x{10FFFF}]`, Needs{1, 1, "", true}},
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
		need Needs
		want bool
	}{
		{"", Needs{}, true},
		{"", Needs{Narrow: 1}, false},
		{"a-b_9", Needs{Narrow: 5}, true},
		{"ab.cd", Needs{Narrow: 3}, false},
		{"ab.cd", Needs{Wide: 5}, true},
		{"ab cd", Needs{Wide: 3}, false},
		{"é\xff", Needs{Narrow: 3}, true},
		{"a:b@c", Needs{Bytes: ":@"}, true},
		{"a:b", Needs{Bytes: ":@"}, false},
	}
	for _, tt := range tests {
		look := NewLook(tt.text)
		if got := look.Meets(tt.need); got != tt.want {
			t.Errorf("a look at %q meets %+v: %v, want %v", tt.text, tt.need, got, tt.want)
		}
	}
}

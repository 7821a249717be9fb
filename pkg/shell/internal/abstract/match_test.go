package abstract

import "testing"

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		glob, text string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"a*c", "abbc", true},
		{"a*c", "abbcd", false},
		{"*.tar.*", "a.tar.tar.gz", true},
		{"**a**", "bab", true},
		{"?", "", false},
		{"?", "é", true},
		{"??", "é", false},
		{"é*", "école", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`\é`, "é", true},
		{`\`, `\`, true},
		{"[abc]", "b", true},
		{"[a-c]x", "bx", true},
		{"[a-c]", "d", false},
		{"[^a-c]", "d", true},
		{"[!a-c]", "b", false},
		{"[!a]", "é", true},
		{"[à-ü]", "é", true},
		{"[]a]", "]", true},
		{"[]a]", "a", true},
		{"[!]a]", "]", false},
		{"[a-]", "-", true},
		{`[\]]`, "]", true},
		{"[[:alpha:]]", "r", true},
		{"[[:alpha:]]", "1", false},
		{"[[:digit:]x]", "x", true},
		{"[![:space:]]", "x", true},
		{"[![:space:]]", " ", false},
		{"[[:nothing:]]", "n", false},
		{"[[:upper:][:digit:]]*", "7z", true},
		{"[", "[", true},
		{"[ab", "[ab", true},
		{"a", "b", false},
	} {
		if got := Match(c.glob, c.text); got != c.want {
			t.Errorf("%q matches %q: %t", c.glob, c.text, got)
		}
	}
}

package brief

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		in   string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"a\xffbc", 3, "a\xff…"}, {"ab", 1, "…"},
	} {
		if got := TruncateWithEllipsis(c.in, c.n); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

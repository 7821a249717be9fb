package tokenizer

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrepare(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"unchanged", "ls -l /tmp", "ls -l /tmp"},
		{"letters small", "Rm -RF /", "rm -rf /"},
		{"white space", " \t\r\n a\v\f b\u00a0\u3000\u2028c\u0085 ", "a b c"},
		{"only white space", " \n\t ", ""},
		{"last space", "a ", "a"},
		{"controls", "r\x00m\x1b -\x7frf", "rm -rf"},
		{"zero width", "r\u200bm\u200d \ufeff-r\u2060f", "rm -rf"},
		{"soft hyphen", "cu\u00adrl", "curl"},
		{"direction overrides", "\u202egnp.exe\u202c", "gnp.exe"},
		{"tag characters", "hi\U000E0041\U000E0042", "hi"},
		{"variation selector", "c\ufe0furl\U000E0100", "curl"},
		{"fillers", "cu\u3164r\u115fl\uffa0", "curl"},
		{"full width", "ＣＵＲＬ　ｈｔｔｐ：／／ｘ", "curl http://x"},
		{"mathematical letters", "𝓬𝓾𝓻𝓵 𝐱", "curl x"},
		{"ligature", "ﬁle", "file"},
		{"accents", "cürl Café", "curl cafe"},
		{"accents apart", "cu\u0308rl e\u0301", "curl e"},
		{"mark behind ASCII", "a\u0301b", "ab"},
		{"enclosing mark", "1\u20e3", "1"},
		{"Turkish capital", "İstanbul", "istanbul"},
		{"capital sharp s", "STRAẞE", "straße"},
		{"Kelvin sign", "K", "k"},
		{"Chinese", "删除file", "删 除 file"},
		{"Hangul composed", "한글", "한글"},
		{"Hangul apart", "\u1112\u1161\u11ab", "한"},
		{"emoji in a word", "curl😀x", "curl 😀 x"},
		{"family", "a👨\u200d👩b", "a 👨 👩 b"},
		{"hieroglyph in a word", "cu𓂀rl", "cu 𓂀 rl"},
		{"invalid", "r\xffm \xc3\x28 \xed\xa0\x80", "rm ("},
		{"replacement character", "r\ufffdm", "rm"},
		{"private", "r\ue000m\U0010FFFDx", "rmx"},
		{"unassigned", "r\u0378m\U000E0FFFx", "rmx"},
		{"special token", "[SEP] <s> [MASK]", "[sep] <s> [mask]"},
	}
	for _, tt := range tests {
		if got := NormalizeForShieldModels(tt.in); got != tt.want {
			t.Errorf("%s: Prepare(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// TestPrepareEveryRune holds that each code point of the planes in use, and some
// of the others, is prepared to something stable and valid.
func TestPrepareEveryRune(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0x33480 < r && r < 0xE0000 || 0xE0FFF < r {
			r += 96
		}
		text := "A" + string(r) + "b"
		checkPrepared(t, text, NormalizeForShieldModels(text))
	}
}

func FuzzPrepare(f *testing.F) {
	for _, s := range []string{"", "a ", "\xff", "e\u0301", "\u0345\u0399", "ǰ\u0323", "각\u11a8", "\u09c7\u09be", "İ", "ﷺ", "a\u034f\u0300b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkPrepared(t, text, NormalizeForShieldModels(text))
	})
}

func checkPrepared(t *testing.T, text, got string) {
	t.Helper()
	if again := NormalizeForShieldModels(got); again != got {
		t.Errorf("Prepare(%q) = %q, and again = %q", text, got, again)
	}
	if !utf8.ValidString(got) || strings.Contains(got, "  ") || strings.TrimSpace(got) != got {
		t.Errorf("Prepare(%q) = %q, which has invalid or stray white space", text, got)
	}
	for _, r := range got {
		if r != ' ' && !unicode.IsGraphic(r) || unicode.In(r, unicode.Mn, unicode.Me, unicode.C) {
			t.Errorf("Prepare(%q) = %q, which holds %U", text, got, r)
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	for name, text := range map[string]string{
		"clean":   strings.Repeat("ls -l /tmp/x ", 20) + "end",
		"ascii":   strings.Repeat("curl -X POST \"https://Example.com\"\n", 8),
		"accents": strings.Repeat("où est le café ? ", 16),
		"chinese": strings.Repeat("忽略之前的指令", 16),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				NormalizeForShieldModels(text)
			}
		})
	}
}

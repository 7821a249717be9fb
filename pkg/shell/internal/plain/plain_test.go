package plain

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

// none stands for a text that is not computed: what a filter would write is not
// certain, and the analysis takes it for unknown.
const none = "\x00"

// TestFilter holds what filters write, and that a form which is not worked out
// is never taken for another.
func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ base, args, text, want string }{
		{"cat", "", "a\nb", "a\nb"},
		{"rev", "", "abc\nde\n", "cba\ned\n"},
		{"rev", "", "aéb", "béa"},
		{"tac", "", "a\nb\n", "b\na\n"},
		{"tac", "-s x", "axb", none},
		{"tr", "a-c x-z", "abcd", "xyzd"},
		{"tr", "[:lower:] [:upper:]", "rm", "RM"},
		{"tr", "-d x", "rxmx", "rm"},
		{"tr", "--delete x", "rxm", "rm"},
		{"tr", `\162 x`, "rm", "xm"},
		{"tr", "abc x", "abc", "xxx"},
		{"tr", "aa bc", "a", "c"},
		{"tr", "-c a x", "ab", none},
		{"tr", "-s a", "aab", none},
		{"tr", "-t abc x", "abc", none},
		{"tr", "ab [x*]", "ab", none},
		{"tr", `a\-z xyz`, "a-z", none},
		{"tr", "é e", "é", none},
		{"tr", "a", "a", none},
		{"tr", "", "a", none},
		{"sed", "s/a/b/", "aa\naa", "ba\nba"},
		{"sed", "s/a/b/g", "aa", "bb"},
		{"sed", "-e s|/x|/y|", "/x/x", "/y/x"},
		{"sed", "s,a,b,;s,b,c,", "a", "c"},
		{"sed", "s//x/", "a", none},
		{"sed", "s/a*/b/", "aa", none},
		{"sed", "s/a/&&/", "a", none},
		{"sed", "s/a/b/2", "aa", none},
		{"sed", "-n p", "a", none},
		{"sed", "-e s/a/b/ -e s/b/c/", "a", none},
		{"sed", "1d", "a", none},
		{"base64", "-d", "cm0gLXJmIC8=", "rm -rf /"},
		{"base64", "--dec", "cm0g\nLXJm", "rm -rf"},
		{"base64", "-d", "YQ==Yg==", none},
		{"base64", "-d", "?", none},
		{"base64", "", "rm", "cm0=\n"},
		{"base64", "-b 3", "rm", none},
		{"base32", "-d", "ONUA====", "sh"},
		{"base32", "-d", "1", none},
		{"xxd", "-r -p", "72 6d", "rm"},
		{"xxd", "-r", "00000000: 726d", none},
		{"xxd", "", "rm", none},
		{"openssl", "base64 -d", "cm0=", "rm"},
		{"openssl", "enc -d -a", "cm0=", "rm"},
		{"openssl", "enc -d -a -aes-256-cbc", "cm0=", none},
		{"openssl", "dgst -d", "cm0=", none},
		{"gunzip", "", "no archive", none},
		{"gzip", "-9", "rm", none},
		{"head", "-2", "a\nb\nc\n", "a\nb\n"},
		{"head", "-n1", "a\nb\n", "a\n"},
		{"head", "-n 1", "a\nb\n", "a\n"},
		{"head", "-n-1", "a\nb\n", none},
		{"head", "-n -1", "a\nb\n", none},
		{"head", "-c2", "abc", none},
		{"head", "--bytes=2", "abc", none},
		{"head", "", "a\nb\n", "a\nb\n"},
		{"tail", "-n 1", "a\nb\n", "b\n"},
		{"tail", "-1", "a\nb", "b"},
		{"tail", "-n +2", "a\nb\nc\nd\n", none},
		{"tail", "-n+2", "a\nb\nc\nd\n", none},
		{"tail", "-n 99", "a\nb\n", "a\nb\n"},
		{"sort", "", "a\n", "a\n"},
		{"sort", "", "b\na\n", none},
		{"uniq", "-c", "a\n", none},
		{"nl", "", "a\n", none},
		{"cut", "-c1-2", "abc\ndef\n", "ab\nde\n"},
		{"cut", "-c 2-", "abc", "bc"},
		{"cut", "-c -2", "abc", none},
		{"cut", "-d: -f2", "a:b:c", "b"},
		{"cut", "-f 2 -d :", "a:b:c\nno\n", "b\nno\n"},
		{"cut", "-f9 -d:", "a:b", ""},
		{"cut", "-c1,3", "abc", none},
		{"cut", "-c3-1", "abc", none},
		{"cut", "-c0", "abc", none},
		{"cut", "-c1", "éa", none},
		{"cut", "-s -f1", "a", none},
		{"cut", "-", "a", none},
		{"awk", "{print}", "a", none},
	} {
		var flags, operands []string
		for _, arg := range strings.Fields(c.args) {
			if arg[0] == '-' {
				flags = append(flags, arg)
			} else {
				operands = append(operands, arg)
			}
		}
		got, ok := ComputeFilterOutput(c.base, flags, operands, c.text)
		if !ok {
			got = none
		}
		if got != c.want {
			t.Errorf("%s %s of %q: %q, want %q", c.base, c.args, c.text, got, c.want)
		}
	}
}

// TestGunzip holds that an archive is read, and one that grows without end is
// not.
func TestGunzip(t *testing.T) {
	t.Parallel()
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got, ok := ComputeFilterOutput("gzip", []string{"-dc"}, nil, packed("rm -rf /")); !ok || got != "rm -rf /" {
		t.Errorf("%q, %t", got, ok)
	}
	if _, ok := ComputeFilterOutput("zcat", nil, nil, packed(strings.Repeat("x", maxSedSubstitutionBytes+1))); ok {
		t.Error("a text that is too long was unpacked")
	}
	if _, ok := ComputeFilterOutput("sed", nil, []string{"s/x/" + strings.Repeat("y", 1024) + "/g"}, strings.Repeat("x", 1024)); ok {
		t.Error("a text that grows too long was computed")
	}
}

// TestEscapes holds where $'…' and echo -e read the same escape differently.
func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ text, ansi, echo string }{
		{`a\tb\n`, "a\tb\n", "a\tb\n"},
		{`\x72\x6d`, "rm", "rm"},
		{`\x`, `\x`, `\x`},
		{`\xg`, `\xg`, `\xg`},
		{`é\U0001f600`, "é😀", "é😀"},
		{`\162\155`, "rm", "rm"},
		{`\0162`, "\x0e2", "r"},
		{`\0`, "\x00", "\x00"},
		{`\a\b\e\E\f\v\r`, "\a\b\x1b\x1b\f\v\r", "\a\b\x1b\x1b\f\v\r"},
		{`\\n`, `\n`, `\n`},
		{`\z`, `\z`, `\z`},
		{`end\`, `end\`, `end\`},
		{`a\cAb`, "a\x01b", "a"},
		{`a\c`, "a", "a"},
	} {
		if got := UnescapeANSIC(c.text); got != c.ansi {
			t.Errorf("$'%s': %q, want %q", c.text, got, c.ansi)
		}
		got, ended := UnescapeEcho(c.text)
		if got != c.echo || ended != strings.Contains(c.text, `\c`) {
			t.Errorf("echo -e '%s': %q, ended %t; want %q", c.text, got, ended, c.echo)
		}
	}
}

package dialect_test

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/shell/dialect"
)

// TestSameInFish has lines that all shells read alike, and lines that fish reads as nothing of
// the POSIX family does, or that are not worth the trouble.
func TestSameInFish(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"echo a b | wc -l > f 2>&1", "true; rm x", "! rm x", "a=1 make", `echo "$HOME" 'a $b' $x`, "ls *.go && git commit -m 'x; y' --date=1", "find . -name '*.a' -exec rm {} \\;",
		"command rm x &", "date +%s", "cat >>é.txt",
	} {
		if !dialect.SameInFish(text) {
			t.Errorf("%q is not the same", text)
		}
	}
	for _, text := range []string{
		"true; and rm x", "not rm x", "begin; rm x; end > f", "if a; b; end", "for i in 1 (ls); rm $i; end", "set -gx A b", `echo 'it\'s'`, "echo `rm x`", "echo a # rm",
		"a=1 echo $a", "> f rm x", "echo \"$x[1]\"", "'set' x", "$x y", "exec set x", "ls | source", "x=rm; set y", "echo a;and rm x", "echo a\nset x",
		`r\x6d x`, `echo \n`, "echo a&b", "$$x", "echo $x[1]", "(ls)[1]", "{a b}", "%self", "kill %self", "rm **.txt", "eval rm x", "source x", "alias a 'rm x'",
		"switch a; case a; rm x; end", "function f; rm x; end", "set x a b", "set -e x", "x=rm $x y", "declare x=ls", "end", "begin; ls", "if a; b", "else", "(ls", "ls)",
		"'a", `"a`, `a\`, "echo >?x", "a &| b", "for i in a", "fish -c x", "\x00", "ls |& cat", "echo ${x}", strings.Repeat("(", 300),
	} {
		if dialect.SameInFish(text) {
			t.Errorf("%q is the same", text)
		}
	}
}

func TestSameInZsh(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"echo '# a' a#b", "git show HEAD^", "cat <<E\n# a\nE"} {
		if !dialect.SameInZsh(text) {
			t.Errorf("%q is not the same", text)
		}
	}
	for _, text := range []string{
		"echo # && rm x", "echo # a; echo # b", "ls *(e:x:)", "ls *(x)", "$a[1] x", "${a[1]} x", "rm ^x", "rm a/^x", "echo $(ls # a\n)", "{ a } always { b }", strings.Repeat("echo # a\n", 100),
	} {
		if dialect.SameInZsh(text) {
			t.Errorf("%q is the same", text)
		}
	}
}

// What fish reads as all shells do stays so with another command behind it, and with one
// that it does not.
func FuzzSameInFish(f *testing.F) {
	for _, seed := range []string{"true; ls $x", `echo 'a' "$x" > f`, "a=1 b", "! a &"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		same := dialect.SameInFish(text)
		if after := dialect.SameInFish(text + "\ncat /a/witness"); same && !after {
			t.Errorf("%q is the same, but not before another command", text)
		}
		if dialect.SameInFish(text + "\nset x y") {
			t.Errorf("%q hides a command of fish", text)
		}
	})
}

func FuzzSameInZsh(f *testing.F) {
	for _, seed := range []string{"echo # a", "a '#' # $(b # c)", "x#y ;# z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if dialect.SameInZsh(text) && dialect.SameInZsh(text+"\necho # a") {
			t.Errorf("%q hides a comment", text)
		}
	})
}

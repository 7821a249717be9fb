package dialect_test

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/shell/dialect"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

func TestFromFish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fish, posix string }{
		{"echo a b | wc -l > f 2>&1", "echo a b | wc -l > f 2>&1"},
		{"true; and rm x", "true\n  rm x"},
		{"not rm x; or ls", "! rm x\n  ls"},
		{"begin; rm x; end > f", "{\n\n rm x\n } > f"},
		{"if a; b; else if c; d; else; e; end", "if a\nthen\n b\n elif c\nthen\n d\n else\n e\n fi"},
		{"while a; b; end", "while a\ndo\n b\n done"},
		{"for i in 1 (ls); rm $i; end", "for i in 1 $(ls\n)\ndo\n rm ${i}\n done"},
		{`echo 'it\'s \\ \n'`, `echo 'it'\''s \ \n'`},
		{"echo \"`rm x`\" `rm`", "echo \"\\`rm x\\`\" \\`rm\\`"},
		{"echo a[1] {a,b} {} # rm", `echo a\[1\] {a,b} '{}' `},
		{"set -gx A b; echo $A", "export A=b\n echo ${A}"},
		{"[ -f x ]", "[ -f x ]"},
	} {
		got, ok := dialect.ConvertFishToPOSIX(c.fish)
		if !ok || got != c.posix {
			t.Errorf("dialect.FromFish(%q) = %q, %t; want %q", c.fish, got, ok, c.posix)
		}
	}
}

// TestFromFishGivesUp has text that fish reads as nothing of the POSIX family
// does, or that is not worth the trouble.
func TestFromFishGivesUp(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`r\x6d x`, `echo \n`, "echo a&b", "$$x", "echo $x[1]", "(ls)[1]", "{a b}", "%self", "rm **.txt", "eval rm x", "source x", "alias a 'rm x'",
		"switch a; case a; rm x; end", "function f; rm x; end", "set x a b", "set -e x", "x=rm $x y", "declare x=ls", "end", "begin; ls", "if a; b", "else", "(ls", "ls)",
		"'a", `"a`, `a\`, "echo >?x", "a &| b", "for i in a", "fish -c x", "\x00", "ls |& cat", "echo ${x}", strings.Repeat("(", 300),
	} {
		if got, ok := dialect.ConvertFishToPOSIX(text); ok {
			t.Errorf("dialect.FromFish(%q) = %q; want it given up", text, got)
		}
	}
}

func TestFromZsh(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"echo # && rm x":     `echo \# && rm x`,
		"echo # a; echo # b": `echo \# a; echo \# b`,
		"echo '# a' a#b":     "echo '# a' a#b",
		"git show HEAD^":     "git show HEAD^",
		"cat <<E\n# a\nE":    "cat <<E\n# a\nE",
	} {
		if got, ok := dialect.ConvertZshToBash(text); !ok || got != want {
			t.Errorf("dialect.FromZsh(%q) = %q, %t; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"ls *(e:x:)", "ls *(x)", "$a[1] x", "${a[1]} x", "rm ^x", "rm a/^x", "echo $(ls # a\n)", "{ a } always { b }", strings.Repeat("echo # a\n", 100)} {
		if got, ok := dialect.ConvertZshToBash(text); ok {
			t.Errorf("dialect.FromZsh(%q) = %q; want it given up", text, got)
		}
	}
}

// What is translated can be read, and hides nothing that is between
// separators.
func FuzzFromFish(f *testing.F) {
	for _, seed := range []string{"true; and ls (pwd)", `echo 'a\'' "$x" > f`, "if a; b; end", "for i in 1; $i; end"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, ok := dialect.ConvertFishToPOSIX(text)
		if !ok {
			return
		}
		after, ok := dialect.ConvertFishToPOSIX(text + "\ncat /a/witness")
		if ok && strings.HasPrefix(after, before) && !strings.HasSuffix(after, "\ncat /a/witness") {
			t.Errorf("%q became %q", text, after)
		}
		if _, err := parse.Shell(before); err != nil {
			return // is left to a higher tier
		}
		for _, e := range shell.Analyze(after, nil).Effects {
			if e.Path == "/a/witness" || e.Kind == "dynamic" {
				return
			}
		}
		t.Errorf("%q as %q hides the last command", text, after)
	})
}

func FuzzFromZsh(f *testing.F) {
	for _, seed := range []string{"echo # a", "a '#' # $(b # c)", "x#y ;# z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := dialect.ConvertZshToBash(text)
		if !ok {
			return
		}
		if again, ok := dialect.ConvertZshToBash(got); !ok || again != got {
			t.Errorf("%q became %q, then %q, %t", text, got, again, ok)
		}
	})
}

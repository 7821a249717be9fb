package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// A shell runs what is before a syntax error, so that shows however the
// rest is read.
func TestSyntaxError(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		name, text string
		dynamic    bool
		deletes    bool
	}{
		{"before an error", "rm -rf /\n)", true, true},
		{"before a placeholder", "rm -rf /\nls <dir>", false, true},
		{"behind a placeholder", "ls <dir>\nrm -rf /", false, true},
		{"placeholder", "apk add <package>", false, false},
		{"two placeholders", "mv <src> <dest>", false, false},
		{"template", "cmake -B ${{ matrix.dir }} -S .", false, false},
		{"no placeholder", "ls <$(rm -rf /)>", true, false},
		{"unterminated", "echo \"a", true, false},
	} {
		r := Analyze(c.text, here())
		if got := has(r, effect.UnknownEffect); got != c.dynamic {
			t.Errorf("%s: %q: dynamic is %v, want %v", c.name, c.text, got, c.dynamic)
		}
		if got := has(r, effect.DeleteFile); got != c.deletes {
			t.Errorf("%s: %q: delete_file is %v, want %v", c.name, c.text, got, c.deletes)
		}
	}
	// A redirect that only looks like a placeholder still writes.
	if r := Analyze("cat <a> /etc/passwd\nls <dir>", here()); !has(r, effect.WriteFile) {
		t.Errorf("the write before the error is lost: %v", r.Effects)
	}
}

func TestReplacementsKeepLength(t *testing.T) {
	t.Parallel()
	for _, text := range [...]string{"a ${{ b }} c", "${{}}", "${{", "<a>", "<", "<>", "< a>", "<a b-c>d", "x <y"} {
		if got := parse.ReplaceAnglePlaceholdersWithVariables(parse.ReplaceGitHubExpressionsByVariables(text)); len(got) != len(text) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestFolding(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ text, want string }{
		{`echo ${x:-a}`, "echo a"},
		{`x=abc; echo ${x:1:1}`, "echo b"},
		{`x=abc; echo ${x: -1}`, "echo c"},
		{`x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.}`, "echo a.b a b.c c"},
		{`x=aXbX; echo ${x/X/y} ${x//X/y}`, "echo aybX ayby"},
		{`x=ab; echo ${x^} ${x^^}`, "echo Ab AB"},
		{`x=(a b c); echo ${x[1]} ${x[-1]} ${#x[@]} "${x[@]:1}"`, "echo b c ${#x} b c"},
		{`echo $((1+2*3)) $((2**4)) $((7%4)) $((1<2?5:6))`, "echo 7 $((…)) 3 $((…))"},
		{`echo {a..c} {01..03} x{1,2}y`, "echo a b c 01 02 03 x1y x2y"},
		{`echo $'\x41\102\u0043'`, "echo ABC"},
		{`printf '%s-%s\n' a b | tr a-z A-Z | xargs echo`, "echo A-B"},
		{`echo $(printf '%03d' 7)`, "echo 007"},
		{`echo $(seq 3)`, "echo 1 2 3"},
		{`echo $(echo abc | rev)`, "echo cba"},
		{`echo $(echo a:b | cut -d: -f2)`, "echo b"},
		{`x=1; x+=2; echo $x`, "echo 12"},
		{`declare -u x=abc; echo $x`, "echo $x"},
		{`declare -i x=5; echo $x`, "echo $x"},
		{`x=y; y=z; echo ${!x}`, "echo z"},
		{`declare -n r=t; t=5; echo $r`, "echo $r"},
		{`f() { echo $2 $#; }; f a b`, "echo b 2"},
		{`set -- a b; shift; echo $1`, "echo b"},
		{`read a b <<< "1 2"; echo $b`, "echo $b"},
		{`(x=1); echo ${x:-none}`, "echo none"},
		{`cd /tmp; echo $(pwd)`, "echo /tmp"},
		{`basename /a/b.c .c | xargs echo`, "echo b"},
		{`echo "$@"x`, "echo x"},
		{`echo ~/x "$HOME/x"`, "echo ~/x /home/me/x"},
	} {
		var got []string
		for _, e := range Analyze(c.text, here()).Effects {
			if e.KindForPolicies() != effect.Execute || e.Program != "echo" {
				continue
			}
			got = append(got, strings.Join(append([]string{"echo"}, e.Args...), " "))
		}
		if !slices.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

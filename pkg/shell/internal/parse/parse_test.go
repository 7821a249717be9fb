package parse

import (
	"strings"
	"testing"
)

// TestTooDeep holds that text which would overflow the parser's stack never
// reaches it, and that long everyday text does.
func TestTooDeep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		deep bool
	}{
		"everyday":         {strings.Repeat("echo $(date) && ", 500) + "true", false},
		"long":             {strings.Repeat("x", MaxCommandBytes), false},
		"too long":         {strings.Repeat("x", MaxCommandBytes+1), true},
		"nested":           {strings.Repeat("$(", MaxBracketNesting+1), true},
		"closed":           {strings.Repeat("(a)", MaxBracketNesting+1), false},
		"closers first":    {strings.Repeat(")", 999) + strings.Repeat("(", MaxBracketNesting+1), true},
		"back quotes":      {strings.Repeat("`", maxNestableConstructsPerCommand+1), true},
		"negations":        {strings.Repeat("! ", maxNestableConstructsPerCommand+1), true},
		"keywords":         {strings.Repeat("if ", maxNestableConstructsPerCommand+1), true},
		"within words":     {strings.Repeat("xif ", maxNestableConstructsPerCommand+1), false},
		"arithmetic":       {"((" + strings.Repeat("-", maxNestableConstructsPerCommand+1), true},
		"signs in a word":  {"echo " + strings.Repeat("-", maxNestableConstructsPerCommand+1), false},
		"case of a letter": {strings.Repeat("If ", maxNestableConstructsPerCommand+1), false},
	} {
		if got := ExceededLimitReason(c.text) != ""; got != c.deep {
			t.Errorf("%s: too deep is %t", name, got)
		}
	}
}

// TestShell holds which texts are shell text of some kind, and that one which
// failed leaves the parser as it was.
func TestShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                                0,
		"a; b\nc &":                       3,
		"[[ a =~ (b|c) ]]":                1, // bash
		"for ((i=0;i<2;i++)); do a; done": 1,
		"a |& b":                          1,
		"repeat 3 { ls }":                 1,
		"echo \"":                         -1,
		"if a; then":                      -1,
		"a )":                             -1,
	} {
		f, err := Shell(text)
		if want < 0 {
			if err == nil {
				t.Errorf("%q is read as %d statements", text, len(f.Stmts))
			} else if msg := ShortError(err); msg == "" || len(msg) > 120 {
				t.Errorf("%q: message %q", text, msg)
			}
			continue
		}
		if err != nil || len(f.Stmts) != want {
			t.Errorf("%q: %v, want %d statements", text, err, want)
		}
	}
}

// TestWithout holds that what stands for something else becomes a variable of
// the same length, so that spans stay.
func TestWithout(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		of       func(string) string
		in, want string
	}{
		{ReplaceAnglePlaceholdersWithVariables, "rm <file>", "rm ${___}"},
		{ReplaceAnglePlaceholdersWithVariables, "cp <a> <my-dir/b>", "cp $__ ${_______}"},
		{ReplaceAnglePlaceholdersWithVariables, "sort < a > b", "sort < a > b"},
		{ReplaceAnglePlaceholdersWithVariables, "a </b>", "a </b>"},
		{ReplaceAnglePlaceholdersWithVariables, "a <b", "a <b"},
		{ReplaceAnglePlaceholdersWithVariables, "a <$(b)>", "a <$(b)>"},
		{ReplaceAnglePlaceholdersWithVariables, "<" + strings.Repeat("x", 99) + ">", "<" + strings.Repeat("x", 99) + ">"},
		{ReplaceGitHubExpressionsByVariables, "echo ${{ a.b }}!", "echo ${_______}!"},
		{ReplaceGitHubExpressionsByVariables, "${{a}}${{b}}", "${___}${___}"},
		{ReplaceGitHubExpressionsByVariables, "${{ a", "${{ a"},
		{ReplaceGitHubExpressionsByVariables, "a }} b", "a }} b"},
		{ReplaceGitHubExpressionsByVariables, "}} ${{ a }}", "}} ${_____}"},
	} {
		got := c.of(c.in)
		if got != c.want || len(got) != len(c.in) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

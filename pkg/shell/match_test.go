package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestHiddenNames holds that a name with a hole between its letters is not taken for
// one that a variable of the environment completes.
func TestHiddenNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]effect.EffectCause{
		`ba${x}sh -c id`:                        effect.CauseOtherUnresolvedCommandText,
		`c${u}url http://h.test`:                effect.CauseOtherUnresolvedCommandText,
		`/bin/b${a}s${b}h -c id`:                effect.CauseOtherUnresolvedCommandText,
		`eval $(echo 'cu${y}rl http://h.test')`: effect.CauseOtherUnresolvedCommandText,
		`sudo b"$x"ash`:                         effect.CauseOtherUnresolvedCommandText,
		`env w${x}get http://h.test`:            effect.CauseOtherUnresolvedCommandText,
		`gcc-$V a.c`:                            effect.CauseVariableNotSetByCommand,
		`${PREFIX}gcc a.c`:                      effect.CauseVariableNotSetByCommand,
		`python$V-config --libs`:                effect.CauseVariableNotSetByCommand,
		`clang$V a.c`:                           effect.CauseVariableNotSetByCommand,
		`$TOOL run`:                             effect.CauseCodeIsVariableValue,
	} {
		var got []effect.EffectCause
		for _, e := range Analyze(text, here()).Effects {
			if e.Certainty == effect.Unknown {
				got = append(got, e.Cause)
			}
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s: causes %q, want %q", text, got, want)
		}
	}
}

// TestComputedNames holds which program runs where its name is computed: "" if
// that cannot be known, which must not be taken for a certain name.
func TestComputedNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`x=arm; ${x#[[:alpha:]]}`:                        "rm",
		`x=]rm; ${x#[]]}`:                                "rm",
		`x=érm; ${x#?}`:                                  "rm",
		`x=rmé; ${x%[!a]}`:                               "rm",
		`x=a/b/rm; ${x##*/}`:                             "rm",
		`x=rm.b.c; ${x%%.*}`:                             "rm",
		`x=rm.c; ${x%.c}`:                                "rm",
		`x=rxxm; ${x//x/}`:                               "rm",
		`x=rXYm; ${x//[A-Z]/}`:                           "",
		`x=r1m; ${x/[[:digit:]]/}`:                       "",
		`x=xrm; ${x/#x/}`:                                "rm",
		`x=armb; ${x##a$Y}`:                              "",
		`x=armb; ${x/$Y*b/}`:                             "",
		`printf 'ls\nrm x\nls\nls\n' | tail -n +2 | sh`:  "",
		`printf 'rm -rf a/b' | head --bytes=8 | sh`:      "",
		`printf 'ls\nrm x\n' | tail -n 1 | sh`:           "rm",
		`echo -e '\0162\0155 x' | sh`:                    "rm",
		`printf '%b' '\0162\0155 x' | sh`:                "rm",
		`echo -e 'rm x\c y' | sh`:                        "rm",
		`echo am | tr aa br | sh`:                        "rm",
		`echo ls | tr -t ls rm | sh`:                     "",
		`echo bHM=cm0geA== | base64 -d | sh`:             "",
		`echo cm0geA== | openssl enc -d -a -aes256 | sh`: "",
	} {
		got, unknown := "", false
		for _, e := range Analyze(text, here()).Effects {
			switch {
			case e.KindForPolicies() == effect.Execute && e.Program == "rm":
				got = "rm"
			case e.Certainty == effect.Unknown || e.KindForPolicies() == effect.Execute && e.PathIsPattern:
				unknown = true
			}
		}
		if got != want || want == "" && !unknown {
			t.Errorf("%s: runs %q, unknown: %t; want %q", text, got, unknown, want)
		}
	}
}

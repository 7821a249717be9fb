package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestHiddenWords holds that a word which the text computes in a way that is not followed is unknown
// wherever it may be a subcommand, an option, the name of a variable, code or a file.
func TestHiddenWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`x=_-delete; find src ${x/[_]/}`:                                         true,
		`y=$(echo _-delete | sed 's/[_]//'); find . $y`:                          true,
		`x=_push; git ${x/[_]/} --force origin main`:                             true,
		`x=_core.pager=sh; git -c ${x/[_]/} log`:                                 true,
		`x=_destroy; terraform ${x/[_]/} -auto-approve`:                          true,
		`x=_delete; aws s3api ${x/[_]/}-bucket --bucket prod`:                    true,
		`x=_--privileged; docker run ${x/[_]/} alpine id`:                        true,
		`x=_DROP; psql -c "${x/[_]/} TABLE users"`:                               true,
		`x='_w /etc/passwd'; sed -n "${x/[_]/}" f`:                               true,
		`x=_-f/tmp/Makefile; make ${x/[_]/}`:                                     true,
		`x=_LD_PRELOAD; export ${x/[_]/}=/tmp/a.so; ls`:                          true,
		`x=_PATH; declare -x ${x/[_]/}=/tmp/a; ls`:                               true,
		`x=_PATH; read ${x/[_]/} < f; ls`:                                        true,
		`x=_PATH; printf -v ${x/[_]/} /tmp/a; ls`:                                true,
		`x=_/tmp/bin; PATH=${x/[_]/}:$PATH ls`:                                   true,
		`p='*_'; x=echo_rm; ${x#$p} -rf build`:                                   true,
		`p='*_'; x=a_/etc/cron.d/x; touch "${x#$p}"`:                             true,
		`p='?'; x=_a; cat "${x/$p/b}"`:                                           true,
		`cat $(printf '%q' '/etc/sha dow')`:                                      true,
		`cat $(echo /etc/xshadow | sed s/x.//)`:                                  true,
		`cat <(echo a) "$(echo /etc/xs | shuf)"`:                                 true,
		`echo '{"scripts":{"build":"x"}}' | shuf > package.json; npm run build`:  true,
		`export Z=; read $N <<< q; x=F; git push -${x/[a]/}$Z origin main`:       true,
		`sed -i s/a/b/ Makefile && make`:                                         false,
		`x=_a; echo ${x/[_]/}`:                                                   false,
		`x=_a; test ${x/[_]/} = a`:                                               false,
		`for f in *.txt; do mv -- "$f" "${f%.txt}.md"; done`:                     false,
		`for i in 1 2; do mkdir "run$(printf '%02d' $i)"; done`:                  false,
		`git $SUBCOMMAND`:                                                        false, // what is not of the text is doubted elsewhere
		`x=a.b; touch "${x%.*}" "${x/a/c}" "${x^^}"`:                             false,
		`for f in src/*.c; do cc -c "$f" -o "build/$(basename "$f" .c).o"; done`: false,
	} {
		got := slices.ContainsFunc(Analyze(text, here()).Effects, func(e effect.Effect) bool { return e.Certainty == effect.Unknown })
		if got != want {
			t.Errorf("%s: unknown is %t, want %t", text, got, want)
		}
	}
}

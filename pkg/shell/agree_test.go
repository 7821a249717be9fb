package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// agreements are texts, and of each calls that are separated by " | ".
var agreements = []struct{ text, want string }{
	// what ends with a function, a subshell, a child
	{`x=w1; f() { local x=w2; g; }; g() { a0 $x; }; f; a1 $x`, "a0 w2 | a1 w1"},
	{`x=w1; f() { x=w2; local x=w3; }; f; a1 $x`, "a1 w2"},
	{`sh -c 'x=w2'; a1 $x`, "a1 $x"},
	{`x=w1; sh -c 'a1 $x'`, "a1 $x"},
	{`export x; x=w1; sh -c 'a1 $x'`, "a1 w1"},
	{`x=w1 sh -c 'a1 $x $0 $1' w2 w3`, "a1 w1 w2 w3"},
	{`set -- w1 w2; (shift; a0 $1); a1 $1`, "a0 w2 | a1 w1"},
	{`set -- w1 w2; a0 && shift; a1 $1`, "a1 w1 | a1 w2"},
	{`f() { a0 w1; }; a2 && f() { a0 w2; }; f`, "a0 w1 | a0 w2"},
	// what may not have run
	{`x=w1; a0 && x=w2; a1 $x`, "a1 w1 | a1 w2"},
	{`x=w1; for y in 1 2; do a1 $x; a0 && continue; x=w2; done`, "a1 w1 | a1 w2"},
	{`x=w1; f() { a0 && return; x=w2; }; f; a1 $x`, "a1 w1 | a1 w2"},
	{`x=w1; if a0; then x=w2; else x=w3; fi; a1 $x`, "a1 w2 | a1 w3"},
	{`if a0; then x=w2 y=w2; else x=w3 y=w3; fi; a1 $x $y`, "a1 w2 w2 | a1 w2 w3 | a1 w3 w2 | a1 w3 w3"},
	{`eval "$(a0 && echo a1)"`, "unknown"},
	{`eval "$(echo a0; exit; echo a1)"`, "unknown"},
	{`a1 $((1 || (x = 3))) $x`, "a1 1 3 | a1 1 $x"},
	{`x=2; a1 $(((x = 1) + x)) $x`, "a1 $((…)) $((…))"},
	{`x=2; a1 $(((x = 1) * 2)) $((x += 3)) $((x ? 7 : 1))`, "a1 2 4 7"},
	{`echo a0 >f; a2 && echo a1 >f; sh f`, "a0 | a1"},
	{`trap 'a1 $x' EXIT; x=w1; x=w2`, "a1 w1 | a1 w2"},
	{`x=w1; f() { trap 'x=w2' EXIT; }; f; a1 $x`, "a1 w1 | a1 w2"},
	{`f() { local -a y=(w1 $((y = 2))); }; f; a1 $y`, "a1 2"},
	{`echo 'a0 w1' >f; cd d && echo 'a0 w2' >f; sh f`, "a0 w1 | a0 w2"},
	{`echo 'a0 w1' >f; cd d; sh f`, "a0 w1 | unknown"},
	{`echo w1 >f; cd d; echo w2 >f; a1 $(cat f)`, "a1 $(cat f)"},
	// words
	{`IFS=:; x=w1:w2; a1 $x "$x"`, "a1 w1 w2 w1:w2"},
	{`set -- w1 w2; IFS=,; a1 "$*"`, "a1 w1,w2"},
	{`IFS=: read x y <<< w1:w2:w3; a1 $x $y`, "a1 w1 w2:w3"},
	{`x="w1 w2"; a1 $x`, "a1 w1 w2 | a1 w1 w2"},
	{`x=(w1 w2); a1 $x`, "a1 w1 | a1 w1 w2"},
	{`a1 "$*"`, "a1 "},
	{"y='w1 w2'; a1 w{1,`echo $y`}", "a1 w1 ww1 w2 | a1 {…}"},
	{`set -- w1 w2; a1 {w,v}$@`, "a1 ww1 w2 vw1 w2 | a1 {…}"},
	{`x=w; a1 {$x,w1}2`, "a1 {…}2 w12"},
	{`x=w1; a1 "${x@Q}"`, "a1 ${x…}"},
	{`declare -n y=x; y=w1; a1 $x`, "a1 w1"},
	{`f() { local -n r=$1; r=(w1); }; x=w2; f x; a1 $x`, "a1 w1"},
	{`x=w1; x[1]=w2; unset 'x[0]'; a1 "${x[@]}"`, "a1 w2 | a1 w21"},
	{`x=(w1 w2); a1 "$x[2]" ${x[1]} ${#x}`, "a1 w1[2] w2 2 | a1 w2 w1 2"},
	{`x=(w1 w2); x[1]=w3; a1 "${x[@]}"`, "a1 w1 w3 | a1 w3 w2"},
	{`x=(w1 w2); x=w3; a1 "${x[@]}"`, "a1 w3 w2 | a1 w3"},
	{`x=(w1 w2); x+=w3; a1 "${x[@]}"`, "a1 w1w3 w2 | a1 w1 w2 w3"},
	{`x=w1; x[2]=w2; a1 $x`, "a1 w1 | a1 ww2"},
	{`x=(w1 w2 w3); x[5]=w4; unset 'x[1]'; a1 "${#x[@]}" "${x[-1]}"`, "a1 3 w4 | a1 5 w4"},
	{`x=([1]=w1 w2 [0]=w3); a1 $x "${!x[@]}"`, "a1 w3 0 1 2"},
	{`x=w1:w2; a1 "${x: -9}" "${x[@]:1:1}"`, "a1  1 | a1 w1:w2 1"},
	{`x=(w1); ((x[0] = 2)); a1 $x`, "a1 $x"},
	{`x=(); a1 ${x-w1} "${x[@]-w2}"`, "a1 w1 w2"},
	{`x=w1; declare x=w2 y=$x; a1 $y`, "a1 w1"},
	{`x=w1; export z=${y=w3} y=$y; a1 $y`, "a1 $y"},
	{`x=w1; a0 | x=w2; a1 $x`, "a1 w1 | a1 w2"},
	{`x=w1; x=w2 | a0 $x; unset y && z=w3; a1 $x $z`, "a0 w1 | a1 w1 w3"},
	{`x=w1; shopt -s lastpipe; a0 | x=w2; a1 $x`, "a1 w1 | a1 w2"},
	{`x=w1; f() { a0 && typeset -u x; x=2; }; f; a1 $x`, "a1 2 | a1 w1"},
	{`x=w1; f() { if a0; then local x; else local x; fi; x=2; }; f; a1 $x`, "a1 w1"},
	{`set -- w1; set -- "${!y}"; a1 "$@"`, "a1 w1"},
	{`x=(w1 w2); let x=1; x=w1; a1 $x`, "a1 $x"},
	{`f() { a1 w{1,2}; a0 && f; }; f; f`, "a1 w1 w2 | a0"},
	{`IFS=:; sh -c 'x="w1 w2"; a1 $x'`, "a1 w1 w2"},
	{`x=([1]=w2 [0]=w3); x=w1; $x`, "w1"},
	{`x=w1; x=(${x[-1]} w2); a1 "${x[@]}"`, "a1 w1 w2"},
	{`x=w1; x=([1]=w2 [0]=${x[-1]}); a1 "${x[@]}"`, "a1 w1 w2"},
	{`x=w1; x+=(w2 ${x[-1]}); a1 "${x[@]}"`, "a1 w1 w2 w1"},
	{`a0 && x=w1; x=(${x[-1]}); a1 "${x[@]}"`, "a1 ${x…}"},
	{`declare -A y=([w1]=w1); a1 "${y+w2}"`, "a1  | a1 w2"},
	{`x=2; x[1]=w1; a0 || unset x; unset 'x[0]'; a1 "${#x[@]}"`, "a1 ${#x}"},
	{`set -- "" w1; IFS=w; a1 $*`, "a1 ${…}"},
	{`x=(""); a1 ${x:+w1} w2`, "a1 w2 | a1 ${x…} w2"},
	{`x=("" 1); a1 $((x ? 1 : 2))`, "a1 2 | a1 $((…))"},
	{`x='w1 w2'; f() { a1 "$2"; }; f "${=x}"`, "a1 $2"},
	{`export y; a1 ${y-2}`, "a1 2 | a1 $y"},
	{`x=w1; a1 ${x+w{1,2}} w3`, "a1 w{1,2} w3 | a1 $__unknown w3"},
	{`set -- "w1 w2" w3; a1 "${x-$@}"`, "a1 ${…}"},
	{`x=(w1 w2); a1 "${y-"${x[@]}"}"`, "a1 ${…}"},
	{`f() { a1 $#; }; x=(w1 w2); f "${y-"${x[@]}"}"`, "a1 $#"},
	{`y=w1; a0 && read "$z"; a1 ${y+w2} ${x-w3}`, "a1 ${…} ${x…} | a1 ${x…}"},
	// input
	{`printf 'w1\nw2\n' >f; { read x; read y; } <f; a1 $x $y`, "a1 w1 w2"},
	{`exec 3<<< w1; read x <&3; read y <&3; a1 $x $y`, "a1 w1"},
	{`printf 'w1\nw2\n' >f; exec 3<f; read x <&3; read y <&3; a1 $x $y`, "a1 w1 w2"},
	{`printf 'w1\nw2\n' >f; { cat g && read x; read y; } <f; a1 $y`, "a1 $y"},
	{`printf 'w1\nw2\n' | while read x; do y=$y$x; done; printf '%s\n' w1 w2 | xargs -I{} sh -c 'a1 "{}"'`, "a1 w2"},
	{`IFS=: read x y <<< w1:w2:; a1 "$x" "$y"`, "a1 w1 w2 | a1 w1 w2:"},
	{`IFS=: read -A x <<< w1:w2:; a1 "${x[@]}"`, "a1 w1 w2 "},
	{"a0 && x=w2 || x=w3; exec 3<<E\n$x\nE\nread y <&3; a1 $y", "a1 $y"},
	{"a0 && x=w2 || x=w3; exec <<E\n$x\nE\nread y; a1 $y", "a1 $y"},
	{`x=w1; (exec 3<g; :) && x=w2; a1 $x`, "a1 w1 | a1 w2"},
	{`x=w1; (: <g; :) && x=w2; a1 $x`, "a1 w1 | a1 w2"},
	{`x=w1; (shift; :) && x=w2; a1 $x`, "a1 w1 | a1 w2"},
	{`echo w1 >f; cd d; cd ..; a1 $(cat f)`, "a1 $(cat f)"},
	{`echo w1 >f; cd d && cd .. && a1 $(cat f)`, "a1 w1"},
	// at the same time
	{`echo w1 >f; { echo w2; a1 "$(cat f)"; } >f`, "a1 $(cat f)"},
	{`echo w1 >f; { echo w2 >f; } & a1 $(cat f)`, "a1 $(cat f)"},
	{`echo w1 | tee f; a1 $(cat f)`, "a1 w1"},
	{`echo 'a0 w1' >f; cat f | { echo 'a0 w2' >f; sh; }`, "a0 w1 | unknown"},
	{`echo 'a0 w1' >f; sh f & echo 'a0 w2' >f`, "a0 w1 | a0 w2"},
	{`echo w1 >f; { echo w2 >f; } & wait; a1 $(cat f)`, "a1 w2"},
	{`echo w1 >f; { a1 $(cat f); } & echo w2 >f`, "a1 w1 | a1 $(cat f)"},
	{`echo w1 >f; echo w2 >f | a1 $(cat f)`, "a1 $(cat f)"},
	{`echo w1 >f; a1 $(cat f) | echo w2 >f; a0 $(cat f)`, "a1 w1 | a1 $(cat f) | a0 w2"},
	{`echo w1 >f; coproc { echo w2 >f; }; a1 $(cat f)`, "a1 $(cat f)"},
	{`echo w1 >f; echo w2 > >(cat >f); a1 $(cat f)`, "a1 $(cat f)"},
	{`declare -n y=x; x=w1; y= a1 w1; a1 $y`, "a1 w1"},
	{`declare -n x=y; for x in w1; do :; done; a1 $x`, "a1 $y"},
	{`shift && typeset -u y; y=w1; a1 $y`, "a1 $y"},
	{`f() { { declare -n x=y; } & x=w2; }; x=w1; f; a1 $x`, "a1 w2"},
	{`set -- w1 w2; IFS=w; a1 $*`, "a1 ${…}"},
	{`for x; do y=w1; done; y=w2; false && y=w3; a1 $y`, "a1 w2"},
	{`x=$(echo w1 >&2; echo w2); a1 $x`, "a1 w2"},
	{`exec 3>f; echo w1 >&3; echo w2 >&3; a1 $(cat f)`, "a1 w1 w2"},
	{`echo w1 w2 | xargs -n1 a1`, "a1 …"},
	{`echo 'a1 "$@"' | sh -s w1`, "a1 w1"},
	{`export y=w1; env y=w2 sh -c 'a1 $y'`, "a1 w2"},
	{`x=w3; x+=($((x = 2))); a1 "${x[@]}"`, "a1 ${x…}"},
	{`typeset -u y; y=(w1); y=(w2); a1 $y`, "a1 $y"},
	{`x=([0]=w{1,2} w3); a1 "${#x[@]}"`, "a1 ${#x}"},
	{`f() { declare -n y=x; g; }; g() { declare -g y=w1; }; f; a1 $x`, "a1 $x"},
	{`(exec >f; echo w1; echo w2 >f; echo w3); a1 $(cat f)`, "a1 $(cat f)"},
	{`x=w1; for x in w2; do :; done && { a0; } & wait; a1 $x`, "a1 w1 | a1 w2"},
	{`for y in $z; do a0 && x=w1; done; a0 $((x++)); x=w2; a1 $x`, "a1 $x"},
	{`x=w1; a0 | trap 'a1 $x' EXIT; x=w2`, "a1 w1 | a1 w2"},
	{`set -- w1 w2; IFS=,; x="$@"; a1 "$x"`, "a1 $@"},
	{`a1 $(shift; echo w1)`, "a1 $(shift; echo w1)"},
	{`x=w1; a1 $(: $((x + 1)); echo w1)`, "a1 $(: $((x + 1)); echo w1)"},
	{`echo w1 >f; (exit; echo w2 >f); a1 $(cat f)`, "a1 $(cat f)"},
	{`f() { a0 && return; echo w1 >f; }; echo w2 >f; f; a1 $(cat f)`, "a1 $(cat f)"},
	{`f() { while declare y=w1; do a1 $y; break; done; }; f`, "a1 w1"},
	{`declare -A x=([w1]=w2); x=w3; a1 $x "${x[w1]}"`, "a1 w3 w2"},
	{`x=w1; declare -u x; a1 $x; x=w2; a1 $x`, "a1 w1 | a1 W1 | a1 W2"},
	{`x=(w1); declare -A x=([w1]=w2); a1 "${x[w1]}"`, "a1 ${x…}"},
	{`x=w1; g() { a1 $x; }; alias g='x=w2; :'; g`, "a1 w1 | a1 w2"},
	{`y=w1; sh -c 'export y; a1 $y'`, "a1 $y"},
	{`f() { a1 $#; }; f ""$x`, "a1 $#"},
	{`y=(w1); a1 "${y:1}" w2`, "a1 1 w2 | a1  w2"},
	{`x=w1; f() { local x; a1 "${x-w2}"; }; f`, "a1 w1 | a1 w2 | a1 "},
	{`alias a0=a1; a0 w1`, "a0 w1 | a1 w1"},
	{`alias a2='a0 w3'; alias a0=a1; a2 w1`, "a0 w3 w1 | a1 w3 w1"},
	{`alias a2='a0 $x'; x=w1; a2 $((x = 2))`, "a0 w1 2 | a0 2 2"},
	{`f() { unset y; a0 $y; }; g() { local y=2; f; f; }; y=w1; g; a1 $y w2`, "a1 w1 w2 | a1 $y w2"},
	{`f() { unset y; y=w2; }; g() { local y; f; }; y=w1; g; a1 $y`, "a1 w1 | a1 $y"},
	{`f() { local -n y=$1; declare -u y=w1; a1 $x; }; x=w2; f x`, "a1 $x"},
	{`a0 && exec 3>f; echo w1 >&3; a1 "$(cat f)"`, "a1 $(cat f)"},
	{`exec 3>f; a0 && exec 3>&-; echo w1 >&3; a1 "$(cat f)"`, "a1 $(cat f)"},
	{`{ exec 3>f; }; echo w1 >&3; a1 "$(cat f)"`, "a1 w1"},
	{`echo w1 >f; echo w2 >g; exec 3<f; a0 && exec 3<g; read x <&3; a1 $x`, "a1 $x"},
	{`x=w1; f() { x=w2; }; set -u; y=1; f "${#y[@]}"; a1 $x`, "a1 w1 | a1 w2"},
}

// TestAgree demands calls that some shell makes of a text, each as a program with its
// arguments, or "unknown" for a Dynamic effect. Arguments that are not known are
// as they are shown.
func TestAgree(t *testing.T) {
	t.Parallel()
	for _, c := range agreements {
		var got []string
		for _, e := range Analyze(c.text, here()).Effects {
			switch e.Kind {
			case effect.Execute:
				got = append(got, strings.Join(append([]string{e.Program}, e.Args...), " "))
			case effect.Dynamic:
				got = append(got, "unknown")
			}
		}
		for want := range strings.SplitSeq(c.want, " | ") {
			if !slices.Contains(got, want) {
				t.Errorf("%s\nlacks %q, has %q", c.text, want, got)
			}
		}
	}
}

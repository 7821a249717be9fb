package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"
)

// builtins are all functions of jq that an expression can call.
func builtins(t *testing.T) []string {
	t.Helper()
	q, err := gojq.Parse("builtins")
	if err != nil {
		t.Fatal(err)
	}
	v, _ := q.Run(nil).Next()
	var out []string
	for _, name := range v.([]any) {
		out = append(out, name.(string))
	}
	if len(out) < 150 {
		t.Fatalf("%d functions", len(out))
	}
	return out
}

// Every function of jq is in one table: what a new version brings has to be
// looked at before a condition may call it.
func TestEveryFunctionIsKnown(t *testing.T) {
	t.Parallel()
	in := map[string]int{}
	for _, fn := range slices.Concat(jqFunctionsRefusedInConditions, unmeteredJQFunctions, slices.Collect(maps.Keys(jqFunctionWorkPerByte))) {
		in[fn]++
	}
	for _, w := range jqFunctionRedefinitions {
		for _, fn := range strings.Fields(w.names) {
			in[fn]++
		}
	}
	all := builtins(t)
	for _, fn := range all {
		if in[fn] != 1 {
			t.Errorf("%s is in %d tables", fn, in[fn])
		}
		delete(in, fn)
	}
	for fn := range in {
		t.Errorf("%s is no function of jq", fn)
	}
}

// part is which part of the bounds, and of the inputs that reach them, tests of
// many expressions use; TestBoundIsNotCaught runs some at the whole bounds.
const part = 8

// hostileValues are inputs that agents would send to make conditions work.
func hostileValues() map[string]any {
	list := func(n int, f func(int) any) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = f(i)
		}
		return out
	}
	deep := any("x")
	for range 1000 {
		deep = []any{deep}
	}
	return map[string]any{
		"letters":    strings.Repeat("a", 250_000/part),
		"lines":      strings.Repeat("some words of a line\n", 12_000/part),
		"digits":     strings.Repeat("9", 250_000/part),
		"list":       list(60_000/part, func(i int) any { return i % 7 }),
		"empty":      list(60_000/part, func(int) any { return []any{} }),
		"one long":   append(list(30_000/part, func(int) any { return []any{} }), list(30_000/part, func(i int) any { return i })),
		"objects":    list(10_000/part, func(i int) any { return map[string]any{"key": fmt.Sprint(i), "value": i} }),
		"deep":       deep,
		"big number": json.Number(strings.Repeat("9", maxNumberLength)),
	}
}

// run runs an expression on a value.
func runWhen(t *testing.T, expr string, v any) (any, *compiledJQCondition) {
	t.Helper()
	p, err := compileJQCondition(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	p.conditionWorkMeter = newConditionWorkMeter(context.Background())
	out, _ := p.code.RunWithContext(p.conditionWorkMeter, v).Next()
	return out, p
}

// maxAllocated is how many bytes one run may allocate, all in all.
const maxAllocated = 256 << 20 / part

// judgeWithin runs a condition and demands that it allocates no more than that.
// Tests that call it are not parallel.
func judgeWithin(t *testing.T, p *compiledJQCondition, v any, what string) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.conditionWorkMeter = &conditionWorkMeter{Context: context.Background(), stepsLeft: maxConditionSteps / part, workLeft: maxConditionWorkBytes / part}
	_, err := p.evaluate(v)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated {
		t.Errorf("%s: %d MiB were allocated", what, n>>20)
	}
	if p.exceededLimit == nil && (p.stepsLeft < 0 || p.workLeft < 0) {
		t.Errorf("%s: %v beyond the bounds", what, err)
	}
	return err
}

// Whatever function is called with whatever an agent sends, the condition ends
// by itself or by its meter, and what the meter does not count is not much: the
// test would take minutes, or all memory.
func TestEveryFunctionIsBounded(t *testing.T) {
	values := hostileValues()
	few := map[string]any{"letters": values["letters"], "list": values["list"]}
	arguments := []string{"$v", `"a(.*b)?"`, "1000000000"}
	for _, fn := range builtins(t) {
		if slices.Contains(jqFunctionsRefusedInConditions, fn) {
			continue
		}
		name, arity, _ := strings.Cut(fn, "/")
		for _, arg := range arguments {
			call := name
			if n := int(arity[0] - '0'); n > 0 {
				call += "(" + strings.Repeat("; "+arg, n)[2:] + ")"
			} else if arg != arguments[0] {
				continue
			}
			p, err := compileJQCondition(". as $v | [" + call + "] | length >= 0")
			if err != nil {
				t.Fatalf("%s: %v", call, err)
			}
			with := values
			if arg != arguments[0] {
				with = few
			}
			for kind, v := range with {
				judgeWithin(t, p, v, call+" of "+kind)
			}
		}
	}
}

// Expressions that take long, or make much, of little.
func TestExpressionsAreBounded(t *testing.T) {
	a := hostileValues()["letters"]
	for _, expr := range []string{
		`[range(1e9)] | length > 0`,
		`[limit(1e9; repeat(1))] | length > 0`,
		`"x" * 1e9 | length > 0`,
		`1e8 * "xyz" | length > 0`,
		`reduce range(100) as $i ("x"; . + .) | length > 0`,
		`reduce range(100) as $i ("x"; "\(.)\(.)") | length > 0`,
		`reduce range(100) as $i ("x"; @json "\(.)\(.)") | length > 0`,
		`reduce range(100) as $i ([0]; . + .) | length > 0`,
		`reduce range(60) as $i (0; [., .]) | tojson | length > 0`,
		`reduce range(60) as $i (0; [., .]) | . == .`,
		`reduce range(60) as $i (0; [., .]) | [., .] | unique | length > 0`,
		`reduce range(60) as $i (0; [., .]) | flatten | length > 0`,
		`reduce range(60) as $i (0; [., .]) | @text | length > 0`,
		`reduce range(60) as $i (0; [., .]) | error`,
		`reduce range(60) as $i (0; [., .]) | try error catch true`,
		`reduce range(60) as $i (0; {a: ., b: .}) | . * . | length > 0`,
		`reduce range(60) as $i (0; {a: ., b: .}) | contains({a: {}})`,
		`reduce range(60) as $i ("1" | tonumber | . + 1; . * .) | . > 0`,
		`[range(3000)] | . - [range(3000; 6000)] | length > 0`,
		`[range(300000)] | .[[0, 1, 2]] | length > 0`,
		`[range(300000)] | . as {([0, 1]): $x} | $x == null`,
		`[range(300000)] | getpath([[0, 1]]) == null`,
		`[range(300000) | "x"] | join("0123456789" * 1000) | length > 0`,
		`def f: f; f`,
		`def f: 1 + f; f == 1`,
		`. as $s | [range(100000) | $s | length] | length > 0`,
		`. as $s | any(range(100000); $s | test("b$"))`,
		`. as $s | any(range(100000); $s + "x" == $s)`,
		`gsub("a"; "b") | length > 0`,
		`gsub("a(.*b)?"; "") | length > 0`,
		`gsub(""; "x") | length > 0`,
		`gsub("(?<x>a)"; .x + .x) | length > 0`,
		`[scan("a(.*b)?")] | length > 0`,
		`[match("a(.*b)?"; "g")] | length > 0`,
		`[splits("a(.*b)?")] | length > 0`,
		`sub("(a)"; "b"; "g") | length > 0`,
		`test("(((a{1,100})b{1,100}){1,10}c{1,10}){1,10}")`,
		`test("(a|b|ab|ba|aab|aba){900}c")`,
		`test(.)`,
		`("(" * 1000) + "a" + (")" * 1000) | test(.)`,
		`explode | explode | length > 0`,
		`[explode[] | [.]] | tojson | fromjson | tojson | fromjson | length > 0`,
		`[., ., ., ., ., ., ., ., ., .] | [., ., ., ., ., ., ., ., ., .] | tojson | length > 0`,
		`"9" * 100000 | tonumber > 0`,
		`"9" * 100000 | fromjson > 0`,
	} {
		p, err := compileJQCondition(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		if err := judgeWithin(t, p, a, expr); err == nil {
			t.Errorf("%s: is within bounds", expr)
		}
	}
}

// What is reached cannot be caught: a deny rule must not be evaded by making
// its condition fail.
func TestBoundIsNotCaught(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		`try ("x" * 1e9 | length > 0) catch false`,
		`("x" * 1e9 | length > 0)? // false`,
		`[range(1e9)]? // false | false`,
		`.action.payload.content | (gsub("a"; "b")? // "") == "" | not`,
		`.action.payload.content | try (("a(.*b)?" as $re | [scan($re)]) | false) catch false`,
	} {
		c := caseOf("write_file")
		c.Action.Payload = map[string]any{"content": strings.Repeat("a", 200_000)}
		w := &condition{expr: expr}
		for range 2 { // the second run has a meter of its own
			if is, err := w.isTrue(&ruleSearch{ctx: t.Context(), judgedCase: c}); is || !errors.Is(err, errTooManySteps) && !errors.Is(err, errTooMuchWork) {
				t.Errorf("%s: %v, %v", expr, is, err)
			}
		}
		c.Action.Payload["content"] = ""
		if _, err := w.isTrue(&ruleSearch{ctx: t.Context(), judgedCase: c}); strings.Contains(expr, "content") && err != nil {
			t.Errorf("%s of little: %v", expr, err)
		}
	}
}

func TestRefusedFunctions(t *testing.T) {
	t.Parallel()
	for _, fn := range jqFunctionsRefusedInConditions {
		name, arity, _ := strings.Cut(fn, "/")
		if n := int(arity[0] - '0'); n > 0 {
			name += "(" + strings.Repeat("; .", n)[2:] + ")"
		}
		if _, err := compileJQCondition(name + " == 1"); err == nil || !strings.Contains(err.Error(), "is not available in a condition") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, expr := range []string{".a = 1", ".a |= 1", ".a += 1", "[.[] | (.a //= 1)] == []", `_match("a"; null; true)`, `"\(.a = 1)" == ""`, "def f: _sort_by(.); f"} {
		if _, err := compileJQCondition(expr); err == nil {
			t.Errorf("%s is compiled", expr)
		}
	}
	// One's own function of such a name is no other user's.
	if v, _ := runWhen(t, "def now: 3; now == 3", nil); v != true {
		t.Error(v)
	}
}

// The functions that are written anew, and the operators, say what jq's say.
func TestSameAsJQ(t *testing.T) {
	t.Parallel()
	values := []string{
		`null`, `true`, `0`, `-3.5`, `"a,b;a"`, `""`, `"жaжb 日本"`, `[]`, `[3,1,2,1]`, `["b","a","b"]`, `[[2,1],[1],[2,1]]`,
		`{"b":1,"a":[1,{"c":null}]}`, `[{"k":2,"v":"x"},{"k":1,"v":"y"},{"k":2,"v":"z"}]`, `"[1, {\"a\": 1e3}]"`, `"12"`, `12345678901234567890123`,
	}
	exprs := []string{
		`sort`, `unique`, `sort_by(.k)`, `group_by(.k)`, `unique_by(.k)`, `min_by(.k)`, `max_by(.k)`, `[sort_by(.k, .v)]`, `min`, `max`, `add`, `add(.[])`,
		`join(",")`, `join(1)`, `contains("a")`, `contains(["b"])`, `contains({a: [1]})`, `inside("xa,b;ay")`, `indices("a")`, `indices("")`, `indices(1)`, `indices([1,2])`,
		`index("a")`, `rindex("a")`, `index(1)`, `rindex("")`, `index("жb")`, `indices("aa")`, `getpath(["a", 0])`, `getpath(["x"])`, `tonumber`, `fromjson`, `IN(1, 12)`, `IN(.[]; 1, "a")`,
		`.[0]`, `.["a"]`, `.a`, `.[1:]`, `.[:-1]`, `.[.a]`, `.[-1:]`, `. as {a: $x} | $x`, `. as [$x, $y] | [$y, $x]`, `. as {("a", "b"): $x} | $x`,
		`. + .`, `. - .`, `. * 2`, `. / .`, `. / ","`, `. % 5`, `. == .`, `. != null`, `. < "b"`, `. >= 1`, `[., 1] | .[0] > .[1]`, `[(1, 2) + (10, 20)]`, `[(1, 2) < (1, 2)]`, `1 - (1, 2)`,
		`"x\(.)y\(1 + 1)"`, `@json`, `@text "a\(.)b"`, `@base64`, `@sh`, `@csv`, `format("text")`, `tostring`, `tojson`, `keys`, `length`, `utf8bytelength`, `explode`, `explode | implode`,
		`to_entries`, `with_entries(.value |= 1)?`, `flatten`, `flatten(1)`, `reverse`, `ascii_upcase`, `startswith("a")`, `ltrimstr("a")`, `split(",")`, `error`, `try error("x") catch .`,
		`path(..)`, `[paths]`, `paths(type == "number")`, `map_values(. + 1)`, `walk(if type == "number" then . + 1 else . end)`, `any(.[]; . == 1)`, `all(. != 7)`, `[limit(2; .[])]`, `first(.[])`,
		`[.[]?]`, `..`, `has("a")`, `has(0)`, `in({"a": 1})`, `if . then 1 else 2 end`, `reduce .[]? as $x (0; . + 1)`, `[foreach .[]? as $x (0; . + 1)]`, `. // 1`, `not`, `env`, `$ENV`, `-(.)`, `abs`, `pow(2; 3)`,
	}
	for _, re := range []string{`a`, `a*`, `^`, `$`, `\\b`, `(a)|(b)`, `(?<x>[ab])(?<y>.)?`, `ж`, `.`, `^a`, `(?m)^.`, `a|`, `x`, `(`} {
		for _, f := range []string{`test("%s")`, `[match("%s")]`, `[match("%s"; "g")]`, `[match("%s"; "gi")]`, `capture("%s")`, `[scan("%s")]`, `[splits("%s")]`, `split("%s"; null)`,
			`sub("%s"; "-")`, `gsub("%s"; "<\(.x)>")`, `[gsub("%s"; "1", "2")]`, `[gsub("%s"; empty)]`, `gsub("%s"; 1)`, `sub("%s"; "q"; "gm")`, `test(["%s", "i"])`, `test("%s"; "q")`} {
			exprs = append(exprs, fmt.Sprintf(f, re))
		}
	}
	for _, expr := range exprs {
		theirs, err := gojq.Parse(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		ours, err := compileJQCondition(expr)
		if err != nil {
			if !strings.Contains(expr, "|=") {
				t.Errorf("%s: %v", expr, err)
			}
			continue
		}
		for _, text := range values {
			dec := json.NewDecoder(strings.NewReader(text))
			dec.UseNumber()
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Fatal(err)
			}
			want := results(theirs.Run(v))
			ours.conditionWorkMeter = newConditionWorkMeter(t.Context())
			got := results(ours.code.RunWithContext(ours.conditionWorkMeter, v))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of %s (-jq +ours):\n%s", expr, text, diff)
			}
		}
	}
}

// results returns what an expression yields as text; errors are all alike.
func results(it gojq.Iter) (out []string) {
	for range 1000 {
		v, ok := it.Next()
		if !ok {
			break
		}
		if _, failed := v.(error); failed {
			return append(out, "error")
		}
		b, err := gojq.Marshal(v)
		if err != nil {
			return append(out, err.Error())
		}
		out = append(out, string(b))
	}
	return out
}

// Matches are those of the library, for any expression and text.
func TestMatchesAreTheLibrarys(t *testing.T) {
	t.Parallel()
	letters := []string{"a", "b", "ж", "\n", "a", "(a)", "(b|)", "a*", "b+?", "^", "$", `\b`, `\B`, ".", "|", "(?:ab)?", "[^a]", "(?m:^b)", "(a|ab)(b)?", `\A`}
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) string {
		var b strings.Builder
		for range rnd.IntN(n) {
			b.WriteString(letters[rnd.IntN(len(letters))])
		}
		return b.String()
	}
	query, err := gojq.Parse(`. as [$s, $re] | $s | [match($re; "g")]`)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := gojq.Compile(query)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := compileJQCondition(`. as [$s, $re] | $s | [match($re; "g")]`)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		re, text := pick(6), strings.Repeat(strings.NewReplacer("(", "", ")", "", "|", "", "*", "", "?", "", "\\", "").Replace(pick(8)), 1+rnd.IntN(3))
		if _, err := regexp.Compile(re); err != nil {
			continue
		}
		ours.conditionWorkMeter = newConditionWorkMeter(t.Context())
		v := []any{text, re}
		if diff := cmp.Diff(results(theirs.Run(v)), results(ours.code.RunWithContext(ours.conditionWorkMeter, v))); diff != "" {
			t.Fatalf("%q in %q (-jq +ours):\n%s", re, text, diff)
		}
	}
}

func BenchmarkCompileWhen(b *testing.B) {
	for b.Loop() {
		if _, err := compileJQCondition(`.action.type == "x"`); err != nil {
			b.Fatal(err)
		}
	}
}

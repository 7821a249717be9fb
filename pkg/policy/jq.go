package policy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// A condition is a jq expression in which the work of every step is bounded. jq's own functions do
// not check a deadline, and their input comes from the agent: some take quadratic time or turn a
// few bytes into gigabytes. So a prelude redefines these functions: each first pays the meter for
// its work. Operators are not functions, so those in the expression are rewritten into calls.
//
// The tables cover all functions of jq that are not listed in unmeteredJQFunctions; a test compares them
// with the library's list.

// jqFunctionsRefusedInConditions are functions that conditions may not call: they depend on more than the action, change values, or
// have a step without a bound.
var jqFunctionsRefusedInConditions = []string{
	"now/0", "localtime/0", "gmtime/0", "mktime/0", "strftime/1", "strflocaltime/1", "strptime/1",
	"todate/0", "fromdate/0", "todateiso8601/0", "fromdateiso8601/0",
	"input/0", "inputs/0", "debug/1", "halt/0", "halt_error/0", "halt_error/1", "modulemeta/0", "builtins/0",
	"setpath/2", "delpaths/1", "del/1", "pick/1",
	"tostream/0", "fromstream/1", "truncate_stream/1", "transpose/0", "combinations/0", "combinations/1",
	"INDEX/1", "INDEX/2", "JOIN/2", "JOIN/3", "JOIN/4", "jn/2", "yn/2",
}

// jqFunctionWorkPerByte is the price of a function, as a multiple of the size of its input.
var jqFunctionWorkPerByte = map[string]int{
	"keys/0": 2, "length/0": 1, "utf8bytelength/0": 1, "reverse/0": 1, "add/0": 1, "min/0": 1, "max/0": 1,
	"tostring/0": 2, "tojson/0": 2, "toboolean/0": 1,
	"explode/0": 8, "implode/0": 1, "ascii_downcase/0": 1, "ascii_upcase/0": 1,
	"ltrim/0": 1, "rtrim/0": 1, "trim/0": 1, "to_entries/0": 2, "from_entries/0": 2,
	"flatten/0": 1, "flatten/1": 1, "error/0": 1, "error/1": 1,
	"startswith/1": 1, "endswith/1": 1, "ltrimstr/1": 1, "rtrimstr/1": 1, "trimstr/1": 1,
	"split/1": 8, "bsearch/1": 1, "format/1": 4,
}

// jqFunctionRedefinitions redefine the jq functions whose work is not a fixed multiple of their input's size, so
// that this work counts against the limit of the condition.
var jqFunctionRedefinitions = []struct{ names, def string }{
	{"sort/0", `def sort: _sorting | _sort_by(.);`},
	{"unique/0", `def unique: _sorting | _unique_by(.);`},
	{"sort_by/1", `def sort_by(f): . as $v | map([f]) | _sorting as $k | $v | _sort_by($k);`},
	{"group_by/1", `def group_by(f): . as $v | map([f]) | _sorting as $k | $v | _group_by($k);`},
	{"unique_by/1", `def unique_by(f): . as $v | map([f]) | _sorting as $k | $v | _unique_by($k);`},
	{"min_by/1", `def min_by(f): . as $v | map([f]) | _paid(1) as $k | $v | _min_by($k);`},
	{"max_by/1", `def max_by(f): . as $v | map([f]) | _paid(1) as $k | $v | _max_by($k);`},
	{"add/1", `def add(f): [f] | _paid(1) | add;`},
	{"join/1", `def _jq_join($x): join($x); def join($x): _joining($x) | _jq_join($x);`},
	{"contains/1", `def _jq_contains($x): contains($x); def contains($x): _product($x) | _jq_contains($x);`},
	{"inside/1", `def _jq_inside($x): inside($x); def inside($x): _product($x) | _jq_inside($x);`},
	{"indices/1", `def _jq_indices($x): indices($x); def indices($x): if _texts($x) then _positions($x) else _product($x) | _jq_indices($x) end;`},
	{"index/1", `def _jq_index($x): index($x); def index($x): if _texts($x) then _positions($x)[0] else _product($x) | _jq_index($x) end;`},
	{"rindex/1", `def _jq_rindex($x): rindex($x); def rindex($x): if _texts($x) then _positions($x)[-1] else _product($x) | _jq_rindex($x) end;`},
	{"getpath/1", `def _jq_getpath($p): getpath($p); def getpath($p): (($p | arrays | .[]) | _key | empty), _jq_getpath($p);`},
	{"path/1", `def _jq_path(f): path(f); def path(f): _jq_path(f) | _paid(1);`},
	{"paths/0 paths/1", `def paths: path(..) | select(. != []); def paths(f): path(.. | select(f)) | select(. != []);`},
	{"tonumber/0", `def _jq_tonumber: tonumber; def tonumber: _short | _jq_tonumber;`},
	{"fromjson/0", `def _jq_fromjson: fromjson; def fromjson: _paid(8) | _jq_fromjson | _short;`},
	{"IN/1 IN/2", `def IN(s): any(_op_equal(.; s); .); def IN(src; s): any(src | _op_equal(s; .); .);`},
	{"match/1 match/2 test/1 test/2 capture/1 capture/2 scan/1 scan/2 splits/1 splits/2 split/2 sub/2 sub/3 gsub/2 gsub/3", `
def match($re; $flags): _find($re; $flags; false)[];
def match($re): if $re | type == "array" then match($re[0]; $re[1]) else match($re; null) end;
def test($re; $flags): _find($re; $flags; true);
def test($re): if $re | type == "array" then test($re[0]; $re[1]) else test($re; null) end;
def capture($re; $flags): match($re; $flags) | .captures | _captures;
def capture($re): if $re | type == "array" then capture($re[0]; $re[1]) else capture($re; null) end;
def scan($re; $flags): match($re; $flags + "g") | if .captures == [] then .string else [.captures[].string] end;
def scan($re): scan($re; null);
def splits($re; $flags): _parts($re; $flags + "g") | .parts[].before, .rest;
def splits($re): splits($re; null);
def split($re; $flags): [splits($re; $flags)];
def sub($re; str; $flags): . as $whole | _parts($re; $flags) as {$parts, $rest}
	| [$parts[] | {before, out: [.captures | _captures | str]}] as $all
	| ([$all[].out | length] | max // 0) as $n
	| if $n == 0 then $whole
	  else range($n) as $i | [($all[] | select(.out | length > $i) | .before, .out[$i]), $rest] | _paid(1) | add end;
def sub($re; str): sub($re; str; null);
def gsub($re; str; $flags): sub($re; str; $flags + "g");
def gsub($re; str): sub($re; str; "g");`},
}

// unmeteredJQFunctions are the jq functions whose work is not counted against the limit of a condition:
// each of their steps takes bounded time for any input, or they only call functions whose work is
// counted.
var unmeteredJQFunctions = strings.Fields(`
	empty/0 not/0 select/1 map/1 map_values/1 recurse/0 recurse/1 recurse/2 with_entries/1 while/2 until/2 repeat/1
	range/1 range/2 range/3 arrays/0 objects/0 iterables/0 booleans/0 numbers/0 finites/0 normals/0 strings/0 nulls/0
	values/0 scalars/0 walk/1 first/0 first/1 last/0 last/1 isempty/1 all/0 all/1 all/2 any/0 any/1 any/2 limit/2 skip/2
	nth/1 nth/2 type/0 has/1 in/1 abs/0 env/0
	sin/0 cos/0 tan/0 asin/0 acos/0 atan/0 sinh/0 cosh/0 tanh/0 asinh/0 acosh/0 atanh/0 floor/0 round/0 nearbyint/0 rint/0
	ceil/0 trunc/0 significand/0 fabs/0 sqrt/0 cbrt/0 exp/0 exp10/0 exp2/0 expm1/0 frexp/0 modf/0 log/0 log10/0 log1p/0
	log2/0 logb/0 gamma/0 tgamma/0 lgamma/0 erf/0 erfc/0 j0/0 j1/0 y0/0 y1/0 atan2/2 copysign/2 drem/2 fdim/2 fmax/2
	fmin/2 fmod/2 hypot/2 ldexp/2 nextafter/2 nexttoward/2 remainder/2 scalb/2 scalbln/2 pow/2 fma/3
	infinite/0 isfinite/0 isinfinite/0 nan/0 isnan/0 isnormal/0`)

// meteredOperatorFunctions are the operators whose work is counted against the limit of a condition, with
// the name of the function that replaces each. The right operand is the function's first argument,
// because jq evaluates it first.
var meteredOperatorFunctions = map[gojq.Operator]string{
	gojq.OpAdd: "add", gojq.OpSub: "subtract", gojq.OpMul: "multiply", gojq.OpDiv: "divide", gojq.OpMod: "modulo",
	gojq.OpEq: "equal", gojq.OpNe: "notequal", gojq.OpGt: "greater", gojq.OpLt: "less", gojq.OpGe: "greatereq", gojq.OpLe: "lesseq",
}

// A jqDefinitionGroup is a group of definitions that is put before an expression that needs one of them.
type jqDefinitionGroup struct {
	definitions         []*gojq.FuncDef
	calledFunctionNames map[string]bool
}

// workMeteredJQFunctionDefinitions returns the definitions that replace jq's functions and operators, to charge for or
// refuse them. Each definition calls only earlier ones.
var workMeteredJQFunctionDefinitions = sync.OnceValues(func() ([]jqDefinitionGroup, error) {
	var all []jqDefinitionGroup
	add := func(text string, pays bool) error {
		q, err := gojq.Parse(text + " .")
		if err == nil && pays {
			err = insertMeterCalls(reflect.ValueOf(q))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		s := jqDefinitionGroup{q.FuncDefs, map[string]bool{}}
		collectJQFunctionNames(reflect.ValueOf(q), s.calledFunctionNames, map[string]bool{})
		all = append(all, s)
		return nil
	}
	var errs []error
	for op, name := range meteredOperatorFunctions {
		errs = append(errs, add(fmt.Sprintf("def _op_%s($r; $l): _before_%[1]s($l; $r) | $l %s $r;", name, op), false))
	}
	for _, fn := range jqFunctionsRefusedInConditions {
		name, params := functionSignature(fn)
		errs = append(errs, add(fmt.Sprintf("def %s%s: error(%q);", name, params, name+notAvailable), false))
	}
	for fn, times := range jqFunctionWorkPerByte {
		name, params := functionSignature(fn)
		pay := fmt.Sprintf("_paid(%d) | _jq_%s", times, name)
		if params != "" {
			pay = fmt.Sprintf("_paid(%d) | ($a | _paid(%[1]d)) as $a | _jq_%s($a)", times, name)
		}
		errs = append(errs, add(fmt.Sprintf("def _jq_%s%s: %[1]s%s; def %[1]s%[2]s: %[4]s;", name, params, params, pay), false))
	}
	for _, w := range jqFunctionRedefinitions {
		errs = append(errs, add(w.def, true))
	}
	return all, errors.Join(errs...)
})

// prependNeededJQDefinitions puts the definitions that an expression needs in front of it.
func prependNeededJQDefinitions(q *gojq.Query) error {
	all, err := workMeteredJQFunctionDefinitions()
	if err != nil {
		return err
	}
	called := map[string]bool{}
	collectJQFunctionNames(reflect.ValueOf(q), called, map[string]bool{})
	for i := len(all) - 1; i >= 0; i-- {
		needed := slices.ContainsFunc(all[i].definitions, func(d *gojq.FuncDef) bool {
			return called[fmt.Sprintf("%s/%d", d.Name, len(d.Args))]
		})
		if needed {
			q.FuncDefs = append(slices.Clone(all[i].definitions), q.FuncDefs...)
			maps.Copy(called, all[i].calledFunctionNames)
		}
	}
	return nil
}

const notAvailable = " is not available in a condition"

// functionSignature returns the name and the parameters of a function such as "has/1".
func functionSignature(fn string) (name, params string) {
	name, arity, _ := strings.Cut(fn, "/")
	if arity == "0" {
		return name, ""
	}
	return name, "($" + strings.Join(strings.Split("abcdefgh"[:arity[0]-'0'], ""), "; $") + ")"
}

// insertMeterCalls rewrites an expression so that steps that are not function calls, such as operators,
// pay the meter too.
func insertMeterCalls(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if err := insertMeterCalls(v.Elem()); err != nil {
			return err
		}
		switch n := v.Interface().(type) {
		case *gojq.Query:
			return insertQueryMeterCalls(n)
		case *gojq.Term:
			insertTermMeterCalls(n)
		case *gojq.Index:
			if !n.IsSlice && n.Start != nil {
				n.Start = newPipeQuery(n.Start, newFunctionCallQuery("_key"))
			}
		case *gojq.PatternObject:
			if n.KeyQuery != nil {
				n.KeyQuery = newPipeQuery(n.KeyQuery, newFunctionCallQuery("_key"))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := insertMeterCalls(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := insertMeterCalls(v.Index(i)); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func insertQueryMeterCalls(q *gojq.Query) error {
	if q.Op >= gojq.OpAssign {
		return fmt.Errorf("%s%s, which cannot change values", q.Op, notAvailable)
	}
	if name, ok := meteredOperatorFunctions[q.Op]; ok {
		q.Term = newFunctionCallQuery("_op_"+name, q.Right, q.Left).Term
		q.Left, q.Op, q.Right = nil, 0, nil
	}
	return nil
}

// insertTermMeterCalls rewrites formats, such as @sh, and string interpolations so that the size of
// their input is counted against the condition's work limit.
func insertTermMeterCalls(t *gojq.Term) {
	const times = "4" // escaping can lengthen a text up to this factor
	if t.Str != nil {
		for i, q := range t.Str.Queries {
			if q.Term == nil || q.Term.Str == nil {
				t.Str.Queries[i] = newPipeQuery(q, newFunctionCallQuery("_paid", newNumberLiteralQuery(times)))
			}
		}
		return
	}
	if t.Type == gojq.TermTypeFormat {
		format := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFormat, Format: t.Format}}
		t.Type, t.Format, t.Query = gojq.TermTypeQuery, "", newPipeQuery(newFunctionCallQuery("_paid", newNumberLiteralQuery(times)), format)
	}
}

func newFunctionCallQuery(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func newNumberLiteralQuery(number string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: number}}
}

// newPipeQuery returns left | right in parentheses.
func newPipeQuery(left, right *gojq.Query) *gojq.Query {
	q := &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: q}}
}

// collectJQFunctionNames collects the functions that an expression calls and those it defines.
func collectJQFunctionNames(jqSyntaxNode reflect.Value, calledNames, definedNames map[string]bool) {
	switch jqSyntaxNode.Kind() {
	case reflect.Pointer:
		if jqSyntaxNode.IsNil() {
			return
		}
		switch n := jqSyntaxNode.Interface().(type) {
		case *gojq.Func:
			calledNames[fmt.Sprintf("%s/%d", n.Name, len(n.Args))] = true
		case *gojq.FuncDef:
			definedNames[fmt.Sprintf("%s/%d", n.Name, len(n.Args))] = true
		}
		collectJQFunctionNames(jqSyntaxNode.Elem(), calledNames, definedNames)
	case reflect.Struct:
		for i := range jqSyntaxNode.NumField() {
			collectJQFunctionNames(jqSyntaxNode.Field(i), calledNames, definedNames)
		}
	case reflect.Slice:
		for i := range jqSyntaxNode.Len() {
			collectJQFunctionNames(jqSyntaxNode.Index(i), calledNames, definedNames)
		}
	default:
	}
}

// parseWhen parses a jq expression, and inserts calls that count its work, so that the work can be
// limited. It refuses functions that conditions must not use.
func parseWhen(expr string) (*gojq.Query, error) {
	q, err := gojq.Parse(expr)
	if err != nil {
		return nil, err
	}
	called, defined := map[string]bool{}, map[string]bool{}
	collectJQFunctionNames(reflect.ValueOf(q), called, defined)
	for fn := range called {
		if strings.HasPrefix(fn, "_") || slices.Contains(jqFunctionsRefusedInConditions, fn) && !defined[fn] {
			name, _, _ := strings.Cut(fn, "/")
			return nil, errors.New(name + notAvailable)
		}
	}
	if err := insertMeterCalls(reflect.ValueOf(q)); err != nil {
		return nil, err
	}
	return q, prependNeededJQDefinitions(q)
}

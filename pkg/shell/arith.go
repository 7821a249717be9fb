package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// arithm returns the value of an arithmetic expression and walks the command
// substitutions in it.
func (s *state) arithm(x syntax.ArithmExpr) abstract.Value {
	if x == nil {
		return abstract.Value{}
	}
	mark := len(s.vars)
	n, ok := s.number(x)
	names := arithmNames(x, nil)
	if len(names) > 0 && !ok { // some part of it may not be evaluated
		since := s.vars[min(mark, len(s.vars)):]
		lost := slices.ContainsFunc(since, func(b binding) bool { return b.kind == forgotten })
		s.vars = s.vars[:min(mark, len(s.vars))]
		if lost {
			s.forget()
		}
		for _, name := range names {
			s.countName(name, abstract.Number("$((…))"))
		}
	}
	if ok {
		return abstract.Lit(strconv.FormatInt(n, 10))
	}
	return abstract.Number("$((…))")
}

// arithmCommand is arithm for a command of its own, behind an error of which bash goes on.
func (s *state) arithmCommand(x syntax.ArithmExpr) abstract.Value {
	mark, failures := len(s.vars), s.failures
	v := s.arithm(x)
	if s.failures > failures {
		s.weaken(mark)
	}
	return v
}

// arithmText evaluates text as arithmetic. A subscript in it may hold a
// command substitution, which a shell runs: a[$(id)].
func (s *state) arithmText(text string) abstract.Value {
	if strings.TrimSpace(text) == "" {
		return abstract.Lit("0")
	}
	s.codeIn(text, 0)
	base := 0
	if octal(text) && s.asZsh() {
		base = 10
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(text), base, 64); err == nil && !strings.ContainsAny(text, "_oObB") {
		return abstract.Lit(strconv.FormatInt(n, 10))
	}
	if strings.ContainsAny(text, "`$") && strings.Contains(text, "[") {
		s.nested("echo $(("+text+"))", s.span(0, len(s.text)))
	}
	if b, ok := s.lookup(text); ok && !b.array && b.kind != unset && b.val.Known() && b.val.Text != text && s.inFunc < 4 {
		s.inFunc++
		v := s.arithmText(b.val.Text)
		s.inFunc--
		return v
	} else if ok && !b.array && b.kind != unset && b.val.Known() { // it is in it itself
		s.failsLine()
	}
	if strings.ContainsAny(text, "=") || strings.Contains(text, "++") || strings.Contains(text, "--") {
		s.forget() // it assigns something
	}
	if !syntax.ValidName(text) {
		s.failsLine() // it may be no expression
	}
	return abstract.Short("$(("+text+"))", 0)
}

// codeIn walks what arithmetic runs that reads variables which a text names: what these hold
// is arithmetic once more, and a subscript in it may run commands.
func (s *state) codeIn(text string, depth int) {
	if depth > 4 || !s.subscripts {
		return
	}
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') }) {
		var values []string
		for i := range s.vars {
			if b := &s.vars[i]; b.name == name && syntax.ValidName(name) && s.step(1) {
				values = append(values, texts(held(*b))...)
			}
		}
		for _, v := range values {
			if runsInSubscript(v) {
				s.nested("echo $(("+v+"))", s.span(0, len(s.text)))
			} else if v != text {
				s.codeIn(v, depth+1)
			}
		}
	}
}

// held returns what a binding gives its variable.
func held(b binding) []abstract.Value { return append(members(b), b.val) }

// runsInSubscript reports whether a text that is read as arithmetic may run commands.
func runsInSubscript(text string) bool {
	_, sub, ok := strings.Cut(text, "[")
	return ok && hasCommand(sub)
}

// count assigns a number to a variable, or to a member of an array.
func (s *state) count(w *syntax.Word, v abstract.Value) {
	name, member := counted(w)
	switch {
	case name == "":
		s.forget()
	case member:
		to, ok := s.target(name)
		if name = to; !ok {
			s.forget()
			return
		}
		old, _ := s.attribute(name)
		s.bind(binding{name: name, array: true, unsure: true, kind: old.lasting(), elems: append(slices.Clone(old.elems), element{val: v}, element{val: old.val})})
	default:
		s.countName(name, v)
	}
}

// counted returns the variable that stands on the left side in arithmetic, and whether one
// of its members does.
func counted(w *syntax.Word) (name string, member bool) {
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Index != nil && p.Param != nil {
			return p.Param.Value, true
		}
	}
	return w.Lit(), false
}

// countName assigns a number. In zsh, a variable that was not there is an integer then.
func (s *state) countName(name string, v abstract.Value) {
	b, had := s.attribute(name)
	if had && b.array && s.asZsh() { // it may stay one, or become an integer
		s.bind(binding{name: name, val: vague("$"+name, append(members(b), v)...), kind: mixed})
		return
	}
	had = had && b.kind != unset && !b.weak
	s.assign(name, v)
	if last := len(s.vars) - 1; !had && last >= 0 && s.vars[last].name == name && s.asZsh() {
		s.vars[last].kind, s.vars[last].counts = mixed, true
	}
}

// octal reports whether a number begins with 0, which is decimal in zsh.
func octal(text string) bool {
	text = strings.TrimLeft(text, " \t\n+-")
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

// subscript runs what the subscript of an array element runs when a builtin is
// given the element's name.
func (s *state) subscript(name string) {
	if strings.Contains(name, "[") {
		s.arithmText(name)
	}
}

func (s *state) number(x syntax.ArithmExpr) (int64, bool) {
	if !s.step(1) || !s.enter(s.span(0, 0)) {
		return 0, false
	}
	defer s.leave()
	switch x := x.(type) {
	case *syntax.Word:
		v := s.word(x)
		if !v.Known() {
			s.noNumber(v)
			return 0, false
		}
		if v.Text == "" {
			s.failsLine()
			return 0, false
		}
		name := v.Text
		s.codeIn(name, 0)
		if b, ok := s.lookup(name); ok && syntax.ValidName(name) {
			if b.array && s.asZsh() { // all members
				s.mayFail()
				return 0, false
			}
			v = s.first(b, "$"+v.Text)
			if v.Known() && v.Text == "" {
				return 0, true
			}
		} else if syntax.ValidName(v.Text) {
			return 0, false
		}
		if !v.Known() {
			s.noNumber(v)
			s.mayAssign(name)
			return 0, false
		}
		n := s.arithmText(v.Text)
		if !n.Known() {
			s.mayFail()
			return 0, false
		}
		i, err := strconv.ParseInt(n.Text, 10, 64)
		return i, err == nil
	case *syntax.ParenArithm:
		return s.number(x.X)
	case *syntax.UnaryArithm:
		return s.unary(x)
	case *syntax.BinaryArithm:
		if x.Op == syntax.Comma { // an error in dash
			s.left.shell = true
		}
		return s.binaryNumber(x)
	case *syntax.FlagsArithm: // counts words, or looks for text
		s.number(x.X)
		return 0, false
	}
	return 0, false
}

// mayAssign notes that what a name may hold is arithmetic that assigns something.
func (s *state) mayAssign(name string) {
	if slices.ContainsFunc(s.vars, func(b binding) bool {
		return b.name == name && (strings.ContainsAny(b.val.Text, "=[") || strings.Contains(b.val.Text, "++") || strings.Contains(b.val.Text, "--"))
	}) {
		s.forget()
	}
}

// counts notes that what is assigned to an integer is arithmetic, which may fail.
func (s *state) counts(name string, kind bindingKind, v abstract.Value) {
	switch {
	case kind != integer && !(kind == mixed && (s.zsh || slices.ContainsFunc(s.vars, func(b binding) bool { return b.name == name && b.kind == integer }))):
	case v.Known():
		s.arithmText(v.Text)
	default:
		s.noNumber(v)
	}
}

// noNumber notes that a value of which arithmetic wants the number may be none, unless it is
// one or comes from outside of the text.
func (s *state) noNumber(v abstract.Value) {
	if v.Text != "*" && !inherited(v) {
		s.failsLine()
	}
}

func (s *state) unary(x *syntax.UnaryArithm) (int64, bool) {
	n, ok := s.number(x.X)
	if !ok {
		return 0, false
	}
	switch x.Op {
	case syntax.Not:
		return truth(n == 0), true
	case syntax.BitNegation:
		return ^n, true
	case syntax.Minus:
		return -n, true
	case syntax.Plus:
		return n, true
	case syntax.Inc, syntax.Dec:
		after := n + 1
		if x.Op == syntax.Dec {
			after = n - 1
		}
		if w, ok := x.X.(*syntax.Word); ok {
			s.count(w, abstract.Lit(strconv.FormatInt(after, 10)))
		}
		if x.Post {
			return n, true
		}
		return after, true
	}
	return 0, false
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *state) binaryNumber(x *syntax.BinaryArithm) (int64, bool) {
	if x.Op != syntax.Assgn && !compound(x.Op) && (len(arithmNames(x.X, nil)) > 0 && !digits(x.Y) || len(arithmNames(x.Y, nil)) > 0 && !digits(x.X)) {
		s.number(x.X)
		s.number(x.Y)
		return 0, false // shells differ in when they read what stands beside an assignment
	}
	switch x.Op {
	case syntax.Assgn:
		n, ok := s.number(x.Y)
		if w, isWord := x.X.(*syntax.Word); isWord {
			s.word(w) // its subscript
			v := abstract.Number("$((…))")
			if ok {
				v = abstract.Lit(strconv.FormatInt(n, 10))
			}
			s.count(w, v)
		}
		return n, ok
	case syntax.TernQuest:
		c, ok := s.number(x.X)
		branches, isPair := x.Y.(*syntax.BinaryArithm)
		if !isPair {
			return 0, false
		}
		runs, other := branches.X, branches.Y
		if ok && c == 0 {
			runs, other = other, runs
		}
		a, okA := s.number(runs)
		mark := len(s.vars)
		s.number(other)
		s.weaken(mark)
		return a, ok && okA
	case syntax.AndArit, syntax.OrArit:
		a, ok := s.number(x.X)
		if ok && (a != 0) == (x.Op == syntax.OrArit) {
			mark := len(s.vars)
			s.number(x.Y)
			s.weaken(mark) // busybox does what it skips
			return truth(a != 0), true
		}
		b, okB := s.number(x.Y)
		return truth(b != 0), ok && okB
	}
	a, okA := s.number(x.X)
	b, okB := s.number(x.Y)
	if !okA || !okB {
		return 0, false
	}
	n, ok := calculate(x.Op, a, b)
	if !ok {
		s.failsLine()
	}
	if compound(x.Op) && ok {
		if w, isWord := x.X.(*syntax.Word); isWord {
			s.count(w, abstract.Lit(strconv.FormatInt(n, 10)))
		}
	}
	return n, ok
}

// digits reports whether an expression is a number, or two of them behind ?.
func digits(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		_, err := strconv.Atoi(x.Lit())
		return err == nil
	case *syntax.BinaryArithm:
		return x.Op == syntax.TernColon && digits(x.X) && digits(x.Y)
	}
	return false
}

// compound reports whether an operator assigns, as += does.
func compound(op syntax.BinAritOperator) bool {
	return op >= syntax.AddAssgn && op <= syntax.PowAssgn
}

func calculate(op syntax.BinAritOperator, a, b int64) (int64, bool) {
	switch op {
	case syntax.Add, syntax.AddAssgn:
		return a + b, true
	case syntax.Sub, syntax.SubAssgn:
		return a - b, true
	case syntax.Mul, syntax.MulAssgn:
		return a * b, true
	case syntax.Quo, syntax.QuoAssgn:
		if b == 0 {
			return 0, false
		}
		return a / b, true
	case syntax.Rem, syntax.RemAssgn:
		if b == 0 {
			return 0, false
		}
		return a % b, true
	case syntax.Pow:
		if b < 0 || b > 63 {
			return 0, false
		}
		n := int64(1)
		for range b {
			n *= a
		}
		return n, true
	case syntax.Eql:
		return truth(a == b), true
	case syntax.Neq:
		return truth(a != b), true
	case syntax.Gtr:
		return truth(a > b), true
	case syntax.Lss:
		return truth(a < b), true
	case syntax.Leq:
		return truth(a <= b), true
	case syntax.Geq:
		return truth(a >= b), true
	case syntax.And, syntax.AndAssgn:
		return a & b, true
	case syntax.Or, syntax.OrAssgn:
		return a | b, true
	case syntax.Xor, syntax.XorAssgn:
		return a ^ b, true
	case syntax.Shr, syntax.ShrAssgn:
		return a >> (uint(b) & 63), true
	case syntax.Shl, syntax.ShlAssgn:
		return a << (uint(b) & 63), true
	case syntax.Comma:
		return b, true
	}
	return 0, false
}

// arithmNames returns the variables that an expression changes.
func arithmNames(x syntax.ArithmExpr, names []string) []string {
	switch x := x.(type) {
	case *syntax.UnaryArithm:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.Inc || x.Op == syntax.Dec) {
			name, _ := counted(w)
			names = append(names, name)
		}
	case *syntax.BinaryArithm:
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.Assgn || compound(x.Op)) {
			name, _ := counted(w)
			return append(names, name)
		}
		names = arithmNames(x.Y, arithmNames(x.X, names))
	case *syntax.ParenArithm:
		return arithmNames(x.X, names)
	}
	return names
}

// test walks the expansions in [[ … ]].
func (s *state) test(x syntax.TestExpr) {
	if x == nil || !s.step(1) || !s.enter(s.span(0, 0)) {
		return
	}
	defer s.leave()
	switch x := x.(type) {
	case *syntax.Word:
		s.word(x)
	case *syntax.ParenTest:
		s.test(x.X)
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && x.Op == syntax.TsVarSet {
			s.arithmText(s.word(w).Text)
			return
		}
		s.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					if v := s.word(w); v.Known() {
						s.arithmText(v.Text)
					}
				}
			}
		default:
			s.test(x.X)
			s.test(x.Y)
			if x.Op == syntax.TsReMatch {
				s.rematches()
			}
		}
	}
}

// rematches notes that variables hold what an expression has matched.
func (s *state) rematches() {
	for _, name := range [...]string{"BASH_REMATCH", "MATCH", "match"} {
		if old, bound := s.attribute(name); bound && (name == "BASH_REMATCH" || s.asZsh()) {
			v := abstract.Variable(name, abstract.Foreign)
			s.bind(binding{name: name, val: v, array: old.array, unsure: true, elems: []element{{"0", v}}, weak: true})
		}
	}
}

package shell

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// arithm returns the value of an arithmetic expression: a number, known if all operands are literals. It walks the
// commands in the expression and records that its assignments may happen.
func (s *state) arithm(x syntax.ArithmExpr) abstract.Value {
	if x == nil {
		return abstract.Value{}
	}
	if n, ok := calculate(x); ok {
		return abstract.Lit(strconv.FormatInt(n, 10))
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			s.operandOf(n)
			return false
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				s.counts(n.X)
			}
		case *syntax.BinaryArithm:
			switch op := n.Op; {
			case op == syntax.Assgn || op >= syntax.AddAssgn && op <= syntax.PowAssgn:
				s.counts(n.X)
			case op == syntax.Quo || op == syntax.Rem || op == syntax.Comma: // division by 0, or a syntax error in dash
				s.mayFailLine()
			}
		}
		return !s.gaveUp
	})
	return abstract.Number("$((…))")
}

// operandOf walks an operand of arithmetic. The value of a variable in it is evaluated as arithmetic again.
func (s *state) operandOf(w *syntax.Word) {
	if name := w.Lit(); syntax.ValidName(name) {
		for _, c := range s.vars.get(name).may {
			if !c.before && !c.gone && !isDecimal(c.val) && !c.val.IsNumber() {
				s.subscriptIn(c.val, true)
				s.mayFailLine()
				s.forgetIfAssigns(c.val)
			}
		}
		return
	}
	v := s.word(w)
	s.subscriptIn(v, true)
	if !isDecimal(v) && !v.IsNumber() {
		s.mayFailLine()
		s.forgetIfAssigns(v)
	}
}

// forgetIfAssigns forgets all variables if a value that is evaluated as arithmetic may assign to a variable.
func (s *state) forgetIfAssigns(v abstract.Value) {
	if v.Known() && !syntax.ValidName(v.Text) && v.Text != "" || !v.Known() && v.Origin&^(abstract.FromVariable|abstract.FromCount) != 0 {
		s.forget()
	}
}

// counts records that the left side of an arithmetic assignment may be set to a number.
func (s *state) counts(x syntax.ArithmExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		s.forget()
		return
	}
	name := w.Lit()
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Index != nil && p.Param != nil {
			s.may(func() { s.setMember(p.Param.Value, abstract.Number("$((…))")) })
			return
		}
	}
	if !syntax.ValidName(name) {
		s.forget()
		return
	}
	fresh := slices.ContainsFunc(s.vars.get(name).may, func(c content) bool { return c.before || c.gone }) && s.asZsh() // zsh makes a new variable an integer
	s.may(func() {
		if s.assign(name, abstract.Number("$((…))")); fresh {
			v := s.vars.get(name)
			v.odd = true
			s.Shell.bind(name, v)
		}
	})
}

// arithmText walks a text that is evaluated as arithmetic.
func (s *state) arithmText(v abstract.Value) {
	s.subscriptIn(v, true)
	if !isDecimal(v) && !v.IsNumber() && v.Text != "" {
		s.nestedArithm(v)
	}
}

func (s *state) nestedArithm(v abstract.Value) {
	if v.Known() {
		s.nested("echo $(("+v.Text+"))", s.span(0, len(s.text)))
		s.forgetIfAssigns(v)
		return
	}
	if !isEnvironmentOnly(v) {
		s.forget()
	}
	s.mayFailLine()
}

// calculate returns the result of an expression of literal numbers; false if it cannot be computed.
func calculate(x syntax.ArithmExpr) (int64, bool) {
	switch x := x.(type) {
	case *syntax.Word:
		n, err := decimal(x.Lit())
		return n, err == nil
	case *syntax.ParenArithm:
		return calculate(x.X)
	case *syntax.UnaryArithm:
		n, ok := calculate(x.X)
		if x.Op == syntax.Plus {
			return n, ok
		}
		return -n, ok && x.Op == syntax.Minus
	case *syntax.BinaryArithm:
		a, ok := calculate(x.X)
		b, also := calculate(x.Y)
		if !ok || !also {
			return 0, false
		}
		switch x.Op {
		case syntax.Add:
			return a + b, true
		case syntax.Sub:
			return a - b, true
		case syntax.Mul:
			return a * b, a < 1<<31 && b < 1<<31
		case syntax.Quo:
			if b != 0 {
				return a / b, true
			}
		case syntax.Rem:
			if b != 0 {
				return a % b, true
			}
		}
	}
	return 0, false
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
			s.subscriptIn(s.word(w), true)
			return
		}
		s.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					s.arithmText(s.word(w))
				}
			}
		case syntax.AndTest, syntax.OrTest:
			s.test(x.X)
			s.may(func() { s.test(x.Y) })
		default:
			s.test(x.X)
			s.test(x.Y)
			if x.Op == syntax.TsReMatch {
				s.setRegexMatches()
			}
		}
	}
}

// setRegexMatches notes that BASH_REMATCH, MATCH and match, as far as the text sets them, may hold the matches of an
// expression.
func (s *state) setRegexMatches() {
	for _, name := range [...]string{"BASH_REMATCH", "MATCH", "match"} {
		if s.bound(name) {
			s.mayGive(name, uncomputed("$"+name))
		}
	}
}

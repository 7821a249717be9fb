package shell

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// walkArithmetic returns the value of an arithmetic expression: a number, known if all operands are literals. It walks the
// commands in the expression and records that its assignments may happen.
func (s *analysisState) walkArithmetic(x syntax.ArithmExpr) abstract.Value {
	if x == nil {
		return abstract.Value{}
	}
	if n, ok := evalLiteralArithmetic(x); ok {
		return abstract.Lit(strconv.FormatInt(n, 10))
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			s.walkArithmeticOperand(n)
			return false
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				s.recordNumberAssignment(n.X)
			}
		case *syntax.BinaryArithm:
			switch op := n.Op; {
			case op == syntax.Assgn || op >= syntax.AddAssgn && op <= syntax.PowAssgn:
				s.recordNumberAssignment(n.X)
			case op == syntax.Quo || op == syntax.Rem || op == syntax.Comma: // division by 0, or a syntax error in dash
				s.recordErrorAbortingLineOrShell()
			}
		}
		return !s.isAnalysisAborted
	})
	return abstract.UnknownNumber("$((…))")
}

// walkArithmeticOperand walks an operand of arithmetic. The value of a variable in it is evaluated as arithmetic again.
func (s *analysisState) walkArithmeticOperand(w *syntax.Word) {
	if name := w.Lit(); syntax.ValidName(name) {
		for _, c := range s.vars.get(name).possibleContents {
			if !c.isFromBeforeCommandText && !c.isUnset && !isDecimal(c.val) && !c.val.IsNumber() {
				s.walkSubscripts(c.val, true)
				s.recordErrorAbortingLineOrShell()
				s.forgetVariablesIfArithmeticAssigns(c.val)
			}
		}
		return
	}
	v := s.expandWord(w)
	s.walkSubscripts(v, true)
	if !isDecimal(v) && !v.IsNumber() {
		s.recordErrorAbortingLineOrShell()
		s.forgetVariablesIfArithmeticAssigns(v)
	}
}

// forgetVariablesIfArithmeticAssigns forgets all variables if a value that is evaluated as arithmetic may assign to a variable.
func (s *analysisState) forgetVariablesIfArithmeticAssigns(v abstract.Value) {
	if v.IsLiteral() && !syntax.ValidName(v.Text) && v.Text != "" || !v.IsLiteral() && v.Origin&^(abstract.OriginUnsetVariable|abstract.OriginArithmetic) != 0 {
		s.forgetVariables()
	}
}

// recordNumberAssignment records that the left side of an arithmetic assignment may be set to a number.
func (s *analysisState) recordNumberAssignment(x syntax.ArithmExpr) {
	w, ok := x.(*syntax.Word)
	if !ok {
		s.forgetVariables()
		return
	}
	name := w.Lit()
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Index != nil && p.Param != nil {
			s.walkCodeThatMayRun(func() { s.assignUnknownMemberOfArray(p.Param.Value, abstract.UnknownNumber("$((…))")) })
			return
		}
	}
	if !syntax.ValidName(name) {
		s.forgetVariables()
		return
	}
	fresh := slices.ContainsFunc(s.vars.get(name).possibleContents, func(c variableContent) bool { return c.isFromBeforeCommandText || c.isUnset }) && s.readsAsZsh() // zsh makes a new variable an integer
	s.walkCodeThatMayRun(func() {
		if s.assign(name, abstract.UnknownNumber("$((…))")); fresh {
			v := s.vars.get(name)
			v.canAttributesChangeValue = true
			s.Shell.setVariable(name, v)
		}
	})
}

// walkArithmeticText walks a text that is evaluated as arithmetic.
func (s *analysisState) walkArithmeticText(v abstract.Value) {
	s.walkSubscripts(v, true)
	if !isDecimal(v) && !v.IsNumber() && v.Text != "" {
		s.walkNonNumericArithmeticText(v)
	}
}

func (s *analysisState) walkNonNumericArithmeticText(v abstract.Value) {
	if v.IsLiteral() {
		s.walkNestedShellText("echo $(("+v.Text+"))", s.span(0, len(s.analyzedText)))
		s.forgetVariablesIfArithmeticAssigns(v)
		return
	}
	if !hasOnlyEnvironmentUnknowns(v) {
		s.forgetVariables()
	}
	s.recordErrorAbortingLineOrShell()
}

// evalLiteralArithmetic returns the result of an expression of literal numbers; false if it cannot be computed.
func evalLiteralArithmetic(x syntax.ArithmExpr) (int64, bool) {
	switch x := x.(type) {
	case *syntax.Word:
		n, err := parseDecimal(x.Lit())
		return n, err == nil
	case *syntax.ParenArithm:
		return evalLiteralArithmetic(x.X)
	case *syntax.UnaryArithm:
		n, ok := evalLiteralArithmetic(x.X)
		if x.Op == syntax.Plus {
			return n, ok
		}
		return -n, ok && x.Op == syntax.Minus
	case *syntax.BinaryArithm:
		a, ok := evalLiteralArithmetic(x.X)
		b, also := evalLiteralArithmetic(x.Y)
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

// walkTest walks the expansions in [[ … ]].
func (s *analysisState) walkTest(x syntax.TestExpr) {
	if x == nil || !s.spendSteps(1) || !s.enterNesting(s.span(0, 0)) {
		return
	}
	defer s.leaveNesting()
	switch x := x.(type) {
	case *syntax.Word:
		s.expandWord(x)
	case *syntax.ParenTest:
		s.walkTest(x.X)
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok && x.Op == syntax.TsVarSet {
			s.walkSubscripts(s.expandWord(w), true)
			return
		}
		s.walkTest(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range [...]syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					s.walkArithmeticText(s.expandWord(w))
				}
			}
		case syntax.AndTest, syntax.OrTest:
			s.walkTest(x.X)
			s.walkCodeThatMayRun(func() { s.walkTest(x.Y) })
		default:
			s.walkTest(x.X)
			s.walkTest(x.Y)
			if x.Op == syntax.TsReMatch {
				s.setRegexMatches()
			}
		}
	}
}

// setRegexMatches marks BASH_REMATCH, MATCH and match as unknown after a regular expression test,
// which may set them. Variables that the analysed text cannot assign are left out.
func (s *analysisState) setRegexMatches() {
	for _, name := range [...]string{"BASH_REMATCH", "MATCH", "match"} {
		if s.mayCommandTextAssign(name) {
			s.possiblyAssignWithoutCodeCheck(name, unknownValueWithTaintsOf("$"+name))
		}
	}
}

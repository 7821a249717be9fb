package shell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestForkAlone holds that nothing but fork.go and state.go puts back a field of a state that it has
// taken out before: what one part of a text knows is a Shell, and Fork and Join copy that.
func TestForkAlone(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			looked++
			if at := putsBack(fn); at.IsValid() && name != "fork.go" && name != "state.go" {
				t.Errorf("%s: %s puts back a field that it has taken out", files.Position(at), fn.Name.Name)
			}
		}
	}
	if looked < 300 {
		t.Errorf("only %d functions", looked)
	}
}

// putsBack returns where a function assigns a variable to the field that it has got it from.
func putsBack(fn *ast.FuncDecl) (at token.Pos) {
	from := map[string]string{} // the field of each variable
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i := range a.Lhs {
			switch left := a.Lhs[i].(type) {
			case *ast.Ident:
				if field := fieldOf(a.Rhs[i]); field != "" && a.Tok == token.DEFINE {
					from[left.Name] = field
				}
			case *ast.SelectorExpr:
				if v, ok := a.Rhs[i].(*ast.Ident); ok && from[v.Name] != "" && from[v.Name] == fieldOf(left) {
					at = a.Pos()
				}
			}
		}
		return true
	})
	return at
}

// fieldOf returns a field of a state as it is written, s.Shell.place, or "" for anything else.
func fieldOf(e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == "s" {
		return sel.Sel.Name
	}
	if outer := fieldOf(sel.X); outer != "" {
		return outer + "." + sel.Sel.Name
	}
	return ""
}

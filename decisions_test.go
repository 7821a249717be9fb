package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// deciding are the packages whose functions may set a decision.
var deciding = []string{"policy", "classify", "shield", "session", "evaluate", "approve"}

// TestDecisions holds that the functions that set a decision, and how many branches of
// each do, are those that ARCHITECTURE.md lists.
func TestDecisions(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, name := range deciding {
		set := token.NewFileSet()
		paths, err := filepath.Glob(filepath.Join("pkg", name, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatal(name, err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				file, err := parser.ParseFile(set, path, nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range file.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
						if n := decisionsIn(fn); n > 0 {
							found[name+"."+fn.Name.Name] += n
						}
					}
				}
			}
		}
	}
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+\\.\\w+)` \\| (\\d+) \\|").FindAllStringSubmatch(string(text), -1) {
		n := 0
		if _, err := fmt.Sscan(m[2], &n); err != nil {
			t.Fatal(err)
		}
		listed[m[1]] = n
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if listed[name] != found[name] {
			t.Errorf("%s sets a decision in %d branches, ARCHITECTURE.md says %d", name, found[name], listed[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s sets no decision, but ARCHITECTURE.md lists it", name)
	}
}

// decisionsIn counts the branches of a function that set a field named Decision or
// decision to a constant of package verdict, or return one.
func decisionsIn(fn *ast.FuncDecl) (n int) {
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.AssignStmt:
			for i, left := range x.Lhs {
				if sel, ok := left.(*ast.SelectorExpr); ok && strings.EqualFold(sel.Sel.Name, "decision") && i < len(x.Rhs) && isDecision(x.Rhs[i]) {
					n++
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := x.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "decision") && isDecision(x.Value) {
				n++
			}
		case *ast.ReturnStmt:
			for _, r := range x.Results {
				if isDecision(r) {
					n++
				}
			}
		}
		return true
	})
	return n
}

func isDecision(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "verdict" && slices.Contains([]string{"Allow", "Block", "Escalate"}, sel.Sel.Name)
}

package effect

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"slices"
	"strconv"
	"testing"
)

// Kinds names every constant of the type, so that no policy's rule is taken
// for one about a type that no one knows.
func TestKindsAreComplete(t *testing.T) {
	t.Parallel()
	n := 0
	constant := func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Kind" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if !slices.Contains(Kinds(), Kind(text)) {
			t.Errorf("Kinds lacks %s", text)
		}
		return true
	}
	for _, name := range [...]string{"effect.go", "word.go"} {
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, constant)
	}
	if n != len(Kinds()) {
		t.Errorf("%d constants, %d kinds", n, len(Kinds()))
	}
}

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of the import paths of shield.
const module = "github.com/shieldcli/shield/"

// deciding are the packages whose functions may say what is decided about an action.
var deciding = []string{"pkg/policy", "pkg/classify", "pkg/shield", "pkg/session", "pkg/evaluate", "pkg/approve", "pkg/gateway", "pkg/service", "cmd"}

// TestDecisions holds that the functions that say who may allow an action, or set a
// decision, and in how many branches, are those that ARCHITECTURE.md lists.
func TestDecisions(t *testing.T) {
	t.Parallel()
	files, exports := compiled(t)
	found := map[string]int{}
	for _, name := range deciding {
		decisionsOf(t, name, files[module+name], exports, found)
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
			t.Errorf("%s says in %d branches what is decided, ARCHITECTURE.md says %d", name, found[name], listed[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s says nothing that is decided, but ARCHITECTURE.md lists it", name)
	}
}

// compiled returns the files of the deciding packages, and where the compiled form of all that they import is.
func compiled(t *testing.T) (files map[string][]string, exports map[string]string) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", `{{.ImportPath}}|{{.Export}}|{{.Dir}}|{{join .GoFiles " "}} {{join .CgoFiles " "}}`}
	for _, name := range deciding {
		args = append(args, "./"+name)
	}
	var stderr bytes.Buffer
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	files, exports = map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSpace(line), "|")
		exports[part[0]] = part[1]
		if strings.HasPrefix(part[0], module) {
			for name := range strings.FieldsSeq(part[3]) {
				files[part[0]] = append(files[part[0]], part[2]+"/"+name)
			}
		}
	}
	return files, exports
}

// decisionsOf adds to found how often each declaration of a package uses a value of the types of
// package verdict that say what is decided, other than to compare with it.
func decisionsOf(t *testing.T, name string, paths []string, exports map[string]string, found map[string]int) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("%s has no files", name)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{FakeImportC: true, Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	pkg, err := config.Check(module+name, set, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, d := range file.Decls {
			what := declared(d)
			if n := decisionsIn(d, &info); n > 0 {
				found[pkg.Name()+"."+what] += n
			}
		}
	}
}

func declared(d ast.Decl) string {
	switch x := d.(type) {
	case *ast.FuncDecl:
		return x.Name.Name
	case *ast.GenDecl:
		if v, ok := x.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
}

// decisionsIn counts the constants of a declaration that say what is decided, and the calls that
// make such a value, apart from what is compared.
func decisionsIn(d ast.Decl, info *types.Info) (n int) {
	compared := map[ast.Node]bool{}
	ast.Inspect(d, func(node ast.Node) bool {
		if compared[node] {
			return false
		}
		switch x := node.(type) {
		case *ast.BinaryExpr:
			switch x.Op {
			case token.EQL, token.NEQ, token.LSS, token.GTR, token.LEQ, token.GEQ:
				compared[x.X], compared[x.Y] = isConstant(x.X, info), isConstant(x.Y, info)
			}
		case *ast.CaseClause:
			for _, e := range x.List {
				compared[e] = isConstant(e, info)
			}
		case *ast.Ident:
			if decides(info.Uses[x]) {
				n++
			}
		}
		return true
	})
	return n
}

func isConstant(e ast.Expr, info *types.Info) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && decides(info.Uses[sel.Sel])
}

// decides reports whether an object is a constant that says what is decided, or a function or
// type that makes a value of that.
func decides(o types.Object) bool {
	if o == nil || o.Pkg() == nil || o.Pkg().Path() != module+"pkg/verdict" {
		return false
	}
	switch x := o.(type) {
	case *types.Const:
		return x.Name() != "NoDecision" && slices.Contains([]string{"Decision", "ApprovalAuthority"}, typeName(x.Type()))
	case *types.Func:
		return x.Name() == "AuthorityOfTier"
	}
	return false
}

func typeName(t types.Type) string {
	if named, ok := t.(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

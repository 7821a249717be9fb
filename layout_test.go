package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sources returns the parsed Go files that are neither tests nor generated.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "build" || strings.HasPrefix(d.Name(), "_") || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(text, []byte("// Code generated")) {
			return nil
		}
		f, err := parser.ParseFile(set, path, text, parser.ParseComments)
		files[filepath.ToSlash(path)] = f
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestProcessIsTouchedInMainOnly holds the rule that everything below main.go
// is given its streams, environment and clock.
func TestProcessIsTouchedInMainOnly(t *testing.T) {
	t.Parallel()
	forbidden := map[string]string{
		"os.Exit": "", "os.Stdin": "", "os.Stdout": "", "os.Stderr": "", "os.Getenv": "", "os.LookupEnv": "", "os.Environ": "",
		"time.Now": "", "fmt.Print": "", "fmt.Printf": "", "fmt.Println": "", "log.Print": "", "log.Printf": "", "log.Println": "", "log.Fatal": "", "log.Fatalf": "",
	}
	for path, f := range sources(t) {
		if path == "main.go" || f.Name.Name == "main" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || pkg.Obj != nil {
				return true
			}
			name := pkg.Name + "." + sel.Sel.Name
			if _, bad := forbidden[name]; bad && !allowedTouch[path+" "+name] {
				t.Errorf("%s uses %s; take it as a parameter", path, name)
			}
			return true
		})
	}
}

// allowedTouch lists the exceptions.
var allowedTouch = map[string]bool{
	// The defaults of libraries that were given no clock.
	"pkg/shield/pipeline.go time.Now": true,
	"pkg/approve/approve.go time.Now": true,
	// Linked into tests only, where there is no main.go.
	"internal/reexec/reexec.go os.Exit":      true,
	"internal/reexec/reexec.go os.LookupEnv": true,
	"internal/reexec/reexec.go os.Environ":   true,
	"internal/reexec/reexec.go os.Stderr":    true,
}

// layers lists the packages from the bottom up: one imports only those of
// lines above its own.
var layers = [][]string{
	{"internal/suggest", "pkg/knowledge"},
	{"internal/allocated", "internal/canonjson", "internal/flock", "internal/launch", "internal/owner", "internal/prefilter", "internal/reexec", "internal/subprocess", "internal/term", "internal/tokenizer", "internal/yamlfile", "models", "policies"},
	{"internal/ortlib", "internal/redact"},
	{"pkg/action", "pkg/effect"},
	{"pkg/verdict", "pkg/shell/command", "pkg/shell/dialect", "pkg/host", "pkg/modelstore", "pkg/state"},
	{"pkg/shell", "pkg/audit", "pkg/config", "internal/hostile"},
	{"pkg/analysis"},
	{"pkg/policy", "pkg/classify", "pkg/evaluate", "pkg/approve"},
	{"pkg/report", "pkg/evaluate/evaltest"},
	{"pkg/shield"},
	{"pkg/score"},
	{"cmd"},
	{"."},
}

// TestImportsGoOneWay holds the direction of the layers.
func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	const module = "github.com/shieldcli/shield"
	level := map[string]int{}
	for i, layer := range layers {
		for _, pkg := range layer {
			level[pkg] = i
		}
	}
	for path, f := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if f.Name.Name == "main" && dir != "." {
			continue // generators
		}
		from, known := level[dir]
		if !known {
			if !strings.Contains(dir, "/internal/") {
				t.Errorf("%s: package %s has no place in layers", path, dir)
			}
			continue
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			rel, ok := strings.CutPrefix(name, module+"/")
			if !ok {
				continue
			}
			if to, known := level[rel]; known && to >= from {
				t.Errorf("%s imports %s, which is not below it", path, rel)
			}
		}
	}
}

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// sources returns the parsed Go files that are neither tests nor generated.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var positions = token.NewFileSet() // of sources

var parsed = sync.OnceValues(func() (map[string]*ast.File, error) {
	files := map[string]*ast.File{}
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
		if err != nil || bytes.HasPrefix(text, []byte("// Code generated")) {
			return err
		}
		f, err := parser.ParseFile(positions, path, text, parser.ParseComments)
		files[filepath.ToSlash(path)] = f
		return err
	})
	return files, err
})

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
	// Runs before main.go, which takes over what it does not end.
	"internal/watch/ahead_unix.go os.Stdin":   true,
	"internal/watch/ahead_unix.go os.Stderr":  true,
	"internal/watch/ahead_unix.go os.Environ": true,
	"internal/watch/ahead_unix.go os.Exit":    true,
	"internal/watch/ahead_unix.go os.Getenv":  true,
	// The same: no other place is before a library that asks the terminal.
	"internal/noquery/noquery.go os.LookupEnv": true,
	"internal/noquery/noquery.go os.Setenv":    true,
	"internal/noquery/noquery.go os.Unsetenv":  true,
	// A contained program's own beginning, which needs nothing of the rest.
	"internal/contain/inner_linux.go os.Exit": true,
	// Linked into tests only, where there is no main.go.
	"internal/redistest/redistest.go time.Now": true,
	"internal/reexec/reexec.go os.Exit":        true,
	"internal/reexec/reexec.go os.LookupEnv":   true,
	"internal/reexec/reexec.go os.Environ":     true,
	"internal/reexec/reexec.go os.Stderr":      true,
}

// decoders are the functions of the standard library that read encoded text.
var decoders = regexp.MustCompile(`\b(?:base64\.\w+\.|base32\.\w+\.|ascii85\.|quotedprintable\.New)(?:Append)?(?:Decode|Reader)|\bhtml\.Unescape|\burl\.(?:Query|Path)Unescape|\butf16\.Decode`)

// fields have the files that decode a field of which a protocol says that it is encoded,
// and nothing else will do.
var fields = map[string]bool{
	"internal/tokenizer/normalizer.go": true, // a table of the model
	"pkg/audit/checkpoint.go":          true, // a signature
	"pkg/evaluate/result.go":           true, // a picture
	"pkg/gateway/examine.go":           true, // a picture
	"pkg/gateway/http.go":              true, // a header
	"pkg/gateway/judge.go":             true, // a URI; what is malformed is refused
}

// TestDecodersAreInOnePlace holds that [decode] alone reads encoded text.
func TestDecodersAreInOnePlace(t *testing.T) {
	t.Parallel()
	for path := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir == "internal/decode" || dir == "release" || dir == "measure" || fields[filepath.ToSlash(path)] {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := decoders.FindIndex(text); at != nil {
			t.Errorf("%s:%d: %s reads encoded text; package decode does", path, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]])
		}
	}
}

// layers lists the packages from the bottom up: one imports only those of
// lines above its own.
var layers = [][]string{
	{"internal/brief", "internal/confine", "internal/ortlib/x86", "internal/resp", "internal/sorted", "internal/stack", "internal/suggest", "pkg/knowledge"},
	{"internal/allocated", "internal/ancestry", "internal/canonjson", "internal/committed", "internal/contain", "internal/decode", "internal/flock", "internal/gentest", "internal/genuine", "internal/owner", "internal/packed", "internal/patch", "internal/peer", "internal/prefilter", "internal/sqlitefile", "internal/sqltext", "internal/redistest", "internal/reexec", "internal/servetest", "internal/subprocess", "internal/term", "internal/tokenizer", "internal/ttytest", "internal/yamlfile", "policies"},
	{"internal/apicall", "internal/container", "internal/bearer", "internal/built", "internal/grants", "internal/launch", "internal/redact", "internal/unpacked", "internal/watch", "pkg/undo"},
	{"internal/noquery", "internal/ortlib", "models", "pkg/action", "pkg/effect"},
	{"pkg/verdict", "pkg/shell/command", "pkg/shell/dialect", "pkg/modelstore", "pkg/bundle", "pkg/kind/facts", "pkg/grounding", "pkg/telemetry", "pkg/state", "internal/exam", "internal/speech"},
	{"internal/bounds", "pkg/host", "pkg/shell", "pkg/audit", "pkg/config", "pkg/analysis", "pkg/sanitize", "internal/hostile"},
	{"internal/scripttest", "pkg/kind", "pkg/grounding/objects"},
	{"pkg/session", "pkg/service", "pkg/policy", "pkg/classify", "pkg/evaluate", "pkg/approve"},
	{"pkg/report", "pkg/evaluate/evaltest", "pkg/gateway"},
	{"pkg/shield"},
	{"pkg/scan", "pkg/score"},
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

// TestPackagesHaveExamples holds that every package for other programs shows how it is used,
// in an example that go test compiles and runs.
func TestPackagesHaveExamples(t *testing.T) {
	t.Parallel()
	for path := range sources(t) {
		dir := filepath.Dir(path)
		if name := filepath.Base(dir); !strings.HasPrefix(path, "pkg/") || name == "gen" || name == "evaltest" || strings.Contains(path, "/internal/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "example_test.go"))
		if err != nil || !bytes.Contains(text, []byte("\nfunc Example")) || !bytes.Contains(text, []byte("// Output:")) {
			t.Errorf("%s has no example with its output in example_test.go", dir)
		}
	}
}

// maxImportDepth is how many packages may lie on the longest way of imports, main
// and the last one included: so many places has someone to know who follows a
// call to its end.
const maxImportDepth = 8

// TestImportDepth holds that bound. Tests do not count, whatever they import.
func TestImportDepth(t *testing.T) {
	t.Parallel()
	const module = "github.com/shieldcli/shield"
	imports := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "build" || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if imports[dir] == nil {
			imports[dir] = map[string]bool{}
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if rel, ok := strings.CutPrefix(name, module+"/"); ok {
				imports[dir][rel] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	longest := map[string][]string{}
	var way func(dir string) []string
	way = func(dir string) []string {
		if known, ok := longest[dir]; ok {
			return known
		}
		var below []string
		for _, to := range slices.Sorted(maps.Keys(imports[dir])) {
			if w := way(to); len(w) > len(below) {
				below = w
			}
		}
		longest[dir] = append([]string{dir}, below...)
		return longest[dir]
	}
	if w := way("."); len(w) < 4 {
		t.Errorf("the longest way from main is %q: not all imports were seen", w)
	}
	for dir := range imports {
		if w := way(dir); len(w) > maxImportDepth {
			t.Errorf("%d packages on the way %s, at most %d may be", len(w), strings.Join(w, " → "), maxImportDepth)
		}
	}
}

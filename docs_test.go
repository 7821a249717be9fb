package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// developerDocs are the pages that name files and functions of this tree.
var developerDocs = []string{"ARCHITECTURE.md", "CONTRIBUTING.md"}

// Of a page: paths, names of declarations, tests that are run by name.
var (
	pathInText  = regexp.MustCompile(`(?:^|[\s(\x60"'])\.?/?((?:cmd|internal|pkg|policies|models|testdata|golden|training|docs|man|completions|\.ci)(?:/[\w.*-]+)*/?|[\w-]+_test\.go|main\.go)`)
	nameInText  = regexp.MustCompile(`(?:^|[\s(\x60])([a-z]+)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)\b`)
	testInText  = regexp.MustCompile(`go test (?:-\S+ )*(\./\S+) -run '?(\w+)`)
	madeInTexts = regexp.MustCompile(`\bfrob|\bNAME\b`) // examples
)

// declared returns "package.Func", "package.Type" and "package.Type.Method" for
// all of the tree, and the names of the packages.
func declared(t *testing.T) (names, packages map[string]bool) {
	t.Helper()
	names, packages = map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		pkg := f.Name.Name
		packages[pkg] = true
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					recv := d.Recv.List[0].Type
					if star, ok := recv.(*ast.StarExpr); ok {
						recv = star.X
					}
					if id, ok := recv.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				names[pkg+"."+name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						names[pkg+"."+typ.Name.Name] = true
					}
				}
			}
		}
	}
	return names, packages
}

// TestDocsNameWhatExists holds that the files, folders, functions and tests that
// the pages for developers name are there.
func TestDocsNameWhatExists(t *testing.T) {
	t.Parallel()
	names, packages := declared(t)
	for _, page := range developerDocs {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		paths, funcs := 0, 0
		for line := range strings.Lines(string(text)) {
			for _, m := range pathInText.FindAllStringSubmatch(line, -1) {
				path := strings.TrimRight(m[1], "./")
				if madeInTexts.MatchString(path) {
					continue
				}
				paths++
				if found, err := filepath.Glob(path); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there", page, path)
				}
			}
			for _, m := range nameInText.FindAllStringSubmatch(line, -1) {
				if name := m[1] + "." + m[2]; packages[m[1]] && !fileName(name) {
					funcs++
					if !names[name] {
						t.Errorf("%s names %s, which is not declared", page, name)
					}
				}
			}
			for _, m := range testInText.FindAllStringSubmatch(line, -1) {
				if !hasTest(t, m[1], m[2]) {
					t.Errorf("%s runs the test %s in %s, which is not there", page, m[2], m[1])
				}
			}
		}
		t.Logf("%s: %d paths, %d names", page, paths, funcs)
		if paths < 40 {
			t.Errorf("%s: only %d paths were recognised", page, paths)
		}
	}
}

// fileName reports whether a word is the name of a file rather than of a
// declaration.
func fileName(word string) bool {
	switch filepath.Ext(word) {
	case ".exe", ".go", ".yaml", ".md", ".db", ".lock", ".json", ".jsonl", ".key", ".jq":
		return true
	}
	return false
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`func (Test|Fuzz)\w*` + name).Match(text) {
			return true
		}
	}
	return false
}

// TestEveryPackageIsOnTheMap holds that ARCHITECTURE.md has a row for each
// package, in the order of the layers.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, layer := range layers {
		lowest := last
		for _, pkg := range layer {
			if pkg == "." {
				continue
			}
			at := strings.Index(string(text), "\n| `"+pkg+"` | ")
			if at <= lowest {
				t.Errorf("ARCHITECTURE.md has no row for %s behind the rows of the layers below it", pkg)
			}
			last = max(last, at)
		}
	}
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPlainTests holds that what the Makefile leaves out under the race detector is
// run without it: each name is that of one test, in a package that is named too.
func TestPlainTests(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]string{} // of tests
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(text, -1) {
			places[string(m[1])] = append(places[string(m[1])], "./"+filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?m)^PLAIN_(\w+) = (.*)$`).FindAllSubmatch(makefile, -1)
	var packages, used []string
	for _, m := range lists {
		list := strings.Fields(string(m[2]))
		if name := string(m[1]); name == "PACKAGES" {
			packages = list
			continue
		} else if !strings.Contains(string(makefile), "$(PLAIN_"+name+")") {
			t.Errorf("PLAIN does not hold PLAIN_%s", name)
		}
		for _, test := range list {
			if len(places[test]) != 1 {
				t.Errorf("%s is a test of %q, want one package", test, places[test])
				continue
			}
			used = append(used, places[test][0])
		}
	}
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(used, packages) || len(used) == 0 {
		t.Errorf("PLAIN_PACKAGES is %q, the tests are in %q", packages, used)
	}
}

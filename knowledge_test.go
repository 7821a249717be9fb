package main

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// mostNames is how many names of pkg/knowledge a file elsewhere may hold: more
// are a list of its own, which would drift away from the other.
const mostNames = 6

// TestKnowledgeIsInOnePlace demands that no other Go or YAML file repeats
// a list of pkg/knowledge. Examples of rules do not count.
func TestKnowledgeIsInOnePlace(t *testing.T) {
	t.Parallel()
	names := distinctive()
	if len(names) < 150 {
		t.Fatalf("only %d names are known", len(names))
	}
	held := map[string]map[string]bool{}
	look := func(path, text string) {
		for _, word := range nameForm.FindAllString(extension.ReplaceAllString(text, " "), -1) {
			if names[strings.ToLower(word)] {
				if held[path] == nil {
					held[path] = map[string]bool{}
				}
				held[path][word] = true
			}
		}
	}
	for path, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					look(path, text)
				}
			}
			return true
		})
	}
	for path, value := range dataFiles(t) {
		eachText(value, func(text string) { look(path, text) })
	}
	for path, words := range held {
		if strings.HasPrefix(path, "pkg/knowledge/") || len(words) <= mostNames {
			continue
		}
		var list []string
		for w := range words {
			list = append(list, w)
		}
		t.Errorf("%s repeats %d names that pkg/knowledge holds; take its list: %s", path, len(words), strings.Join(list, " "))
	}
}

// extension is any file of a type, as in *.conda, which is not the folder .conda.
var extension = regexp.MustCompile(`\*\.\w+`)

var nameForm = regexp.MustCompile(`[A-Za-z0-9_.][A-Za-z0-9_.-]+`)

// distinctive returns those names of pkg/knowledge that mean nothing else, in
// lower case: variables of several words, files that are hidden or long, hosts.
func distinctive() map[string]bool {
	names := map[string]bool{}
	for _, g := range knowledge.RunningGroups {
		for _, name := range g.Names {
			if strings.Contains(name, "_") && !strings.Contains(name, "*") {
				names[strings.ToLower(name)] = true
			}
		}
	}
	for _, list := range knowledge.PathLists {
		for _, glob := range list.Globs {
			for _, word := range nameForm.FindAllString(glob, -1) {
				if word[0] == '.' && len(word) > 4 || strings.Count(word, "_")+strings.Count(word, ".") > 1 {
					names[strings.ToLower(word)] = true
				}
			}
		}
	}
	for _, list := range knowledge.HostLists {
		for _, host := range list.Hosts {
			names[host] = true
		}
	}
	for _, common := range []string{".config", ".local", ".cache", ".json", ".yaml", ".toml"} {
		delete(names, common)
	}
	return names
}

// dataFiles returns what the YAML files hold.
func dataFiles(t *testing.T) map[string]any {
	t.Helper()
	files := map[string]any{}
	for _, root := range []string{"pkg", "policies", "internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			if filepath.Ext(path) != ".yaml" {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var value any
			err = yaml.Unmarshal(data, &value)
			files[filepath.ToSlash(path)] = value
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// eachText calls do for every text in a value but those of examples.
func eachText(value any, do func(string)) {
	switch v := value.(type) {
	case string:
		do(v)
	case []any:
		for _, x := range v {
			eachText(x, do)
		}
	case map[string]any:
		for key, x := range v {
			if key != "match" && key != "pass" {
				do(key)
				eachText(x, do)
			}
		}
	}
}

// TestGuardHosts holds that the programs of all hosts are known as such where signals to them
// and programs in their place are looked for.
func TestGuardHosts(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		programs, _ := h.InstallationIndicators()
		for _, p := range programs {
			if named[p] = true; !command.GuardHosts[p] {
				t.Errorf("GuardHosts of words.yaml lacks %s, a program of %s", p, name)
			}
		}
	}
	core, err := os.ReadFile("policies/core.yaml")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.FieldsFunc(string(core), func(r rune) bool { return strings.ContainsRune("[], \n", r) })
	for _, list := range [...]command.Words{command.GuardHosts, command.GuardLine} {
		for p := range list {
			if !slices.Contains(words, p) {
				t.Errorf("the rule shield_name of core.yaml lacks %s", p)
			}
		}
	}
	for p := range command.GuardHosts {
		if !named[p] {
			t.Errorf("GuardHosts of words.yaml has %s, which is no host's program", p)
		}
	}
}

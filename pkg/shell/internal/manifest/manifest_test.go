package manifest

import (
	"slices"
	"strings"
	"testing"
)

func TestManifests(t *testing.T) {
	t.Parallel()
	python := func(text string) ([]string, bool) { return PythonProgramNames(text, "") }
	setup := func(text string) ([]string, bool) { return PythonProgramNames("", text) }
	for _, c := range []struct {
		name  string
		read  func(string) ([]string, bool)
		text  string
		want  string
		known bool
	}{
		{"npm", NPMProgramNames, `{"name":"@a/x","bin":"x.js"}`, "x", true},
		{"npm", NPMProgramNames, `{"bin":{"a":"x","b":"y"}}`, "a b", true},
		{"npm", NPMProgramNames, `{"name":"x"}`, "", true},
		{"npm", NPMProgramNames, `{"directories":{"bin":"b"}}`, "", false},
		{"npm", NPMProgramNames, `{"bin":5}`, "", false},
		{"npm", NPMProgramNames, `not`, "", false},
		{"python", python, "[project.scripts]\na = \"x:m\"\n'b' = \"y:m\"\n[tool.x]\nc = 1\n", "a b", true},
		{"python", python, "[project]\nscripts = { a = \"x\", b = \"y\" }\n", "a b", true},
		{"python", python, "project.scripts.a = \"x\"\n", "a", true},
		{"python", python, "[ tool . poetry . scripts ]\na = \"x\"\n", "a", true},
		{"python", python, "[project.entry-points.console_scripts]\na = \"x\"\n", "a", true},
		{"python", python, "[build-system]\nbackend-path = [\".\"]\n", "", false},
		{"python", python, "[project]\ndynamic = [\"scripts\"]\n", "", false},
		{"python", python, "[tool.setuptools]\nscript-files = [\"bin/x\"]\n", "", false},
		{"python", python, "", "", false},
		{"setup.cfg", setup, "[options.entry_points]\nconsole_scripts =\n    a = x:m\n    b=y:m\n[x]\nc = 1\n", "a b", true},
		{"setup.cfg", setup, "[options]\nscripts = bin/x\n", "", false},
		{"cargo", CargoProgramNames, "[package]\nname = \"a\"\n[[bin]]\nname = 'b'\n[lib]\nname = \"c\"\n", "a b", true},
		{"cargo", CargoProgramNames, "[workspace]\n", "", false},
	} {
		names, known := c.read(c.text)
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want || known != c.known {
			t.Errorf("%s: %q: %q, %v", c.name, c.text, got, known)
		}
	}
	for text, want := range map[string]string{"module a.b/c // x\n": "a.b/c", "module \"a\"\n": "a", "// module x\nmodule\ty\n": "y", "modules x\n": "", "": ""} {
		if got := GoModulePath(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	for pkg, want := range map[string]string{"a.b/c": "c", "a.b/c/v2": "c", "a/vx": "vx", "c": "c"} {
		if got := GoProgramName(pkg); got != want {
			t.Errorf("%q: %q", pkg, got)
		}
	}
}

// FuzzManifests holds that no text is too much for a reader.
func FuzzManifests(f *testing.F) {
	f.Add("[project]\nscripts = {a = 1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		NPMProgramNames(text)
		PythonProgramNames(text, text)
		CargoProgramNames(text)
		GoProgramName(GoModulePath(text))
	})
}

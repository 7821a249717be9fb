package command

import "testing"

// TestLoaders holds which programs run files because they lie there, and which of
// them only for some arguments.
func TestLoaders(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		program string
		args    []string
		file    string
		loads   bool
	}{
		{"make", nil, "/a/b/Makefile", true},
		{"make", nil, "rules.mk", true},
		{"make", nil, "/a/Makefile/x.c", false},
		{"npm", []string{"test"}, "package.json", true},
		{"docker", []string{"build", "."}, "Dockerfile", true},
		{"docker", []string{"/x/build"}, "Dockerfile", true},
		{"docker", []string{"ps"}, "Dockerfile", false},
		{"docker", nil, "Dockerfile", false},
		{"py:pytest", nil, "conftest.py", true},
		{"ls", nil, "Makefile", false},
		{"", nil, "Makefile", false},
	} {
		loads := false
		for _, l := range CodeFileLoaders(c.program, c.args) {
			loads = loads || l.Loads(c.file)
		}
		if loads != c.loads {
			t.Errorf("%s %q runs %s: %t, want %t", c.program, c.args, c.file, loads, c.loads)
		}
	}
}

// TestRecipe holds how a file is read by its name: the first glob that fits the last
// names of its path counts, then what the end of its name says.
func TestRecipe(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct {
		format    string
		elsewhere bool
	}{
		"/a/Makefile":                    {"make", false},
		"x.mk":                           {"make", false},
		"/a/package.json":                {"package", false},
		"/a/.vscode/tasks.json":          {"package", false},
		"/a/vscode/tasks.json":           {"", false},
		"/a/.git/config":                 {"unit", false},
		"/a/x.git/config":                {"", false},
		"/a/Dockerfile.dev":              {"docker", true},
		"/a/.github/workflows/ci.yml":    {"yaml", true},
		"/a/Taskfile.yml":                {"yaml", false},
		"/etc/cron.d/x":                  {"cron", false},
		"/a/.git/hooks/pre-commit":       {"shell", false},
		"/a/hooks/pre-commit":            {"", false},
		"/home/me/.bashrc":               {"shell", false},
		"/a/x.py":                        {"python", false},
		"/a/x.sh":                        {"shell", false},
		"/a/x.rs":                        {"code", false},
		"/a/x.txt":                       {"", false},
		"":                               {"", false},
		"/":                              {"", false},
		"/Library/LaunchAgents/me.plist": {"plist", false},
	} {
		if format, elsewhere := RecipeFormat(file); format != want.format || elsewhere != want.elsewhere {
			t.Errorf("%s: %q, elsewhere %t; want %q, %t", file, format, elsewhere, want.format, want.elsewhere)
		}
	}
}

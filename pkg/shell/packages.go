package shell

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A packageInstaller is what is known of a program that installs packages by their names.
type packageInstaller struct {
	registry string
	verbs    []string // the subcommands that install; none if every call does
	only     int      // how many operands name packages; 0 for all
}

var packageInstallers = func() map[string]packageInstaller {
	ofNPM := packageInstaller{registry: "npm", verbs: []string{"install", "i", "in", "ins", "isntall", "add", "exec", "x", "dlx", "create", "init"}}
	asked := packageInstaller{registry: "npm"} // as npx, which installs what it runs
	pip := packageInstaller{registry: "pypi", verbs: []string{"install"}}
	adds := packageInstaller{registry: "pypi", verbs: []string{"add"}}
	template := packageInstaller{registry: "template", only: 1}
	return map[string]packageInstaller{
		"npm": ofNPM, "pnpm": ofNPM, "yarn": ofNPM, "bun": ofNPM, "cnpm": ofNPM, "npx": asked, "bunx": asked, "pnpx": asked,
		"pip": pip, "pip3": pip, "py:pip": pip, "pipenv": pip, "poetry": adds, "pdm": adds,
		"uv":  {registry: "pypi", verbs: []string{"add", "pip install", "tool install", "tool run"}},
		"uvx": {registry: "pypi"}, "pipx": {registry: "pypi", verbs: []string{"install", "inject", "run"}},
		"composer": {registry: "packagist", verbs: []string{"require", "global require", "create-project"}},
		"cargo":    {registry: "crates", verbs: []string{"add", "install", "binstall"}},
		"gem":      {registry: "gems", verbs: []string{"install", "i"}}, "bundle": {registry: "gems", verbs: []string{"add"}},
		"go": {registry: "go", verbs: []string{"get", "install"}}, "go run": {registry: "go", verbs: []string{"run"}, only: 1},
		"brew":  {registry: "taps", verbs: []string{"tap", "install"}},
		"degit": template, "tiged": template, "gitpick": template, "gitget": template, "giget": template, "cookiecutter": template, "copier": {registry: "template", verbs: []string{"copy"}, only: 1},
		"deno": {registry: "deno", verbs: []string{"run", "install", "add"}, only: 1},
	}
}()

// manifests are the files of a project that name its packages, by registry.
var manifests = map[string][]string{
	"npm":  {"package.json"},
	"pypi": {"pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.py", "setup.cfg", "Pipfile"},
	"go":   {"go.mod", "go.sum"}, "crates": {"Cargo.toml", "Cargo.lock"}, "gems": {"Gemfile", "Gemfile.lock"}, "packagist": {"composer.json", "composer.lock"},
	"taps": {"Brewfile", ".Brewfile"}, "deno": {"deno.json", "deno.jsonc", "package.json"},
}

// installs reports whether a call of a program installs packages, by its first words that are
// no options.
func (in *packageInstaller) installs(argv []abstract.Value) bool {
	if in.verbs == nil {
		return true
	}
	var words []string
	for _, v := range argv[1:] {
		if !strings.HasPrefix(v.Text, "-") {
			if words = append(words, v.Text); len(words) == 2 {
				break
			}
		}
	}
	return len(words) > 0 && slices.Contains(in.verbs, words[0]) || slices.Contains(in.verbs, strings.Join(words, " "))
}

// maxPackages bounds how many names of one command are looked up.
const maxPackages = 64

// newPackages records the packages that a command installs or runs by their names and that
// neither the project nor the lists of widely used names know: a wrong letter is enough for
// another person's code.
func (s *state) newPackages(base string, argv []abstract.Value, use command.Use) {
	in, ok := packageInstallers[base]
	if base == "go" && len(argv) > 1 && argv[1].Text == "run" {
		in = packageInstallers["go run"]
	}
	if !ok || s.remote > 0 || !in.installs(argv) {
		return
	}
	packages := use.Packages
	if named := in.named(argv); len(packages) == 0 || named != nil {
		packages = named
	}
	for _, w := range packages[:min(len(packages), maxPackages)] {
		name := packageName(in.registry, w.Text)
		if name == "" || w.Pattern || groupOption(argv, w) || command.HasEntry(name) {
			continue
		}
		if used, _ := knowledge.WidelyUsed(in.registry, name); used || knowledge.WellKnown(in.registry, name) || s.inProject(in.registry, name) {
			continue
		}
		s.dynamic(effect.CausePackage, "unknown package "+abstract.Clip(name)+": neither the project nor the list of widely used names has it", w.From)
	}
}

// valueOptions are those of programs that install packages whose value may stand behind them.
const valueOptions = " -v --version --features -F --path --git --branch --tag --rev --root --registry -i --install-dir --source -p --package --bin --target --rename --profile -j --jobs -b -c --checkout -o --output-dir -C --mode --tags --name --scope -tags -ldflags -mod -modfile "

// named returns the operands that name packages, of registries for which there is no list, and of what npm
// makes new projects from; nil where the entry of the program says which these are.
func (in *packageInstaller) named(argv []abstract.Value) (out []command.Word) {
	creates := in.registry == "npm" && in.verbs != nil && len(argv) > 1 && (argv[1].Text == "create" || argv[1].Text == "init")
	if _, listed := knowledge.WidelyUsed(in.registry, ""); listed && !creates && !in.runsTool(argv) {
		return nil
	}
	operands, depth := 0, 0
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		switch {
		case strings.HasPrefix(v.Text, "-"):
			if strings.Contains(valueOptions, " "+v.Text+" ") {
				i++
			}
			continue
		case in.verbs != nil && depth == 0 && out == nil && (slices.Contains(in.verbs, v.Text) || slices.ContainsFunc(in.verbs, func(verb string) bool {
			return strings.HasPrefix(verb, v.Text+" ") || strings.HasSuffix(verb, " "+v.Text)
		})):
			continue
		}
		if operands++; in.only > 0 && operands > in.only || creates && operands > 1 || in.runsTool(argv) && operands > 1 {
			break
		}
		w := command.Word{Text: v.Text, Pattern: v.IsPattern, From: v.From}
		if creates {
			w.Text = creator(v.Text)
		}
		out = append(out, w)
	}
	return out
}

// runsTool reports whether a call is "uv tool run", which installs what it runs.
func (in *packageInstaller) runsTool(argv []abstract.Value) bool {
	return in.registry == "pypi" && len(argv) > 2 && argv[1].Text == "tool" && argv[2].Text == "run"
}

// creator returns the package that "npm create NAME" runs.
func creator(name string) string {
	name, version, _ := strings.Cut(name, "@")
	switch scope, rest, scoped := strings.Cut(version, "/"); {
	case name != "": // with a version
		return "create-" + name
	case scoped:
		return "@" + scope + "/create-" + rest
	default:
		return "@" + version + "/create"
	}
}

// otherName returns the name of a package of a registry for which there is no list.
func otherName(registry, word string) string {
	if rest, isNPM := strings.CutPrefix(word, "npm:"); registry == "deno" && isNPM {
		name := packageName("npm", rest)
		if used, _ := knowledge.WidelyUsed("npm", name); used {
			return ""
		}
		return name
	}
	if cut := strings.LastIndexByte(word, '@'); cut > 0 {
		word = word[:cut]
	}
	word, _, _ = strings.Cut(word, "#")
	host, _, below := strings.Cut(word, "/")
	switch registry {
	case "go":
		if !below || !strings.Contains(host, ".") || host[0] == '.' || host == "golang.org" || host == "google.golang.org" {
			return "" // of the workspace, or of those who make the language
		}
		return word
	case "packagist":
		word, _, _ = strings.Cut(word, ":")
		if !strings.Contains(word, "/") {
			return ""
		}
	case "gems":
		word, _, _ = strings.Cut(word, ":")
	case "taps": // somebody's own, not those of the program itself
		if !below || host == "homebrew" || strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/") {
			return ""
		}
	case "template":
		if !strings.ContainsAny(word, "/:") || strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") {
			return ""
		}
		return word
	case "deno":
		return ""
	}
	if strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || strings.Contains(word, "://") {
		return ""
	}
	return word
}

// packageName returns the name of a package without its version, as its registry writes it; ""
// if the word is no name.
func packageName(registry, word string) string {
	if registry != "npm" && registry != "pypi" {
		return otherName(registry, word)
	}
	if registry == "npm" {
		if i := strings.LastIndexByte(word, '@'); i > 0 {
			word = word[:i]
		}
		if strings.Count(word, "/") > 0 && word[0] != '@' {
			return ""
		}
	} else {
		if i := strings.IndexAny(word, "=<>!~[;@ "); i >= 0 {
			word = word[:i]
		}
		word = strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(word))
	}
	if word == "" || strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789-_.@/") != "" || word[0] == '-' || word[0] == '.' {
		return ""
	}
	return word
}

// inProject reports whether the project says that it works with a package, or has it.
func (s *state) inProject(registry, name string) bool {
	if s.at.Script == nil {
		return false
	}
	cwd := s.place().CWD
	for _, file := range manifests[registry] {
		if text, err := s.at.Script(cwd + "/" + file); err == nil && namesPackage(registry, string(text), name) {
			return true
		}
	}
	for _, made := range [...]string{"/node_modules/" + name + "/package.json", "/node_modules/.bin/" + name} {
		if _, err := s.at.Script(cwd + made); registry == "npm" && (err == nil || !errors.Is(err, fs.ErrNotExist)) {
			return true
		}
	}
	return false
}

// namesPackage reports whether a manifest has the whole name of a package in it: a part of
// another name is what a typosquatted package has.
func namesPackage(registry, text, name string) bool {
	if registry == "go" { // a module holds what lies below its path
		for module := range strings.FieldsSeq(text) {
			if strings.Contains(module, "/") && (module == name || strings.HasPrefix(name, module+"/")) {
				return true
			}
		}
		return false
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r != '@' && r != '/' && r != '-' && r != '_' && r != '.' && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}) {
		if strings.EqualFold(packageName(registry, word), name) {
			return true
		}
	}
	return false
}

// groupOption reports whether a word is what an option says that names a group of packages.
func groupOption(argv []abstract.Value, w command.Word) bool {
	for i, v := range argv[1:] {
		if v.From == w.From && v.Text == w.Text {
			return strings.HasPrefix(argv[i].Text, "--group") || argv[i].Text == "-G" || argv[i].Text == "--extra" || argv[i].Text == "--index" || argv[i].Text == "--source"
		}
	}
	return false
}

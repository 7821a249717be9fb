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
}

var packageInstallers = func() map[string]packageInstaller {
	ofNPM := packageInstaller{"npm", []string{"install", "i", "in", "ins", "isntall", "add", "exec", "x", "dlx"}}
	asked := packageInstaller{"npm", nil} // as npx, which installs what it runs
	pip := packageInstaller{"pypi", []string{"install"}}
	adds := packageInstaller{"pypi", []string{"add"}}
	return map[string]packageInstaller{
		"npm": ofNPM, "pnpm": ofNPM, "yarn": ofNPM, "bun": ofNPM, "cnpm": ofNPM, "npx": asked, "bunx": asked, "pnpx": asked,
		"pip": pip, "pip3": pip, "py:pip": pip, "pipenv": pip, "poetry": adds, "pdm": adds,
		"uv": {"pypi", []string{"add", "pip install", "tool install"}}, "uvx": {"pypi", nil}, "pipx": {"pypi", []string{"install", "inject", "run"}},
	}
}()

// manifests are the files of a project that name its packages, by registry.
var manifests = map[string][]string{
	"npm":  {"package.json"},
	"pypi": {"pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.py", "setup.cfg", "Pipfile"},
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
	if !ok || s.remote > 0 || !in.installs(argv) {
		return
	}
	for _, w := range use.Packages[:min(len(use.Packages), maxPackages)] {
		name := packageName(in.registry, w.Text)
		if name == "" || w.Pattern || groupOption(argv, w) || command.HasEntry(name) {
			continue
		}
		if used, ok := knowledge.WidelyUsed(in.registry, name); !ok || used || s.inProject(in.registry, name) {
			continue
		}
		s.dynamic(effect.CausePackage, "unknown package "+abstract.Clip(name)+": neither the project nor the list of widely used names has it", w.From)
	}
}

// packageName returns the name of a package without its version, as its registry writes it; ""
// if the word is no name.
func packageName(registry, word string) string {
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

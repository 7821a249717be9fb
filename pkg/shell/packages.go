package shell

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// manifestFilesByRegistry are the files that declare a project's packages, by registry.
var manifestFilesByRegistry = map[string][]string{
	"npm":  {"package.json", "deno.json", "deno.jsonc"},
	"pypi": {"pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.py", "setup.cfg", "Pipfile"},
	"go":   {"go.mod", "go.sum"}, "crates": {"Cargo.toml", "Cargo.lock"}, "gems": {"Gemfile", "Gemfile.lock"}, "packagist": {"composer.json", "composer.lock"},
	"taps": {"Brewfile", ".Brewfile"}, "jsr": {"deno.json", "deno.jsonc", "jsr.json", "package.json"},
	"conda": {"environment.yml", "environment.yaml", "pixi.toml", "pyproject.toml"}, "pub": {"pubspec.yaml"}, "hex": {"mix.exs"}, "cpan": {"cpanfile", "Makefile.PL"},
}

// maxPackageLookups is the maximum number of package names that are looked up for one command.
const maxPackageLookups = 64

// recordPossiblyTyposquattedPackages records the packages that a command installs or runs by name and that are neither in the project nor
// in the lists of widely used packages: a typing error can install a typosquatted package.
func (s *analysisState) recordPossiblyTyposquattedPackages(use command.Interpretation) {
	if s.remoteOrContainerDepth > 0 {
		return
	}
	for i, p := range use.Packages {
		if p.Registry == "" || p.Registry == "none" || p.IsGlobPattern {
			continue
		}
		if i == maxPackageLookups {
			s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, "the command installs more packages than shield looks up", p.Span)
			return
		}
		name := packageName(p.Registry, p.Text)
		if name == "" || !strings.Contains(name, "/") && command.IsProgramWithKnownSyntax(name) {
			continue
		}
		if used, _ := knowledge.WidelyUsed(p.Registry, name); used || knowledge.IsKnownInUnrankedPackageList(p.Registry, name) || s.isPackageInProject(p.Registry, name) {
			continue
		}
		s.emitUnknownEffect(effect.CauseUnknownPackage, "unknown package "+abstract.ClipForMessage(name)+": neither the project nor the list of widely used names has it", p.Span)
	}
}

// packageName returns the name of a package without version, normalised as in its registry; "" if the word is not
// a package name.
func packageName(registry, word string) string {
	if strings.Contains(word, "://") || strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") {
		return ""
	}
	chars := "abcdefghijklmnopqrstuvwxyz0123456789-_.@/:"
	switch registry {
	case "npm", "jsr":
		if i := strings.LastIndexByte(word, '@'); i > 0 {
			word = word[:i]
		}
		if strings.Contains(word, "/") != (word != "" && word[0] == '@') {
			return ""
		}
		chars = strings.TrimSuffix(chars, ":")
	case "pypi", "conda", "nuget":
		_, channel, of := strings.Cut(word, "::")
		if of && registry == "conda" {
			word = channel
		}
		if i := strings.IndexAny(word, "=<>!~[;@ "); i >= 0 {
			word = word[:i]
		}
		word, chars = strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789-_."
		if registry != "nuget" {
			word = strings.NewReplacer("_", "-", ".", "-").Replace(word)
		}
	case "cpan":
		word, _, _ = strings.Cut(word, "@")
	case "repository": // USER/REPO, optionally after a host or its short form
		if word, _, _ = strings.Cut(word, "#"); !strings.ContainsAny(word, "/:") {
			return ""
		}
	default:
		if i := strings.LastIndexByte(word, '@'); i > 0 {
			word = word[:i]
		}
		if word, _, _ = strings.Cut(word, "#"); registry != "go" {
			word, _, _ = strings.Cut(word, ":")
		}
	}
	host, _, below := strings.Cut(word, "/")
	switch registry {
	case "go":
		if !below || !strings.Contains(host, ".") || host == "golang.org" || host == "google.golang.org" {
			return "" // not looked up: a package of the workspace or of the Go project
		}
	case "packagist":
		if !below {
			return ""
		}
	case "taps": // a third-party tap, not one of Homebrew
		if !below || host == "homebrew" {
			return ""
		}
	}
	if word == "" || strings.Trim(strings.ToLower(word), chars) != "" || word[0] == '-' {
		return ""
	}
	return word
}

// isPackageInProject reports whether a manifest of the project names a package, or the package is installed in it.
func (s *analysisState) isPackageInProject(registry, name string) bool {
	if s.initialPathContext.ReadScript == nil {
		return false
	}
	cwd := s.workingFolderContext().CWD
	for _, file := range manifestFilesByRegistry[registry] {
		if text, err := s.initialPathContext.ReadScript(cwd + "/" + file); err == nil && manifestNamesPackage(registry, string(text), name) {
			return true
		}
	}
	for _, made := range [...]string{"/node_modules/" + name + "/package.json", "/node_modules/.bin/" + name} {
		if _, err := s.initialPathContext.ReadScript(cwd + made); registry == "npm" && (err == nil || !errors.Is(err, fs.ErrNotExist)) {
			return true
		}
	}
	return false
}

// manifestNamesPackage reports whether a manifest contains the full name of a package. A typosquatted name may be part of
// another package's name.
func manifestNamesPackage(registry, text, name string) bool {
	if registry == "go" { // a module contains the packages below its path
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

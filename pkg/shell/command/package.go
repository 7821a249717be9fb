package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// pkg notes what a package manager is given: a name, a URL or a path. What comes from
// an address of its own is no package of a registry.
func (r *reader) pkg(w Word) {
	s := w.Text
	if name, other, ok := aliased(s); ok {
		if Hides(name, other) {
			r.change("redirect")
		}
		w.Text = other
		r.use.Packages = append(r.use.Packages, Package{w, "npm"})
		return
	}
	if r.prefixedPackage(w) {
		return
	}
	if i := strings.IndexByte(s, '@'); i > 0 {
		// name @ URL
		if rest := strings.TrimLeft(s[i+1:], " "); scheme(rest) != "" || hasPrefix(rest, "git+") || hasPrefix(rest, "github:") || hasPrefix(rest, "gitlab:") {
			w.Text, s = rest, rest
		}
	}
	for _, vcs := range [...]string{"git+", "hg+", "svn+", "bzr+"} {
		if hasPrefix(s, vcs) {
			w = cut(w, len(w.Text)-len(s)+len(vcs))
			r.repo(w)
			r.touch(effect.ChangeRemote, w, false)
			return
		}
	}
	for forge := range Forges {
		if short, host, _ := strings.Cut(forge, "/"); hasPrefix(s, short) {
			w.Text = "https://" + host + "/" + s[len(short):]
			r.repo(w)
			r.touch(effect.ChangeRemote, w, false)
			return
		}
	}
	switch {
	case scheme(s) != "":
		r.url(w)
		if scheme(s) != "file" {
			r.touch(effect.ChangeRemote, w, false)
		}
	case hasPrefix(s, "/"), hasPrefix(s, "."), hasPrefix(s, "~"):
		r.touch(effect.ReadFile, w, true)
	default:
		r.use.Packages = append(r.use.Packages, Package{w, r.registry()})
	}
}

// registries are those that a prefix of a package's name stands for, as deno and mise write them.
var registries = map[string]string{
	"npm": "npm", "jsr": "jsr", "pypi": "pypi", "pipx": "pypi", "cargo": "crates", "gem": "gems", "go": "go", "nuget": "nuget", "dotnet": "nuget", "conda": "conda",
	"ubi": "repository", "aqua": "repository", "spm": "repository",
}

// prefixedPackage notes a package of the registry that its prefix says, and reports whether there
// is one.
func (r *reader) prefixedPackage(w Word) bool {
	prefix, name, ok := strings.Cut(w.Text, ":")
	registry := registries[prefix]
	if !ok || registry == "" || name == "" || hasPrefix(name, "//") {
		return false
	}
	w = cut(w, len(prefix)+1)
	if registry == "npm" || registry == "jsr" { // npm:/NAME@VERSION/PROGRAM of deno
		w.Text = strings.TrimPrefix(w.Text, "/")
		parts := 1
		if hasPrefix(w.Text, "@") {
			parts = 2
		}
		w.Text = strings.Join(strings.SplitN(w.Text, "/", parts+1)[:min(parts, strings.Count(w.Text, "/")+1)], "/")
	}
	r.use.Packages = append(r.use.Packages, Package{w, registry})
	return true
}

// registry returns where the program looks names of packages up, "" if no entry says so.
func (r *reader) registry() string {
	for d := r.depth - 1; d >= 0; d-- {
		if r.levels[d].registry != "" {
			return r.levels[d].registry
		}
	}
	return ""
}

// eachPackage returns the packages of a word: uv takes a list with commas, which may also
// stand in the extras and in the versions of one.
func (r *reader) eachPackage(w Word) (out []Word) {
	for r.registry() == "pypi" {
		end := strings.IndexByte(w.Text, ',')
		if end < 0 || strings.ContainsAny(w.Text[:end], "<>=!~[; ") {
			break
		}
		one := w
		one.Text = w.Text[:end]
		out, w = append(out, one), cut(w, end+1)
	}
	return append(out, w)
}

// aliased splits what installs a package of npm under the name of another:
// NAME@npm:OTHER, or the setting dependencies.NAME=npm:OTHER.
func aliased(s string) (name, other string, ok bool) {
	if name, other, ok = strings.Cut(s, "@npm:"); ok {
		return name, other, name != ""
	}
	if name, other, ok = strings.Cut(s, "=npm:"); ok {
		_, name, ok = strings.Cut(name, ".")
	}
	return name, other, ok
}

// Hides reports whether the name under which a package of npm is installed does not
// show which one it is.
func Hides(name, other string) bool {
	if i := strings.LastIndexByte(other, '@'); i > 0 {
		other = other[:i]
	}
	last := other[strings.LastIndexByte(other, '/')+1:]
	return other != "" && !strings.Contains(name, last) && !Aliases[name+"/"+other]
}

// shorthand is how npm names a repository on GitHub, behind an optional name of
// the package.
var shorthand = prefilter.Lazy(`^(?:@[\w.-]+/)?(?:[\w.-]+@)?([\w-][\w.-]*/[\w.-]+(?:#\S*)?)$`)

// npmPackage is pkg for programs that npm's names are given to.
func (r *reader) npmPackage(w Word) {
	if m := shorthand().FindStringSubmatch(w.Text); m != nil && !w.Pattern && (m[1] == w.Text || strings.Contains(w.Text, "@"+m[1])) {
		w.Text = "github:" + m[1]
	}
	r.pkg(w)
}

// packageProgram notes the package that the first word names, and returns the command
// that it brings.
func (r *reader) packageProgram(words []Word) []Word {
	brought := false // by a package that an option names
	for _, v := range r.values {
		brought = brought || v.role == roleFromPackage
	}
	if !brought {
		r.npmPackage(words[0])
	}
	return programOf(words)
}

// programOf returns the command that a package brings: the version and the scope say nothing of
// what the program does.
func programOf(words []Word) []Word {
	name := words[0].Text
	if i := strings.LastIndexByte(name, '@'); i > 0 && !strings.ContainsAny(name[i:], ":/") {
		name = name[:i]
	}
	if scope, program, ok := strings.Cut(name, "/"); ok && strings.HasPrefix(scope, "@") && !strings.Contains(program, "/") {
		name = program
	}
	if name != words[0].Text {
		words = slices.Clone(words)
		words[0].Text = name
	}
	return words
}

// creator notes what "npm create NAME" runs, or the repository that "bun create" copies.
func (r *reader) creator(w Word) {
	name, version, _ := strings.Cut(w.Text, "@")
	scope, rest, scoped := strings.Cut(version, "/")
	switch {
	case shorthand().MatchString(w.Text) && name != "":
		r.npmPackage(w)
		return
	case strings.Contains(name, "/") || scheme(w.Text) != "" || hasPrefix(w.Text, "."):
		r.packageWord(roleTemplate, w)
		return
	case name != "": // with a version
		w.Text = "create-" + name
	case scoped:
		w.Text = "@" + scope + "/create-" + rest
	default:
		w.Text = "@" + version + "/create"
	}
	w.Text = "npm:" + w.Text
	r.prefixedPackage(w)
}

// modulePath notes a Go module that comes from a host which is neither one of code
// nor one of those that modules come from all day.
func (r *reader) modulePath(w Word) {
	w = cut(w, strings.LastIndexByte(w.Text, '=')+1)
	host, _, _ := strings.Cut(w.Text, "/")
	if w.Pattern || !strings.Contains(host, ".") || strings.Trim(host, ".") == "" {
		return
	}
	r.use.Packages = append(r.use.Packages, Package{w, "go"})
	w.Text = "https://" + w.Text
	r.plugin(w)
}

// packageWord acts upon a word that names a package or a module.
func (r *reader) packageWord(role role, w Word) {
	switch role {
	case rolePackage:
		for _, one := range r.eachPackage(w) {
			r.pkg(one)
		}
	case roleNPMPackage, roleFromPackage:
		r.npmPackage(w)
	case roleCreator:
		r.creator(w)
	case roleTemplate:
		if r.plugin(w); FileLanguage(w.Text) != "" {
			break
		}
		r.use.Packages = append(r.use.Packages, Package{w, "repository"})
	case roleModulePath:
		r.modulePath(w)
	case roleModuleProgram:
		built := w
		if strings.IndexByte("./~", (w.Text + " ")[0]) >= 0 || strings.HasSuffix(w.Text, ".go") {
			built = r.inEntered(w)
		}
		r.use.Builds = append(r.use.Builds, built)
		if strings.Contains(w.Text, "@") {
			r.modulePath(w)
		} else if host, _, below := strings.Cut(w.Text, "/"); below && strings.Contains(strings.TrimLeft(host, "."), ".") && !w.Pattern {
			r.use.Packages = append(r.use.Packages, Package{w, "go"})
		} else if hasPrefix(w.Text, ".") || hasPrefix(w.Text, "/") || strings.HasSuffix(w.Text, ".go") {
			r.touch(effect.ReadFile, w, false)
		}
	}
}

package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// addPackage records an operand of a package manager: a name, URL or path. A package from a URL does not belong to a
// registry.
func (r *argParser) addPackage(w Word) {
	s := w.Text
	if name, other, ok := splitNPMAlias(s); ok {
		if AliasOmitsPackageName(name, other) {
			r.addChangeRemoteSystemEffect("redirect")
		}
		w.Text = other
		r.result.Packages = append(r.result.Packages, Package{w, "npm"})
		return
	}
	if r.addRegistryPrefixedPackage(w) {
		return
	}
	if i := strings.IndexByte(s, '@'); i > 0 {
		// name @ URL
		if rest := strings.TrimLeft(s[i+1:], " "); urlScheme(rest) != "" || hasPrefix(rest, "git+") || hasPrefix(rest, "github:") || hasPrefix(rest, "gitlab:") {
			w.Text, s = rest, rest
		}
	}
	for _, vcs := range [...]string{"git+", "hg+", "svn+", "bzr+"} {
		if hasPrefix(s, vcs) {
			w = skipBytes(w, len(w.Text)-len(s)+len(vcs))
			r.addGitRemote(w)
			r.addOperandEffect(effect.ChangeRemoteSystem, w, false)
			return
		}
	}
	for forge := range Forges {
		if short, host, _ := strings.Cut(forge, "/"); hasPrefix(s, short) {
			w.Text = "https://" + host + "/" + s[len(short):]
			r.addGitRemote(w)
			r.addOperandEffect(effect.ChangeRemoteSystem, w, false)
			return
		}
	}
	switch {
	case urlScheme(s) != "":
		r.addURL(w)
		if urlScheme(s) != "file" {
			r.addOperandEffect(effect.ChangeRemoteSystem, w, false)
		}
	case hasPrefix(s, "/"), hasPrefix(s, "."), hasPrefix(s, "~"):
		r.addOperandEffect(effect.ReadFile, w, true)
	default:
		r.result.Packages = append(r.result.Packages, Package{w, r.packageRegistry()})
	}
}

// packageRegistryByNamePrefix maps the prefixes of package names, as in deno and mise, to registries.
var packageRegistryByNamePrefix = map[string]string{
	"npm": "npm", "jsr": "jsr", "pypi": "pypi", "pipx": "pypi", "cargo": "crates", "gem": "gems", "go": "go", "nuget": "nuget", "dotnet": "nuget", "conda": "conda",
	"ubi": "repository", "aqua": "repository", "spm": "repository",
}

// addRegistryPrefixedPackage records a package with a registry prefix, and reports whether there is a prefix.
func (r *argParser) addRegistryPrefixedPackage(w Word) bool {
	prefix, name, ok := strings.Cut(w.Text, ":")
	registry := packageRegistryByNamePrefix[prefix]
	if !ok || registry == "" || name == "" || hasPrefix(name, "//") {
		return false
	}
	w = skipBytes(w, len(prefix)+1)
	if registry == "npm" || registry == "jsr" { // deno: npm:/NAME@VERSION/PROGRAM
		w.Text = strings.TrimPrefix(w.Text, "/")
		parts := 1
		if hasPrefix(w.Text, "@") {
			parts = 2
		}
		w.Text = strings.Join(strings.SplitN(w.Text, "/", parts+1)[:min(parts, strings.Count(w.Text, "/")+1)], "/")
	}
	r.result.Packages = append(r.result.Packages, Package{w, registry})
	return true
}

// packageRegistry returns the registry in which the program looks up package names; "" if the
// syntax of the program and of its subcommands names no registry.
func (r *argParser) packageRegistry() string {
	for d := r.enteredSyntaxCount - 1; d >= 0; d-- {
		if r.syntaxBySubcommandDepth[d].packageRegistry != "" {
			return r.syntaxBySubcommandDepth[d].packageRegistry
		}
	}
	return ""
}

// splitPackageList returns the packages in a word: uv takes a comma-separated list; commas can also occur in extras and
// version ranges.
func (r *argParser) splitPackageList(w Word) (out []Word) {
	for r.packageRegistry() == "pypi" {
		end := strings.IndexByte(w.Text, ',')
		if end < 0 || strings.ContainsAny(w.Text[:end], "<>=!~[; ") {
			break
		}
		one := w
		one.Text = w.Text[:end]
		out, w = append(out, one), skipBytes(w, end+1)
	}
	return append(out, w)
}

// splitNPMAlias splits an npm alias, which installs a package under another name: NAME@npm:OTHER, or the setting
// dependencies.NAME=npm:OTHER.
func splitNPMAlias(s string) (aliasName, packageSpec string, ok bool) {
	if aliasName, packageSpec, ok = strings.Cut(s, "@npm:"); ok {
		return aliasName, packageSpec, aliasName != ""
	}
	if aliasName, packageSpec, ok = strings.Cut(s, "=npm:"); ok {
		_, aliasName, ok = strings.Cut(aliasName, ".")
	}
	return aliasName, packageSpec, ok
}

// AliasOmitsPackageName reports whether the alias of an npm package hides which package it is.
func AliasOmitsPackageName(aliasName, packageSpec string) bool {
	if i := strings.LastIndexByte(packageSpec, '@'); i > 0 {
		packageSpec = packageSpec[:i]
	}
	last := packageSpec[strings.LastIndexByte(packageSpec, '/')+1:]
	return packageSpec != "" && !strings.Contains(aliasName, last) && !Aliases[aliasName+"/"+packageSpec]
}

// githubShorthand matches npm's short form of a GitHub repository, after an optional package name.
var githubShorthand = prefilter.LazyRegexp(`^(?:@[\w.-]+/)?(?:[\w.-]+@)?([\w-][\w.-]*/[\w.-]+(?:#\S*)?)$`)

// addNPMPackage records a package for a program that accepts npm's package names, in which
// USER/REPO means a GitHub repository.
func (r *argParser) addNPMPackage(w Word) {
	if m := githubShorthand().FindStringSubmatch(w.Text); m != nil && !w.IsGlobPattern && (m[1] == w.Text || strings.Contains(w.Text, "@"+m[1])) {
		w.Text = "github:" + m[1]
	}
	r.addPackage(w)
}

// addPackageAndReturnCommand records the package in the first word, unless an option names it, and returns the command that the
// package provides.
func (r *argParser) addPackageAndReturnCommand(words []Word) []Word {
	brought := false // whether an option, such as npx --package, names the package
	for _, v := range r.values {
		brought = brought || v.role == argRolePackageProvidingProgram
	}
	if !brought {
		r.addNPMPackage(words[0])
	}
	return stripPackageVersionAndScope(words)
}

// stripPackageVersionAndScope returns the command that a package provides, without version and scope.
func stripPackageVersionAndScope(words []Word) []Word {
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

// addNPMCreateTemplate records the package that "npm create NAME" runs, or the repository that "bun create" copies.
func (r *argParser) addNPMCreateTemplate(w Word) {
	name, version, _ := strings.Cut(w.Text, "@")
	scope, rest, scoped := strings.Cut(version, "/")
	switch {
	case githubShorthand().MatchString(w.Text) && name != "":
		r.addNPMPackage(w)
		return
	case strings.Contains(name, "/") || urlScheme(w.Text) != "" || hasPrefix(w.Text, "."):
		r.applyPackageRole(argRoleTemplateRepository, w)
		return
	case name != "": // NAME or NAME@VERSION
		w.Text = "create-" + name
	case scoped:
		w.Text = "@" + scope + "/create-" + rest
	default:
		w.Text = "@" + version + "/create"
	}
	w.Text = "npm:" + w.Text
	r.addRegistryPrefixedPackage(w)
}

// addGoModulePath records a Go module, and its source if that is not a well-known code host.
func (r *argParser) addGoModulePath(w Word) {
	w = skipBytes(w, strings.LastIndexByte(w.Text, '=')+1)
	host, _, _ := strings.Cut(w.Text, "/")
	if w.IsGlobPattern || !strings.Contains(host, ".") || strings.Trim(host, ".") == "" {
		return
	}
	r.result.Packages = append(r.result.Packages, Package{w, "go"})
	w.Text = "https://" + w.Text
	r.addPlugin(w)
}

// applyPackageRole handles a word that names a package or module.
func (r *argParser) applyPackageRole(role argRole, w Word) {
	switch role {
	case argRolePackage:
		for _, one := range r.splitPackageList(w) {
			r.addPackage(one)
		}
	case argRoleNPMPackage, argRolePackageProvidingProgram:
		r.addNPMPackage(w)
	case argRoleNPMCreateTemplate:
		r.addNPMCreateTemplate(w)
	case argRoleTemplateRepository:
		if r.addPlugin(w); FileLanguage(w.Text) != "" {
			break
		}
		r.result.Packages = append(r.result.Packages, Package{w, "repository"})
	case argRoleGoModulePath:
		r.addGoModulePath(w)
	case argRoleGoProgram:
		built := w
		if strings.IndexByte("./~", (w.Text + " ")[0]) >= 0 || strings.HasSuffix(w.Text, ".go") {
			built = r.resolveInBaseFolder(w)
		}
		r.result.BuiltSourcePackagesOrFolders = append(r.result.BuiltSourcePackagesOrFolders, built)
		if strings.Contains(w.Text, "@") {
			r.addGoModulePath(w)
		} else if host, _, below := strings.Cut(w.Text, "/"); below && strings.Contains(strings.TrimLeft(host, "."), ".") && !w.IsGlobPattern {
			r.result.Packages = append(r.result.Packages, Package{w, "go"})
		} else if hasPrefix(w.Text, ".") || hasPrefix(w.Text, "/") || strings.HasSuffix(w.Text, ".go") {
			r.addOperandEffect(effect.ReadFile, w, false)
		}
	}
}

package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/manifest"
)

// recordProgramInstalls records that an installer may replace a protected program. This is so if it installs,
// outside the workspace, shield, sh or timeout (which run shield as a hook) or, unless it comes from a package
// registry, a program with the name of an agent host or a login program; or programs of unknown names into a
// folder that contains shield, a program of shield's hook command or an agent host. Other installations are not
// recorded.
func (s *analysisState) recordProgramInstalls(base string, argv []abstract.Value) {
	if s.remoteOrContainerDepth > 0 {
		return
	}
	words := commandWords(argv)
	words[0].Text = base
	for _, in := range command.FindInstallations(words) {
		folders := s.installFolders(in)
		if len(folders) == 0 {
			continue
		}
		p := s.installedProgramNames(in)
		for _, folder := range folders {
			s.recordInstalledPrograms(base, folder, p, wordsSpan(argv))
		}
	}
}

// An installedPrograms lists the programs that an installation adds.
type installedPrograms struct {
	fromPathOrURL, fromPackageRegistry []string // names of programs from a local path or URL, and from a registry
	hasUnknownNames                    bool     // there are also programs of unknown names
}

// recordInstalledPrograms records an effect of kind [effect.TamperWithShield] if an installation into a folder
// outside the workspace may replace shield, a program of its hook command, an agent host or a login program. An
// empty folder means that the folder is unknown.
func (s *analysisState) recordInstalledPrograms(base, folder string, p installedPrograms, at effect.CommandTextSpan) {
	if s.initialPathContext.IsInsideRoots(folder, false, false) || folder == "" && len(p.fromPathOrURL)+len(p.fromPackageRegistry) == 0 {
		return
	}
	where := " into " + abstract.ClipForMessage(folder)
	if folder == "" {
		where = ""
	}
	e := effect.Effect{Kind: effect.TamperWithShield, Program: base, Certainty: effect.Possible, Span: at}
	for i, name := range slices.Concat(p.fromPathOrURL, p.fromPackageRegistry) {
		name = programName(name)
		own := name == shieldProgramName || command.GuardLine[name]
		if !own && (i >= len(p.fromPathOrURL) || !command.GuardHosts[name] && !command.LoginPrograms[name]) {
			continue
		}
		e.Certainty = effect.CertainOrPossible(folder != "" && isShieldOrHostProgram(name))
		e.Reason = base + " installs a program named " + name + where + ", which runs instead of the program with that name (PATH hijack)"
		s.emitOnce(e)
		return
	}
	if p.hasUnknownNames && folder != "" {
		if holds := s.shieldOrHostProgramNameIn(folder); holds != "" {
			e.Reason = base + " installs programs whose names are unknown" + where + ", where they can replace " + holds
			s.emitOnce(e)
		}
	}
}

// shieldOrHostProgramNameIn returns the name of a program that a folder contains and that shield's protection
// depends on; "" if there is none.
func (s *analysisState) shieldOrHostProgramNameIn(folder string) string {
	if !s.canReadFiles() {
		return "" // the command runs on a different file system
	}
	for _, name := range shieldAndHostPrograms() {
		if s.mayFileExist(path.Join(folder, name)) {
			return name
		}
	}
	return ""
}

// mayFileExist reports whether a path exists, or may exist because it cannot be read. It returns
// false if the analysis has no function that reads files (effect.PathContext.ReadScript).
func (s *analysisState) mayFileExist(filePath string) bool {
	if s.initialPathContext.ReadScript == nil {
		return false
	}
	_, err := s.initialPathContext.ReadScript(filePath)
	return !errors.Is(err, fs.ErrNotExist)
}

// installFolders returns the folders into which an installer puts programs; "" is an unknown folder.
func (s *analysisState) installFolders(in command.Installation) []string {
	var out []string
	add := func(v abstract.Value) {
		p, pattern := s.workingFolderContext().CanonicalPath(v.Text, v.IsGlobPattern)
		switch {
		case pattern:
			p = ""
		case s.initialPathContext.ResolveLinks != nil:
			p = s.initialPathContext.ResolveLinks(p)
		}
		for _, l := range s.fileLinks {
			if rest, ok := strings.CutPrefix(p, l.linkPath); ok && (rest == "" || rest[0] == '/') {
				p = strings.TrimSuffix(l.targetPath, "/") + rest
			}
		}
		out = append(out, p)
	}
	for _, w := range in.TargetFolders {
		if in.ProgramNameLookupMethod != "go" || len(in.DefaultBinFolders) > 0 || strings.HasSuffix(w.Text, "/") || isBinFolder(path.Base(w.Text)) {
			add(abstract.Value{Text: w.Text, IsGlobPattern: w.IsGlobPattern})
		}
	}
	if in.ProgramNameLookupMethod == "" && !in.OperandsAreRegistryNames {
		// A program such as make installs below the prefix that a configure step earlier in the command set.
		for i := range s.effects {
			for _, a := range s.effects[i].Args {
				for _, option := range [...]string{"--prefix=", "-DCMAKE_INSTALL_PREFIX=", "-DCMAKE_INSTALL_PREFIX:PATH=", "-Dprefix="} {
					if folder, ok := strings.CutPrefix(a, option); ok && s.effects[i].Kind == effect.Execute {
						add(abstract.Lit(strings.TrimSuffix(folder, "/") + "/bin"))
					}
				}
			}
		}
	}
	if len(in.TargetFolders)+len(out) > 0 {
		return out
	}
	for _, candidate := range in.DefaultBinFolders {
		name, variable := strings.CutPrefix(candidate, "$")
		if !variable {
			add(abstract.Lit(candidate))
			return out
		}
		name, rest, below := strings.Cut(name, "/")
		if b, ok := s.lookup(name); ok && b.val.Text != "" {
			v := b.val
			if v.Text, _, _ = strings.Cut(v.Text, ":"); below {
				v.Text = strings.TrimSuffix(v.Text, "/") + "/" + rest
			}
			add(v)
			return out
		}
	}
	if in.ProgramNameLookupMethod == "npm" || in.ProgramNameLookupMethod == "python" {
		return []string{""}
	}
	return nil
}

// installedProgramNames returns the programs that an installation adds.
func (s *analysisState) installedProgramNames(in command.Installation) (p installedPrograms) {
	for _, w := range in.ProgramNames {
		p.fromPathOrURL = append(p.fromPathOrURL, path.Base(w.Text))
	}
	if in.ProgramNameLookupMethod == "applets" {
		p.fromPathOrURL, p.hasUnknownNames = append(p.fromPathOrURL, "timeout", "sh"), true
		return p
	}
	sources := in.Sources
	if len(sources) == 0 && len(in.ProgramNames) == 0 {
		if in.ProgramNameLookupMethod == "" || in.ProgramNameLookupMethod == "operand" || in.ProgramNameLookupMethod == "url" {
			p.hasUnknownNames = true
			return p
		}
		sources = []command.Word{{Text: "."}}
	}
	for _, w := range sources[:min(len(sources), maxItemsPerAnalyzedList)] {
		switch {
		case w.IsGlobPattern:
			p.hasUnknownNames = true
		case in.ProgramNameLookupMethod == "go":
			s.addGoPrograms(w, &p)
		case isPathOrURL(w.Text):
			s.addManifestPrograms(in.ProgramNameLookupMethod, w, &p)
		case in.OperandsAreRegistryNames:
			p.fromPackageRegistry = append(p.fromPackageRegistry, packageNameWithoutVersion(w.Text))
		case in.ProgramNameLookupMethod == "operand":
			p.fromPathOrURL = append(p.fromPathOrURL, path.Base(w.Text))
		case in.ProgramNameLookupMethod == "url":
			name := w.Text[strings.LastIndexAny(w.Text, "/#:")+1:]
			p.fromPathOrURL = append(p.fromPathOrURL, strings.TrimSuffix(name, path.Ext(name)))
		case in.ProgramNameLookupMethod == "npm", in.ProgramNameLookupMethod == "python", in.ProgramNameLookupMethod == "cargo":
			s.addManifestPrograms(in.ProgramNameLookupMethod, w, &p)
		default:
			p.hasUnknownNames = true
		}
	}
	return p
}

// isPathOrURL reports whether an installed package is given by a path or URL, and not by a registry name.
func isPathOrURL(text string) bool {
	for _, start := range [...]string{".", "/", "~", "file:", "git+", "git@", "http:", "https:", "ssh:", "hg+"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	for _, end := range [...]string{".whl", ".tar.gz", ".tgz", ".zip", ".gem", ".nupkg", ".rockspec", ".rock", "/"} {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return strings.Contains(text, "@file:") || strings.Contains(text, " @ ")
}

// packageNameWithoutVersion returns the name of a package without scope, version and extras.
func packageNameWithoutVersion(packageSpec string) string {
	if i := strings.IndexAny(packageSpec[min(len(packageSpec), 1):], "@=<>~![;"); i >= 0 {
		packageSpec = packageSpec[:i+1]
	}
	return strings.TrimSpace(path.Base(packageSpec))
}

// addGoPrograms adds the programs of a Go package to p.
func (s *analysisState) addGoPrograms(w command.Word, p *installedPrograms) {
	names := s.goProgramNames(w)
	if !isPathOrURL(w.Text) && !strings.HasSuffix(w.Text, ".go") {
		p.fromPackageRegistry = append(p.fromPackageRegistry, names...)
		return
	}
	p.fromPathOrURL = append(p.fromPathOrURL, names...)
	folder, many := strings.CutSuffix(w.Text, "...")
	if !many {
		if name := path.Base(w.Text); len(names) == 0 && strings.Trim(name, ".~/") != "" {
			p.fromPathOrURL = append(p.fromPathOrURL, name)
		} else if len(names) == 0 {
			p.hasUnknownNames = true
		}
		return
	}
	dir, pattern := s.workingFolderContext().CanonicalPath(strings.TrimSuffix(folder, "/")+"/", false)
	if pattern {
		p.hasUnknownNames = true
		return
	}
	p.fromPathOrURL = append(p.fromPathOrURL, s.goProgramNames(command.Word{Text: dir})...)
	for _, name := range shieldAndHostPrograms() {
		if s.canReadFiles() && (s.mayFileExist(path.Join(dir, name, "main.go")) || s.mayFileExist(path.Join(dir, "cmd", name))) {
			p.fromPathOrURL = append(p.fromPathOrURL, name)
		}
	}
}

// canReadFiles reports whether the analysis can tell that a file does not exist: it tests a path that exists
// nowhere. The result is false if files cannot be read, for example because the command runs on a different file
// system. Without a function that reads files (effect.PathContext.ReadScript) the result is true, because
// mayFileExist then returns false for every path.
func (s *analysisState) canReadFiles() bool { return !s.mayFileExist("/.shield/no/such/file") }

// addManifestPrograms adds to installed the programs that a folder's manifest declares.
func (s *analysisState) addManifestPrograms(manifestKind string, folderWord command.Word, installed *installedPrograms) {
	text := folderWord.Text
	for _, cutAt := range [...]string{"@file:", "file://", "file:"} {
		if i := strings.Index(text, cutAt); i >= 0 {
			text = text[i+len(cutAt):]
		}
	}
	if i := strings.IndexByte(text, '['); i > 0 {
		text = text[:i]
	}
	if text == "" {
		text = "."
	}
	folder, pattern := s.workingFolderContext().CanonicalPath(text, false)
	if pattern || strings.Contains(folderWord.Text, "://") && !strings.HasPrefix(folderWord.Text, "file:") {
		installed.fromPathOrURL, installed.hasUnknownNames = append(installed.fromPathOrURL, strings.TrimSuffix(path.Base(text), ".git")), true
		return
	}
	read := func(name string) string {
		text, _ := s.fileText(path.Join(folder, name))
		return text
	}
	var names []string
	known := false
	switch manifestKind {
	case "npm":
		names, known = manifest.NPMProgramNames(read("package.json"))
	case "python":
		names, known = manifest.PythonProgramNames(read("pyproject.toml"), read("setup.cfg"))
		known = known && read("setup.py") == ""
	case "cargo":
		names, known = manifest.CargoProgramNames(read("Cargo.toml"))
		for _, name := range shieldAndHostPrograms() {
			if s.canReadFiles() && (s.mayFileExist(path.Join(folder, "src/bin", name+".rs")) || s.mayFileExist(path.Join(folder, "src/bin", name))) {
				names = append(names, name)
			}
		}
	}
	installed.fromPathOrURL, installed.hasUnknownNames = append(installed.fromPathOrURL, names...), installed.hasUnknownNames || !known
}

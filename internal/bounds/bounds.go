// Package bounds computes the containment profile (package contain) of a program: for a command from its judged
// effects, for an MCP server from its program and the user's grants. Credentials are hidden, except those that
// the program itself uses; only the workspace, the paths of the effects or of the user's grants, and the
// program's caches are writable.
package bounds

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A ContainedProgramContext is the environment in which a program starts.
type ContainedProgramContext struct {
	Home           string   // the user's home folder
	WorkspaceRoots []string // the folders of the workspace
	ShieldPaths    []string // files and folders of shield, to hide
	CommandArgv    []string // the command line; paths below /tmp in it stay visible
}

// UserGrantsForServer are paths that the user allows a server in addition to its workspace.
type UserGrantsForServer struct {
	Read, Write []string // files and folders; Read also makes hidden ones readable
	NoNetwork   bool
}

// An UncontainableCommandError says why a command cannot be contained.
type UncontainableCommandError struct{ Why string }

func (e *UncontainableCommandError) Error() string {
	return "this command cannot be contained: " + e.Why
}

// OfCommand returns the profile for a command with the given effects. The error is an
// [*UncontainableCommandError] if containment would prevent a judged effect.
func OfCommand(effects []effect.Effect, at ContainedProgramContext) (*contain.Profile, error) {
	b := newProfileBuilder(at)
	for i := range effects {
		if e := &effects[i]; (e.Kind == effect.ReadFile || e.Kind == effect.RunCode) && !launch.IsSystemProgramFolder(filepath.Dir(e.Path)) {
			b.readOrExecutedFileNames[filepath.Base(e.Path)] = true
		}
	}
	for i := range effects {
		if err := b.addEffect(&effects[i]); err != nil {
			return nil, err
		}
	}
	return b.buildProfile()
}

// OfServer returns the profile for a server started by a program. A server has no judged effects, so it gets the
// workspace, its program's caches and credentials, and the user's grants.
func OfServer(program string, at ContainedProgramContext, g UserGrantsForServer) (*contain.Profile, error) {
	b := newProfileBuilder(at)
	b.allowsNetwork = !g.NoNetwork
	b.addCachesAndCredentials(program)
	for _, path := range g.Read {
		b.addReadable(path)
	}
	for _, path := range g.Write {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("containment: a writable path of the server cannot be resolved: %w; create the path, or correct contain.write", err)
		}
		b.writablePaths = append(b.writablePaths, real)
		b.pathsExemptFromReadOnly = append(b.pathsExemptFromReadOnly, real)
	}
	return b.buildProfile()
}

// A profileBuilder collects the paths of a profile.
type profileBuilder struct {
	ContainedProgramContext
	hiddenPaths, visibleTmpPaths, writablePaths []string
	pathsExemptFromReadOnly                     []string // paths that the command is meant to write, which are not made read-only
	foldersToCreate                             []string // writable folders that must be created before the program starts
	allowsNetwork                               bool
	entryNameSetsByGlobFolder                   map[string]map[string]bool // names in folders, cached by canGlobMatchExistingFile
	readOrExecutedFileNames                     map[string]bool            // names of files that the command reads or runs; a program with one of these names gets no credentials
}

func newProfileBuilder(at ContainedProgramContext) *profileBuilder {
	b := &profileBuilder{ContainedProgramContext: at, readOrExecutedFileNames: map[string]bool{}, entryNameSetsByGlobFolder: map[string]map[string]bool{}}
	if real, err := filepath.EvalSymlinks(at.Home); err == nil {
		b.Home = real
	}
	b.WorkspaceRoots = nil
	for _, root := range at.WorkspaceRoots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			b.WorkspaceRoots = append(b.WorkspaceRoots, real)
		}
	}
	b.collectHiddenPaths()
	return b
}

// collectHiddenPaths collects the hidden paths: credentials and other secrets, browser profiles, wallets,
// private messages, files of shield outside the workspace, and .env files in the folders next to the workspace.
func (b *profileBuilder) collectHiddenPaths() {
	for _, list := range []string{"credential_stores", "browser_data", "wallets", "system_secrets", "secret_names", "private_messages"} {
		globs, _ := knowledge.GlobsOfPathList(list)
		for _, glob := range globs {
			b.hideGlob(glob)
		}
	}
	for _, path := range b.ShieldPaths {
		if !contain.Within(path, b.WorkspaceRoots) { // paths of shield inside the workspace stay readable; buildProfile makes them read-only
			b.hideTree(path)
		}
	}
	for _, root := range b.WorkspaceRoots {
		beside, _ := filepath.Glob(escapeGlob(filepath.Dir(root)) + "/*/.env*")
		for _, path := range beside {
			if !contain.Within(path, b.WorkspaceRoots) && effect.IsSecretPath(path, false) {
				b.hidePath(path)
			}
		}
	}
}

// escapeGlob escapes a path for use in a [filepath.Glob] pattern.
func escapeGlob(path string) string {
	if !strings.ContainsAny(path, `\*?[`) {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// hideGlob hides the matches of a glob of package knowledge, in the home folder or absolute. A glob
// that can match anywhere is skipped.
func (b *profileBuilder) hideGlob(glob string) {
	for _, g := range effect.ExpandBraces(glob) {
		if rest, ok := strings.CutPrefix(g, "~/"); ok && b.Home != "" {
			g = escapeGlob(b.Home) + "/" + rest
		}
		if !strings.HasPrefix(g, "/") || strings.HasPrefix(g, "/proc/") || strings.HasPrefix(g, "/dev/") {
			continue // skip globs that can match anywhere, and globs in /proc and /dev, to which access is restricted separately
		}
		if !b.canGlobMatchExistingFile(g) {
			continue
		}
		g, _, tree := strings.Cut(g, "/**") // hide a folder before /** as a whole
		paths, err := filepath.Glob(g)
		if err != nil {
			continue
		}
		for _, path := range paths {
			if tree {
				b.hideTree(path)
			} else {
				b.hidePath(path)
			}
		}
	}
}

// canGlobMatchExistingFile reports whether a glob can match an existing file. It returns false if
// the glob is below the home folder or a workspace root, and the first path element of the glob
// below that folder is a literal name that does not exist there. This cheap test excludes most
// globs.
func (b *profileBuilder) canGlobMatchExistingFile(pattern string) bool {
	for _, dir := range append([]string{b.Home}, b.WorkspaceRoots...) {
		rest, ok := strings.CutPrefix(pattern, escapeGlob(dir)+"/")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(rest, "/")
		if strings.ContainsAny(first, `*?[\\`) {
			return true
		}
		names, known := b.entryNameSetsByGlobFolder[dir]
		if !known {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return true
			}
			names = map[string]bool{}
			for _, e := range entries {
				names[e.Name()] = true
			}
			b.entryNameSetsByGlobFolder[dir] = names
		}
		if !names[first] {
			return false
		}
	}
	return true
}

// hidePath adds a file or folder to the paths whose content the contained program cannot read, unless it
// contains the workspace or the home folder.
func (b *profileBuilder) hidePath(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && real != "/" && !contain.FolderHoldsAny(real, b.WorkspaceRoots) && !contain.FolderHoldsAny(real, []string{b.Home}) {
		b.hiddenPaths = append(b.hiddenPaths, real)
	}
}

// hideTree hides a folder, and the targets of its symbolic links in the home folder.
func (b *profileBuilder) hideTree(path string) {
	b.hidePath(path)
	for _, real := range symlinkTargetsInsideHome(path, b.Home) {
		b.hidePath(real)
	}
}

// symlinkTargetsInsideHome returns the targets in the home folder of a folder's symbolic links.
func symlinkTargetsInsideHome(folderWithLinks, home string) (out []string) {
	f, err := os.Open(folderWithLinks)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(-1)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(folderWithLinks, e.Name())); err == nil && real != home && contain.Within(real, []string{home}) {
			out = append(out, real)
		}
	}
	return out
}

// addEffect adds the paths that an effect needs.
func (b *profileBuilder) addEffect(e *effect.Effect) error {
	if why := uncontainableReasonByEffectKind[e.Kind]; why != "" {
		return &UncontainableCommandError{cmp.Or(e.Reason, "it "+why)}
	}
	switch e.Kind {
	case effect.Execute:
		if why := knowledge.WhyNotSandboxed(e.Program); why != "" {
			return &UncontainableCommandError{e.Program + " " + why}
		}
		b.addCachesAndCredentials(e.Program)
		b.allowsNetwork = b.allowsNetwork || e.Class == effect.Network
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.SendData, effect.ChangeRemoteSystem:
		b.allowsNetwork = true
	case effect.ReadFile, effect.RunCode, effect.ReadSecret:
		if e.Path != "" && !e.PathIsPattern {
			b.addReadable(e.Path)
		}
	case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
		if e.Path != "" {
			return b.addWritable(e)
		}
	}
	return nil
}

// uncontainableReasonByEffectKind maps the kinds of effects that containment would prevent,
// although they change no file, to the reason why the command cannot run contained.
var uncontainableReasonByEffectKind = map[effect.Kind]string{
	effect.ChangePrivilege:  "it changes its privileges; run it without --contain",
	effect.ChangeSystem:     "it changes the system; run it without --contain",
	effect.StopProcess:      "it stops other processes; run it without --contain",
	effect.ReadClipboard:    "it reads the screen, the keyboard or the memory of other programs; run it without --contain",
	effect.RemoteShell:      "it gives another machine a shell (reverse shell); do not run it",
	effect.TamperWithShield: "it changes shield; do not run it",
}

// addCachesAndCredentials adds a program's caches, which are created if missing, and the credentials of its own
// service.
func (b *profileBuilder) addCachesAndCredentials(programNameOrPath string) {
	caches, credentials := knowledge.CachesAndCredentialFiles(filepath.Base(programNameOrPath))
	another := strings.ContainsRune(programNameOrPath, '/') && !launch.IsSystemProgramFolder(filepath.Dir(programNameOrPath)) || b.readOrExecutedFileNames[programNameOrPath] // a path to a different program of the same name
	for _, glob := range caches {
		for _, path := range b.expandGlob(glob) {
			if another && !contain.Within(path, b.WorkspaceRoots) {
				continue
			}
			if real, exists, err := resolveSymlinks(path); err == nil {
				b.pathsExemptFromReadOnly = append(b.pathsExemptFromReadOnly, real)
				if !exists && !contain.Within(real, b.WorkspaceRoots) {
					b.foldersToCreate = append(b.foldersToCreate, real)
				}
				if !contain.Within(real, b.WorkspaceRoots) {
					b.writablePaths = append(b.writablePaths, real)
				}
			}
		}
	}
	if another {
		return
	}
	for _, glob := range credentials {
		for _, path := range b.expandGlob(glob) {
			for _, real := range append(symlinkTargetsInsideHome(path, b.Home), path) {
				b.addReadable(real)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil { // path contains only credentials of this program, so nothing in it stays hidden
				b.hiddenPaths = slices.DeleteFunc(b.hiddenPaths, func(h string) bool { return contain.Within(h, []string{real}) })
			}
		}
	}
}

// expandGlob expands braces and the prefixes ~/ and $WORKSPACE/ in a glob from package knowledge.
// It drops globs without such a prefix.
func (b *profileBuilder) expandGlob(glob string) (out []string) {
	for _, g := range effect.ExpandBraces(glob) {
		if rest, ok := strings.CutPrefix(g, "~/"); ok && b.Home != "" {
			out = append(out, filepath.Join(b.Home, rest))
		} else if rest, ok := strings.CutPrefix(g, "$WORKSPACE/"); ok {
			for _, root := range b.WorkspaceRoots {
				out = append(out, filepath.Join(root, rest))
			}
		}
	}
	return out
}

// addReadable makes a path readable that is hidden or in /tmp.
func (b *profileBuilder) addReadable(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	if contain.Within(real, []string{"/tmp"}) && real != "/tmp" {
		b.visibleTmpPaths = append(b.visibleTmpPaths, real)
	}
	for i := 0; i < len(b.hiddenPaths); i++ {
		h := b.hiddenPaths[i]
		switch {
		case h == real:
		case contain.Within(real, []string{h}): // other files in the folder stay hidden
			entries, err := os.ReadDir(h)
			if err != nil {
				continue
			}
			for _, e := range entries {
				b.hiddenPaths = append(b.hiddenPaths, filepath.Join(h, e.Name()))
			}
		default:
			continue
		}
		b.hiddenPaths = slices.Delete(b.hiddenPaths, i, i+1)
		i--
	}
}

// addWritable makes the path of an effect writable: the file itself, or its folder if names are
// created or removed.
func (b *profileBuilder) addWritable(e *effect.Effect) error {
	path := e.Path
	if i := strings.IndexAny(path, `*?[\`); e.PathIsPattern && i >= 0 {
		path = path[:strings.LastIndexByte(path[:i], '/')+1]
	}
	path = filepath.Clean(path)
	real, exists, err := resolveSymlinks(path)
	if err != nil {
		return &UncontainableCommandError{err.Error()}
	}
	if slices.Contains(outputDevices, real) {
		return nil
	}
	b.pathsExemptFromReadOnly = append(b.pathsExemptFromReadOnly, real)
	if contain.Within(real, b.WorkspaceRoots) {
		return nil
	}
	stays := e.Kind == effect.WriteFile || e.Kind == effect.ChangePermissions || e.Kind == effect.Persist || e.Kind == effect.CreateDirectory || e.PathIsPattern
	if exists && stays {
		info, err := os.Stat(real)
		if err != nil {
			return &UncontainableCommandError{err.Error()}
		}
		if !info.IsDir() || !b.isTooWideToMakeWritable(real) {
			b.writablePaths = append(b.writablePaths, real)
			return nil
		}
	}
	folder := filepath.Dir(real) // the folder, or its nearest existing parent
	for info, err := os.Stat(folder); err != nil || !info.IsDir(); info, err = os.Stat(folder) {
		folder = filepath.Dir(folder)
	}
	if b.isTooWideToMakeWritable(folder) {
		return &UncontainableCommandError{fmt.Sprintf("the command changes files in %s, a folder that also contains protected files; change files in a subfolder without protected files", folder)}
	}
	b.writablePaths = append(b.writablePaths, folder)
	return nil
}

// outputDevices discard or consume output and keep no data.
var outputDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdout", "/dev/stderr"}

// isTooWideToMakeWritable reports whether a folder must not be writable as a whole: it contains the home folder,
// something hidden, or files that are executed later, or it is / or a folder directly below / other than /tmp.
func (b *profileBuilder) isTooWideToMakeWritable(folder string) bool {
	return contain.FolderHoldsAny(folder, []string{b.Home}) || contain.FolderHoldsAny(folder, b.hiddenPaths) || strings.Count(folder, "/") < 2 && folder != "/tmp" || len(b.autostartAndAgentSettingsPaths(folder)) > 0
}

// resolveSymlinks returns a path without symbolic links, and whether it exists.
func resolveSymlinks(path string) (real string, exists bool, err error) {
	var rest []string
	for p := path; ; p = filepath.Dir(p) {
		switch real, err := filepath.EvalSymlinks(p); {
		case err == nil:
			slices.Reverse(rest)
			return filepath.Join(append([]string{real}, rest...)...), len(rest) == 0, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", false, err
		}
		if _, err := os.Lstat(p); err == nil {
			return "", false, fmt.Errorf("%s is a symbolic link to a file that does not exist; remove the link", p)
		}
		rest = append(rest, filepath.Base(p))
	}
}

// autostartAndAgentSettingsPaths returns the files in a folder that are executed later or instruct an agent.
func (b *profileBuilder) autostartAndAgentSettingsPaths(folder string) (out []string) {
	for _, list := range []string{"agent_settings", "starts_later"} {
		globs, _ := knowledge.GlobsOfPathList(list)
		for _, glob := range globs {
			for _, g := range effect.ExpandBraces(glob) {
				rest, float := strings.CutPrefix(g, "**/")
				home, inHome := strings.CutPrefix(g, "~/")
				switch {
				case float:
					g = escapeGlob(folder) + "/" + rest
				case inHome && contain.Within(folder, []string{b.Home}):
					g = escapeGlob(b.Home) + "/" + home
				default:
					continue
				}
				if !b.canGlobMatchExistingFile(g) {
					continue
				}
				g, _, _ = strings.Cut(g, "/**")
				paths, _ := filepath.Glob(g)
				for _, path := range paths {
					if real, err := filepath.EvalSymlinks(path); err == nil && contain.Within(real, []string{folder}) && real != folder {
						out = append(out, real)
					}
				}
			}
		}
	}
	return out
}

// buildProfile returns the collected profile.
func (b *profileBuilder) buildProfile() (*contain.Profile, error) {
	for _, word := range b.CommandArgv {
		if real, err := filepath.EvalSymlinks(word); err == nil && filepath.IsAbs(word) && real != "/tmp" && contain.Within(real, []string{"/tmp"}) {
			b.visibleTmpPaths = append(b.visibleTmpPaths, real)
		}
	}
	p := &contain.Profile{HiddenPaths: outermost(b.hiddenPaths), WritablePaths: outermost(append(slices.Clone(b.WorkspaceRoots), b.writablePaths...)), AllowsNetwork: b.allowsNetwork}
	for _, root := range p.WritablePaths {
		for _, path := range b.autostartAndAgentSettingsPaths(root) {
			if !contain.Within(path, b.pathsExemptFromReadOnly) && !contain.FolderHoldsAny(path, b.pathsExemptFromReadOnly) {
				p.ReadOnlyPaths = append(p.ReadOnlyPaths, path)
			}
		}
	}
	for _, path := range slices.Sorted(slices.Values(b.foldersToCreate)) {
		if slices.Contains(p.WritablePaths, path) {
			p.FoldersToCreate = append(p.FoldersToCreate, path)
		}
	}
	for _, path := range b.ShieldPaths {
		if _, err := os.Lstat(path); err == nil && contain.Within(path, b.WorkspaceRoots) {
			p.ReadOnlyPaths = append(p.ReadOnlyPaths, path)
		}
	}
	p.ReadOnlyPaths = outermost(p.ReadOnlyPaths)
	for _, path := range outermost(b.visibleTmpPaths) {
		if !contain.Within(path, p.WritablePaths) {
			p.VisibleInTmp = append(p.VisibleInTmp, path)
		}
	}
	return p, nil
}

// outermost returns the sorted paths without those inside another one.
func outermost(paths []string) []string {
	out := []string{}
	for _, path := range slices.Sorted(slices.Values(paths)) {
		if !contain.Within(path, out) {
			out = append(out, path)
		}
	}
	return out
}

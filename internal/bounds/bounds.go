// Package bounds says what a program needs to reach, as a profile for package contain: what
// the effects of a command say, which this process judged, or what a server is given that
// shield starts. All that holds credentials is hidden; only the workspace, what the effects
// name and the caches of the program can be changed.
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

// A Place is where a program is started.
type Place struct {
	Home  string   // the user's home folder
	Roots []string // the folders of the workspace
	Own   []string // files and folders of shield, which are hidden
	Words []string // the command line: what of it lies in /tmp is seen there
}

// Grants are what a person gives a server beside its workspace.
type Grants struct {
	Read, Write []string // files and folders; Read lifts what is hidden
	NoNetwork   bool
}

// An UnboundedError says why what a command does cannot be contained.
type UnboundedError struct{ Why string }

func (e *UnboundedError) Error() string { return "this command cannot be contained: " + e.Why }

// OfCommand returns the profile of a command by its effects, all of them. It is an
// [*UnboundedError] if containment would stop the command from doing what was judged.
func OfCommand(effects []effect.Effect, at Place) (*contain.Profile, error) {
	b := newBuilder(at)
	for i := range effects {
		if e := &effects[i]; (e.Kind == effect.ReadFile || e.Kind == effect.RunCode) && !launch.StandardFolder(filepath.Dir(e.Path)) {
			b.others[filepath.Base(e.Path)] = true
		}
	}
	for i := range effects {
		if err := b.addEffect(&effects[i]); err != nil {
			return nil, err
		}
	}
	return b.profile()
}

// OfServer returns the profile of a server by the program that it is started by: it has no
// verdict, so that it gets the workspace, what its program keeps, and what a person gives it.
func OfServer(program string, at Place, g Grants) (*contain.Profile, error) {
	b := newBuilder(at)
	b.network = !g.NoNetwork
	b.addProgram(program)
	for _, path := range g.Read {
		b.addReadable(path)
	}
	for _, path := range g.Write {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("containment: write the list of paths: %w", err)
		}
		b.write = append(b.write, real)
		b.free = append(b.free, real)
	}
	return b.profile()
}

// A builder collects a profile.
type builder struct {
	Place
	hidden, shown, write []string
	free                 []string // what is written to on purpose, and so is not fixed
	missing              []string // of write: what is made at the start
	network              bool
	names                map[string]map[string]bool // of folders, see mayMatch
	others               map[string]bool            // names that files have which are read or run, and which may be other programs than those by that name
}

func newBuilder(at Place) *builder {
	b := &builder{Place: at, others: map[string]bool{}, names: map[string]map[string]bool{}}
	if real, err := filepath.EvalSymlinks(at.Home); err == nil {
		b.Home = real
	}
	b.Roots = nil
	for _, root := range at.Roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			b.Roots = append(b.Roots, real)
		}
	}
	b.findHidden()
	return b
}

// findHidden finds what is hidden: credentials, profiles of browsers, wallets, files of shield, and
// the .env files beside the workspace.
func (b *builder) findHidden() {
	for _, list := range []string{"credential_stores", "browser_data", "wallets", "system_secrets", "secret_names", "private_messages"} {
		globs, _ := knowledge.Paths(list)
		for _, glob := range globs {
			b.hideGlob(glob)
		}
	}
	for _, path := range b.Own {
		if !contain.Within(path, b.Roots) { // there it is fixed
			b.hideTree(path)
		}
	}
	for _, root := range b.Roots {
		beside, _ := filepath.Glob(escape(filepath.Dir(root)) + "/*/.env*")
		for _, path := range beside {
			if !contain.Within(path, b.Roots) && effect.SecretPath(path, false) {
				b.hidePath(path)
			}
		}
	}
}

// escape returns a path as a pattern of [filepath.Glob].
func escape(path string) string {
	if !strings.ContainsAny(path, `\*?[`) {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// hideGlob hides what a glob of package knowledge names in the home folder, or by its whole
// path. One that may lie anywhere is not looked for.
func (b *builder) hideGlob(glob string) {
	for _, g := range effect.ExpandBraces(glob) {
		if rest, ok := strings.CutPrefix(g, "~/"); ok && b.Home != "" {
			g = escape(b.Home) + "/" + rest
		}
		if !strings.HasPrefix(g, "/") || strings.HasPrefix(g, "/proc/") || strings.HasPrefix(g, "/dev/") {
			continue // who reads of another process, and of devices, is bounded otherwise
		}
		if !b.mayMatch(g) {
			continue
		}
		g, _, tree := strings.Cut(g, "/**") // a folder in the middle is hidden as a whole
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

// mayMatch reports whether a pattern may match something: not if the home folder or a root,
// whose names are read once, lacks its first name there. Most globs end here.
func (b *builder) mayMatch(pattern string) bool {
	for _, dir := range append([]string{b.Home}, b.Roots...) {
		rest, ok := strings.CutPrefix(pattern, escape(dir)+"/")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(rest, "/")
		if strings.ContainsAny(first, `*?[\\`) {
			return true
		}
		names, known := b.names[dir]
		if !known {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return true
			}
			names = map[string]bool{}
			for _, e := range entries {
				names[e.Name()] = true
			}
			b.names[dir] = names
		}
		if !names[first] {
			return false
		}
	}
	return true
}

// hidePath hides a file, or folder, wherever it lies.
func (b *builder) hidePath(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && real != "/" && !contain.Holds(real, b.Roots) && !contain.Holds(real, []string{b.Home}) {
		b.hidden = append(b.hidden, real)
	}
}

// hideTree is hidePath, and hides what links in the folder lead to in the home folder.
func (b *builder) hideTree(path string) {
	b.hidePath(path)
	for _, real := range linkTargetsInHome(path, b.Home) {
		b.hidePath(real)
	}
}

// linkTargetsInHome returns where the links in a folder lead to in the home folder.
func linkTargetsInHome(folder, home string) (out []string) {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(-1)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(folder, e.Name())); err == nil && real != home && contain.Within(real, []string{home}) {
			out = append(out, real)
		}
	}
	return out
}

// addEffect adds what an effect needs.
func (b *builder) addEffect(e *effect.Effect) error {
	if why := uncontainable[e.Kind]; why != "" {
		return &UnboundedError{cmp.Or(e.Reason, "it "+why)}
	}
	switch e.Kind {
	case effect.Execute:
		if why := knowledge.Outside(e.Program); why != "" {
			return &UnboundedError{e.Program + " " + why}
		}
		b.addProgram(e.Program)
		b.network = b.network || e.Class == effect.Network
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.SendData, effect.ChangeRemote:
		b.network = true
	case effect.ReadFile, effect.RunCode, effect.ReadSecret:
		if e.Path != "" && !e.Pattern {
			b.addReadable(e.Path)
		}
	case effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions, effect.Persist:
		if e.Path != "" {
			return b.addWritable(e)
		}
	}
	return nil
}

// uncontainable are the effects that containment would stop, and why: what they change is not
// below any path.
var uncontainable = map[effect.Kind]string{
	effect.ChangePrivilege: "it changes its privileges; run it without --contain",
	effect.ChangeSystem:    "it changes the system; run it without --contain",
	effect.StopProcess:     "it stops other processes; run it without --contain",
	effect.ReadClipboard:   "it reads the screen, the keyboard or the memory of other programs; run it without --contain",
	effect.RemoteShell:     "it gives another machine a shell (reverse shell); do not run it",
	effect.ChangeGuard:     "it changes shield; do not run it",
}

// addProgram gives a program what it keeps: caches, which are made at the start if they are missing, and the
// credentials of its own service.
func (b *builder) addProgram(name string) {
	caches, credentials := knowledge.Keeps(filepath.Base(name))
	another := strings.ContainsRune(name, '/') && !launch.StandardFolder(filepath.Dir(name)) || b.others[name] // a program by that name
	for _, glob := range caches {
		for _, path := range b.expandGlob(glob) {
			if another && !contain.Within(path, b.Roots) {
				continue
			}
			if real, exists, err := resolve(path); err == nil {
				b.free = append(b.free, real)
				if !exists && !contain.Within(real, b.Roots) {
					b.missing = append(b.missing, real)
				}
				if !contain.Within(real, b.Roots) {
					b.write = append(b.write, real)
				}
			}
		}
	}
	if another {
		return
	}
	for _, glob := range credentials {
		for _, path := range b.expandGlob(glob) {
			for _, real := range append(linkTargetsInHome(path, b.Home), path) {
				b.addReadable(real)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil { // a folder of nothing but its credentials
				b.hidden = slices.DeleteFunc(b.hidden, func(h string) bool { return contain.Within(h, []string{real}) })
			}
		}
	}
}

// expandGlob returns what a glob of an entry stands for here.
func (b *builder) expandGlob(glob string) (out []string) {
	for _, g := range effect.ExpandBraces(glob) {
		if rest, ok := strings.CutPrefix(g, "~/"); ok && b.Home != "" {
			out = append(out, filepath.Join(b.Home, rest))
		} else if rest, ok := strings.CutPrefix(g, "$WORKSPACE/"); ok {
			for _, root := range b.Roots {
				out = append(out, filepath.Join(root, rest))
			}
		}
	}
	return out
}

// addReadable lets a path be read, although it is hidden, or lies in /tmp.
func (b *builder) addReadable(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	if contain.Within(real, []string{"/tmp"}) && real != "/tmp" {
		b.shown = append(b.shown, real)
	}
	for i := 0; i < len(b.hidden); i++ {
		h := b.hidden[i]
		switch {
		case h == real:
		case contain.Within(real, []string{h}): // all that is beside it stays hidden
			entries, err := os.ReadDir(h)
			if err != nil {
				continue
			}
			for _, e := range entries {
				b.hidden = append(b.hidden, filepath.Join(h, e.Name()))
			}
		default:
			continue
		}
		b.hidden = slices.Delete(b.hidden, i, i+1)
		i--
	}
}

// addWritable lets the path of an effect be changed: the file itself, or the folder in which
// names come and go.
func (b *builder) addWritable(e *effect.Effect) error {
	path := e.Path
	if i := strings.IndexAny(path, `*?[\`); e.Pattern && i >= 0 {
		path = path[:strings.LastIndexByte(path[:i], '/')+1]
	}
	path = filepath.Clean(path)
	real, exists, err := resolve(path)
	if err != nil {
		return &UnboundedError{err.Error()}
	}
	if slices.Contains(devices, real) {
		return nil
	}
	b.free = append(b.free, real)
	if contain.Within(real, b.Roots) {
		return nil
	}
	stays := e.Kind == effect.WriteFile || e.Kind == effect.ChangePermissions || e.Kind == effect.Persist || e.Kind == effect.CreateDirectory || e.Pattern
	if exists && stays {
		info, err := os.Stat(real)
		if err != nil {
			return &UnboundedError{err.Error()}
		}
		if !info.IsDir() || !b.tooWide(real) {
			b.write = append(b.write, real)
			return nil
		}
	}
	folder := filepath.Dir(real) // or the first above it that is there
	for info, err := os.Stat(folder); err != nil || !info.IsDir(); info, err = os.Stat(folder) {
		folder = filepath.Dir(folder)
	}
	if b.tooWide(folder) {
		return &UnboundedError{fmt.Sprintf("it changes files in %s, a folder that also holds files it must not change; use a subfolder", folder)}
	}
	b.write = append(b.write, folder)
	return nil
}

// devices take what is written and keep nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdout", "/dev/stderr"}

// tooWide reports whether a folder is too much to be changed as a whole: it holds the home
// folder, something hidden, or files that run later.
func (b *builder) tooWide(folder string) bool {
	return contain.Holds(folder, []string{b.Home}) || contain.Holds(folder, b.hidden) || strings.Count(folder, "/") < 2 && folder != "/tmp" || len(b.filesRunLater(folder)) > 0
}

// resolve returns a path without symbolic links, and whether it is there.
func resolve(path string) (real string, exists bool, err error) {
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

// filesRunLater returns what is in a folder of the files that run later, or tell an agent what to do.
func (b *builder) filesRunLater(folder string) (out []string) {
	for _, list := range []string{"agent_settings", "starts_later"} {
		globs, _ := knowledge.Paths(list)
		for _, glob := range globs {
			for _, g := range effect.ExpandBraces(glob) {
				rest, float := strings.CutPrefix(g, "**/")
				home, inHome := strings.CutPrefix(g, "~/")
				switch {
				case float:
					g = escape(folder) + "/" + rest
				case inHome && contain.Within(folder, []string{b.Home}):
					g = escape(b.Home) + "/" + home
				default:
					continue
				}
				if !b.mayMatch(g) {
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

// profile returns what was collected.
func (b *builder) profile() (*contain.Profile, error) {
	for _, word := range b.Words {
		if real, err := filepath.EvalSymlinks(word); err == nil && filepath.IsAbs(word) && real != "/tmp" && contain.Within(real, []string{"/tmp"}) {
			b.shown = append(b.shown, real)
		}
	}
	p := &contain.Profile{Hidden: outermost(b.hidden), Write: outermost(append(slices.Clone(b.Roots), b.write...)), Network: b.network}
	for _, root := range p.Write {
		for _, path := range b.filesRunLater(root) {
			if !contain.Within(path, b.free) && !contain.Holds(path, b.free) {
				p.Fixed = append(p.Fixed, path)
			}
		}
	}
	for _, path := range slices.Sorted(slices.Values(b.missing)) {
		if slices.Contains(p.Write, path) {
			p.Make = append(p.Make, path)
		}
	}
	for _, path := range b.Own {
		if _, err := os.Lstat(path); err == nil && contain.Within(path, b.Roots) {
			p.Fixed = append(p.Fixed, path)
		}
	}
	p.Fixed = outermost(p.Fixed)
	for _, path := range outermost(b.shown) {
		if !contain.Within(path, p.Write) {
			p.Shown = append(p.Shown, path)
		}
	}
	return p, nil
}

// outermost returns paths without those that lie in another, sorted.
func outermost(paths []string) []string {
	out := []string{}
	for _, path := range slices.Sorted(slices.Values(paths)) {
		if !contain.Within(path, out) {
			out = append(out, path)
		}
	}
	return out
}

package analysis

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/shieldcli/shield/internal/packed"
	"github.com/shieldcli/shield/pkg/effect"
)

// localFileInspector looks at local files for an analysis: it follows symbolic links and reads scripts. All its
// work is bounded. On Linux it avoids file systems that may block, except those of the root folder, the user's
// home folder, the workspace and shield's working folder. Goroutines can share it unless it has an overlay:
// after its creation, only its cache of absent files changes.
type localFileInspector struct {
	devicesAllowedForInspection []uint64 // file systems that are trusted whatever their type
	resolvedWorkspaceRoots      []string // the workspace with links resolved once, each with a final slash
	missingFiles                missingFileCache
	overlay                     FileOverlay // files that replace those on the disk; nil for none
}

const (
	maxComponentLookupsPerPath = 128 // names looked up for one path
	maxSymlinks                = 40  // symbolic links on one path, as in Linux
	maxScriptBytes             = 64 << 10
)

// resolveLinks resolves the symbolic links of a canonical path as far as its names
// exist on local file systems.
func (f *localFileInspector) resolveLinks(path string) string {
	real, _ := f.resolvePath(path)
	return real
}

// newCachingLinkResolver returns a function that resolves symbolic links as [localFileInspector.resolveLinks]
// does, and that caches the folders it has looked up.
func (f *localFileInspector) newCachingLinkResolver() func(path string) string {
	known := symlinkLookupCache{}
	return func(path string) string {
		real, _ := f.resolvePathCached(path, known)
		return real
	}
}

// errPathNotInspected says that shield does not look at a path.
var errPathNotInspected = errors.New("not read")

// resolvePath returns a path with all symbolic links resolved. Its error is [fs.ErrNotExist] if a name on the path
// certainly does not exist, and another error if that is unknown.
func (f *localFileInspector) resolvePath(path string) (real string, err error) {
	return f.resolvePathCached(path, nil)
}

// symlinkLookupCache caches lookups of folder names; a nil map caches nothing.
type symlinkLookupCache map[string]symlinkLookupResult

type symlinkLookupResult struct {
	linkTarget string // target of a symbolic link; "" for anything else
	err        error
}

// lookUpLinkTarget looks up a name; a folder's result is cached.
func (known symlinkLookupCache) lookUpLinkTarget(f *localFileInspector, look *localSymlinkReader, path string, isFolder bool) (target string, err error) {
	if known == nil || !isFolder {
		return f.overlayOrDiskLinkTarget(look, path)
	}
	d, ok := known[path]
	if !ok {
		d.linkTarget, d.err = f.overlayOrDiskLinkTarget(look, path)
		known[path] = d
	}
	return d.linkTarget, d.err
}

// resolvePathCached is [localFileInspector.resolvePath] with a cache of the folders that were looked up.
func (f *localFileInspector) resolvePathCached(path string, known symlinkLookupCache) (real string, err error) {
	if !isPathSafeToInspect(path) {
		return path, errPathNotInspected
	}
	root, rest := splitRoot(path)
	at := root // the resolved part, without a final slash
	for _, r := range f.resolvedWorkspaceRoots {
		if below, ok := strings.CutPrefix(path, r); ok {
			at, rest = r[:len(r)-1], below
			break
		}
	}
	look := f.newLocalLinkLookup()
	hops, lookups := 0, 0
	for rest != "" {
		name, more, _ := strings.Cut(rest, "/")
		switch name {
		case "", ".":
			rest = more
			continue
		case "..":
			if i := strings.LastIndexByte(at, '/'); i >= len(root) {
				at = at[:i]
			}
			rest = more
			continue
		}
		next := ""
		if end := len(at) + 1 + len(name); hops == 0 && end == len(path)-len(rest)+len(name) && path[:len(at)] == at {
			next = path[:end] // no link has been followed so far
		} else {
			next = at + "/" + name
		}
		if lookups++; lookups > maxComponentLookupsPerPath || hops > 0 && !isPathSafeToInspect(next) {
			return joinUnresolved(at, rest), errPathNotInspected
		}
		target, err := known.lookUpLinkTarget(f, &look, next, more != "")
		if err != nil {
			return joinUnresolved(at, rest), err
		}
		if target == "" {
			at, rest = next, more
			continue
		}
		if hops++; hops > maxSymlinks {
			return joinUnresolved(at, rest), errPathNotInspected
		}
		if more != "" {
			target += "/" + more
		}
		if strings.HasPrefix(target, "/") {
			at = root
		}
		rest = strings.TrimPrefix(target, "/")
	}
	if at == root {
		return root + "/", nil
	}
	return at, nil
}

// joinUnresolved appends the part of a path that was not looked up, with "." and ".." resolved.
func joinUnresolved(resolvedPath, unresolvedRest string) string {
	for unresolvedRest != "" {
		name, more, _ := strings.Cut(unresolvedRest, "/")
		unresolvedRest = more
		switch name {
		case "", ".":
		case "..":
			resolvedPath = resolvedPath[:max(strings.LastIndexByte(resolvedPath, '/'), 0)]
		default:
			resolvedPath += "/" + name
		}
	}
	if resolvedPath == "" {
		return "/"
	}
	return resolvedPath
}

// isPathSafeToInspect reports whether shield looks at a path: not on the network, not in folders where a lookup mounts
// something (automount), and not in /proc, whose links would be those of this process.
func isPathSafeToInspect(path string) bool {
	if len(path) > 4096 {
		return false
	}
	if !strings.HasPrefix(path, "/") {
		return len(path) > 2 && path[1] == ':' && path[0] != '?'
	}
	for _, folder := range [...]string{"/proc", "/dev/fd", "/net", "/Network", "/misc", "/afs", "/cygdrive"} {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return false
		}
	}
	return true
}

// readScript reads a local script; it implements [effect.PathContext.ReadScript].
func (f *localFileInspector) readScript(path string) ([]byte, error) {
	real, err := f.resolvePath(path)
	if err != nil {
		return nil, err
	}
	if text, err, known := f.overlayText(real); known {
		if len(text) > maxScriptBytes {
			return nil, effect.ErrScriptTooLarge
		}
		return text, err
	}
	file, err := f.open(real)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxScriptBytes+1))
	switch {
	case err != nil:
		return nil, errPathNotInspected
	case len(text) > maxScriptBytes:
		return nil, effect.ErrScriptTooLarge
	}
	return text, nil
}

// listArchive lists the members of an archive; it implements [effect.PathContext.ListArchive].
func (f *localFileInspector) listArchive(path string, q packed.ReadOptions) ([]packed.Member, error) {
	real, err := f.resolvePath(path)
	if err != nil {
		return nil, err
	}
	if _, _, known := f.overlayText(real); known {
		return nil, errPathNotInspected
	}
	file, err := f.open(real)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, errPathNotInspected
	}
	return packed.Members(file, info.Size(), q)
}

// alwaysNotExistScriptReader is an [effect.PathContext.ReadScript] for which no file exists.
func alwaysNotExistScriptReader(string) ([]byte, error) { return nil, fs.ErrNotExist }

// readRelativeTo returns an [effect.PathContext.ReadScript] for an action that names its folder. If
// that folder does not exist here, the action runs on another machine, and its files are unknown.
func readRelativeTo(folder string, read func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if _, err := read(folder); errors.Is(err, fs.ErrNotExist) {
			return nil, errPathNotInspected
		}
		return read(path)
	}
}

package analysis

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/shieldcli/shield/internal/packed"
)

// files looks at local files for an analysis: it follows symbolic links and reads scripts. All its work is
// bounded. It avoids file systems that may block, except those of the user's home folder and workspace.
// Goroutines share it: only absent changes once it is in use.
type files struct {
	devices []uint64 // file systems that are trusted whatever their type
	roots   []string // the workspace with links resolved once, each with a final slash
	absent  absenceCache
	layer   Layer // files that replace those on the disk; nil for none
}

const (
	maxLookups = 128 // names looked up for one path
	maxHops    = 40  // symbolic links on one path, as in Linux
	maxScript  = 64 << 10
)

// links resolves the symbolic links of a canonical path as far as its names
// exist on local file systems.
func (f *files) links(path string) string {
	real, _ := f.follow(path)
	return real
}

// linker returns a function like links that caches the folders it has looked up.
func (f *files) linker() func(path string) string {
	known := folders{}
	return func(path string) string {
		real, _ := f.followCached(path, known)
		return real
	}
}

// errUnseen says that shield does not look at a path.
var errUnseen = errors.New("not read")

// follow is like links. Its error is [fs.ErrNotExist] if a name on the path certainly does not exist, and
// another error if that is unknown.
func (f *files) follow(path string) (real string, err error) { return f.followCached(path, nil) }

// folders caches lookups of folder names; a nil map caches nothing.
type folders map[string]lookup

type lookup struct {
	target string // of a symbolic link
	err    error
}

// look looks up a name; a folder's result is cached.
func (known folders) look(f *files, look *looker, path string, isFolder bool) (target string, err error) {
	if known == nil || !isFolder {
		return f.at(look, path)
	}
	d, ok := known[path]
	if !ok {
		d.target, d.err = f.at(look, path)
		known[path] = d
	}
	return d.target, d.err
}

// followCached is follow with a cache of folders.
func (f *files) followCached(path string, known folders) (real string, err error) {
	if !lookable(path) {
		return path, errUnseen
	}
	root, rest := cutRoot(path)
	at := root // the resolved part, without a final slash
	for _, r := range f.roots {
		if below, ok := strings.CutPrefix(path, r); ok {
			at, rest = r[:len(r)-1], below
			break
		}
	}
	look := f.newLooker()
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
		if lookups++; lookups > maxLookups || hops > 0 && !lookable(next) {
			return join(at, rest), errUnseen
		}
		target, err := known.look(f, &look, next, more != "")
		if err != nil {
			return join(at, rest), err
		}
		if target == "" {
			at, rest = next, more
			continue
		}
		if hops++; hops > maxHops {
			return join(at, rest), errUnseen
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

// join appends the part of a path that was not looked up, with "." and ".." resolved.
func join(at, rest string) string {
	for rest != "" {
		name, more, _ := strings.Cut(rest, "/")
		rest = more
		switch name {
		case "", ".":
		case "..":
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
		default:
			at += "/" + name
		}
	}
	if at == "" {
		return "/"
	}
	return at
}

// lookable reports whether shield looks at a path: not on the network, not in folders where a lookup mounts
// something (automount), and not in /proc, whose links would be those of this process.
func lookable(path string) bool {
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

// script reads a local script; see [effect.Place].
func (f *files) script(path string) ([]byte, error) {
	real, err := f.follow(path)
	if err != nil {
		return nil, err
	}
	if text, err, known := f.layered(real); known {
		if len(text) > maxScript {
			return nil, errUnseen
		}
		return text, err
	}
	file, err := f.open(real)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > maxScript {
		return nil, errUnseen
	}
	text, err := io.ReadAll(io.LimitReader(file, maxScript+1))
	if err != nil || len(text) > maxScript {
		return nil, errUnseen
	}
	return text, nil
}

// archive lists the members of an archive; see [effect.Place].
func (f *files) archive(path string, q packed.Query) ([]packed.Member, error) {
	real, err := f.follow(path)
	if err != nil {
		return nil, err
	}
	if _, _, known := f.layered(real); known {
		return nil, errUnseen
	}
	file, err := f.open(real)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, errUnseen
	}
	return packed.Members(file, info.Size(), q)
}

// noFile is an [effect.Place.Script] for which no file exists.
func noFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

// readRelativeTo returns an [effect.Place.Script] for an action that names its folder. If that folder does
// not exist here, the action runs on another machine, and its files are unknown.
func readRelativeTo(folder string, read func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if _, err := read(folder); errors.Is(err, fs.ErrNotExist) {
			return nil, errUnseen
		}
		return read(path)
	}
}

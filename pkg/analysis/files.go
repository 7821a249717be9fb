package analysis

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/shieldcli/shield/internal/packed"
)

// files looks at local files for an analysis: it follows symbolic links and
// reads scripts. Everything it does is bounded, and it keeps away from file
// systems that may not answer, but for those that the person works on. Goroutines
// share it: nothing but what was absent changes once it is in use.
type files struct {
	devices []uint64 // file systems that are looked at whatever their type
	roots   []string // the workspace without links, each with a slash at the end; it is not looked up again
	absent  absenceCache
	layer   Layer // over the disk; nil for none
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

// linker returns a function that is links with the folders that it has looked up.
func (f *files) linker() func(path string) string {
	known := folders{}
	return func(path string) string {
		real, _ := f.followCached(path, known)
		return real
	}
}

// errUnseen says that a path is not looked at.
var errUnseen = errors.New("not read")

// follow is links; its error is [fs.ErrNotExist] if a name on the way surely
// does not exist, and another one if that was not looked at.
func (f *files) follow(path string) (real string, err error) { return f.followCached(path, nil) }

// folders are names of folders that were looked up; nil remembers none.
type folders map[string]lookup

type lookup struct {
	target string // of a symbolic link
	err    error
}

// look looks up a name, once if it is a folder's.
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

// followCached is follow with the folders that were looked up.
func (f *files) followCached(path string, known folders) (real string, err error) {
	if !lookable(path) {
		return path, errUnseen
	}
	root, rest := cutRoot(path)
	at := root // what is resolved, without a slash at the end
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
			next = path[:end] // no link has led elsewhere
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

// join appends what was not looked up, without "." and "..".
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

// lookable reports whether a path may be looked at: not on the network, not in
// folders where looking mounts something, and not in /proc, whose links are
// those of this process.
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

// archive reads what is in an archive; see [effect.Place].
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

// noFile is [effect.Place.Script] where no file is.
func noFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

// readRelativeTo returns an [effect.Place.Script] for an action that says its folder. If
// there is no such folder, the action runs elsewhere, and no one here knows which
// file is meant.
func readRelativeTo(folder string, read func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if _, err := read(folder); errors.Is(err, fs.ErrNotExist) {
			return nil, errUnseen
		}
		return read(path)
	}
}

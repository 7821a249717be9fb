package analysis

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/committed"
)

// Limits of a search of the workspace. Names outside them are not found.
const (
	maxSearched   = 3000     // files
	maxSearchRead = 16 << 20 // total bytes
	maxSearchFile = 1 << 20
)

// skippedFolders are folders of the workspace with code that others have written.
var skippedFolders = []string{".git", "node_modules", "vendor", ".venv", "venv", "target", "dist", "build", "__pycache__"}

// Holds reports whether a file of the workspace contains one of some names as a whole word and has not
// changed since an instant. Newer files, and files from outside, do not count: the author of an injected text
// could have written them.
func (c *Case) Holds(names []string, before time.Time) bool {
	if c.files == nil || len(names) == 0 {
		return false
	}
	s := searcher{c: c, d: disk{c.files}, before: before, files: maxSearched, bytes: maxSearchRead}
	for _, name := range names {
		s.names = append(s.names, []byte(strings.ToLower(name)))
	}
	folders := slices.Clone(c.place.Roots)
	for _, root := range c.place.Roots {
		if s.file(root + "/.git/config") {
			return true
		}
	}
	for len(folders) > 0 && s.files > 0 {
		dir := folders[0]
		folders = folders[1:]
		list, err := s.d.ReadDir(dir, s.files)
		if err != nil {
			continue
		}
		for _, e := range list {
			switch name := path.Join(dir, e.Name()); {
			case e.IsDir() && !slices.Contains(skippedFolders, e.Name()):
				folders = append(folders, name)
			case e.Type().IsRegular():
				if s.file(name) {
					return true
				}
			}
		}
	}
	return false
}

type searcher struct {
	c      *Case
	d      disk
	names  [][]byte
	before time.Time
	files  int
	bytes  int64
}

func (s *searcher) file(name string) bool {
	if s.files--; s.files < 0 {
		return false
	}
	if s.c.place.Origin != nil && len(s.c.place.Origin(name)) > 0 {
		return false
	}
	f, err := s.d.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > maxSearchFile || !changedLast(info).Before(s.before) {
		return false
	}
	if s.bytes -= info.Size(); s.bytes < 0 {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSearchFile))
	if err != nil {
		return false
	}
	text = bytes.ToLower(text)
	return slices.ContainsFunc(s.names, func(name []byte) bool { return holdsName(text, name) })
}

// holdsName reports whether a text has a name that is not part of a longer one.
func holdsName(text, name []byte) bool {
	inName := func(b byte) bool {
		return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '_'
	}
	for from := 0; ; {
		at := bytes.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(name)
		if (at == 0 || !inName(text[at-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}
		from = at + 1
	}
}

// Committed reports whether the last commit of its repository has a file of the workspace with the same
// content.
func (c *Case) Committed(file string) bool {
	if c.files == nil {
		return false
	}
	r := c.history()
	defer r.Close()
	return c.kept(r, c.files, file)
}

// Tracked reports whether the last commit of its repository has a file of the workspace, with whatever
// content.
func (c *Case) Tracked(file string) bool {
	if c.files == nil {
		return false
	}
	r := c.history()
	defer r.Close()
	return r.Has(file)
}

// history returns a reader of the repositories in the workspace.
func (c *Case) history() *committed.Reader {
	inside := func(p string) bool { return c.place.Inside(p, false, false) }
	home := strings.TrimSuffix(c.place.Home, "/") + "/"
	return committed.New(disk{c.files}, inside, func(p string) bool { return inside(p) || len(home) > 1 && strings.HasPrefix(p, home) })
}

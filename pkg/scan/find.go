package scan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/sorted"
)

// A file is a transcript to read.
type file struct {
	source *source
	name   string // name of the file
	size   int64
	task   string // conversation ID: that of its main file

	session string // session ID in a database; "" for a plain file
	folder  string // folder of the session
	rows    []row  // the session's parts, in order
}

// own returns the conversation ID that the file would have without a main file.
func (f *file) own() string {
	if f.session != "" {
		return f.name + "#" + f.session
	}
	return f.name
}

// A Left is a file or folder that was not read, with the reason.
type Left struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Limits of the search.
const (
	maxFiles  = 200_000
	maxLevels = 12
	maxLeft   = 100 // left-out files that are listed
)

// A finder searches for transcripts.
type finder struct {
	files []file
	left  []Left
	more  int // number of left-out files that are not listed
}

func (f *finder) leave(name, why string) {
	if len(f.left) == maxLeft {
		f.more++
		return
	}
	f.left = append(f.left, Left{name, why})
}

// folder searches a host's folder. It does not follow symbolic links, and skips files and folders of
// other users.
func (f *finder) folder(s *source, root string) {
	info, err := os.Stat(root) // the folder itself can be a symbolic link of its user
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.leave(root, why(err))
		return
	}
	if err := owner.Check(info, 0); err != nil {
		f.leave(root, "the file belongs to another user")
		return
	}
	for _, pattern := range s.Files {
		f.below(s, root, strings.Split(pattern, "/"), 0)
	}
}

// below searches a folder for files that match a path pattern.
func (f *finder) below(s *source, dir string, pattern []string, level int) {
	if level > maxLevels || len(f.files) >= maxFiles {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.leave(dir, why(err))
		}
		return
	}
	first, rest := pattern[0], pattern[1:]
	if first == "**" {
		f.matching(s, dir, entries, rest, level)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		matched, _ := path.Match(first, e.Name())
		switch {
		case first == "**" && e.IsDir():
			f.below(s, name, pattern, level+1)
		case !matched || first == "**":
		case e.Type()&fs.ModeSymlink != 0:
			f.leave(name, "the file is a symbolic link")
		case len(rest) > 0 && e.IsDir():
			if f.mine(name, e) {
				f.below(s, name, rest, level+1)
			}
		case len(rest) == 0:
			f.add(s, name, e)
		}
	}
}

// matching adds the files of a folder that match the last element of a pattern.
func (f *finder) matching(s *source, dir string, entries []fs.DirEntry, rest []string, level int) {
	for _, e := range entries {
		if matched, _ := path.Match(rest[0], e.Name()); !matched || len(rest) > 1 || e.IsDir() {
			continue
		}
		if name := filepath.Join(dir, e.Name()); e.Type()&fs.ModeSymlink != 0 {
			f.leave(name, "the file is a symbolic link")
		} else {
			f.add(s, name, e)
		}
	}
}

// mine reports whether a folder belongs to this user or to root.
func (f *finder) mine(name string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		f.leave(name, why(err))
		return false
	}
	if owner.Check(info, 0) != nil {
		f.leave(name, "the file belongs to another user")
		return false
	}
	return true
}

func (f *finder) add(s *source, name string, e fs.DirEntry) {
	if !f.mine(name, e) {
		return
	}
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		f.leave(name, "the path is not a regular file; replace it with the file itself")
		return
	}
	if len(f.files) >= maxFiles {
		f.leave(name, fmt.Sprintf("more than %d transcripts; choose fewer with --since or --path", maxFiles))
		return
	}
	if s.Form == database {
		if err := f.database(s, name); err != nil {
			f.leave(name, why(err))
		}
		return
	}
	task := name
	if dir := filepath.Dir(name); s.Host == "claude-code" && filepath.Base(dir) == "subagents" {
		task = filepath.Dir(dir) + ".jsonl"
	}
	f.files = append(f.files, file{source: s, name: name, size: info.Size(), task: task})
}

// given adds a path that the user named: a file, or all files below a folder whose names end in
// .jsonl, .json or .db.
func (f *finder) given(name, host string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.one(name, host)
	}
	return filepath.WalkDir(name, func(at string, e fs.DirEntry, err error) error {
		switch known := slices.Contains([]string{".jsonl", ".json", ".db"}, filepath.Ext(at)); {
		case err != nil:
			f.leave(at, why(err))
			return nil
		case len(f.files) >= maxFiles:
			return fs.SkipAll
		case e.Type()&fs.ModeSymlink != 0 && known:
			f.leave(at, "the file is a symbolic link")
		case e.Type().IsRegular() && known:
			if info, err := e.Info(); err != nil || owner.Check(info, 0) != nil {
				f.leave(at, "the file belongs to another user")
				return nil
			}
			if err := f.one(at, host); err != nil {
				f.leave(at, why(err))
			}
		}
		return nil
	})
}

// one adds a file of a host; if host is "", the host is detected from its records.
func (f *finder) one(name, host string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("the path is not a regular file; replace it with the file itself")
	}
	if isDatabase(name) {
		for i := range sources() {
			if s := &sources()[i]; s.Form == database && (host == "" || host == s.Host) {
				return f.database(s, name)
			}
		}
	}
	s, err := sourceOf(name, host)
	if err != nil {
		return err
	}
	f.files = append(f.files, file{source: s, name: name, size: info.Size(), task: name})
	return nil
}

// why returns an error's text without the path, which is shown separately.
func why(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// sourceOf returns the source whose reader recognises most of a file's first records.
func sourceOf(name, host string) (*source, error) {
	var best *source
	most := 0
	for i := range sources() {
		s := &sources()[i]
		if host != "" && s.Host != host || s.Form == database {
			continue
		}
		n := sample{}
		_ = records(file{source: s, name: name}, &n, maxSampled, nil) // a file that cannot be read has no records
		if n.score > most {
			best, most = s, n.score
		}
	}
	if best == nil {
		return nil, errors.New("the file is not a transcript of a known host; name the host with --host NAME")
	}
	return best, nil
}

// maxSampled is the number of records that are used to detect a file's host.
const maxSampled = 40

// A sample counts what a reader recognises in the first records.
type sample struct{ score int }

func (s *sample) folder(string) { s.score++ }
func (s *sample) call(call)     { s.score += 4 }
func (s *sample) result(result) { s.score += 4 }
func (s *sample) unknown(string) {
	s.score--
}

// order groups files by conversation, each with its main file first, and drops files that occur twice.
func order(files []file) (tasks [][]file) {
	sorted.By(files, func(a, b file) int {
		if c := strings.Compare(a.task, b.task); c != 0 {
			return c
		}
		if (a.own() == a.task) != (b.own() == b.task) {
			if a.own() == a.task {
				return -1
			}
			return 1
		}
		return strings.Compare(a.own(), b.own())
	})
	for i, f := range files {
		switch {
		case i > 0 && f.own() == files[i-1].own():
		case i > 0 && f.task == files[i-1].task:
			tasks[len(tasks)-1] = append(tasks[len(tasks)-1], f)
		default:
			tasks = append(tasks, []file{f})
		}
	}
	return tasks
}

// Package committed tells whether files are in the last commit of their
// repository just as they lie there, so that git can give them back.
//
// It reads the repository itself. Git is never started, because the settings of
// a repository can make it run programs. A repository may be hostile: everything
// is bounded, every object is checked by its hash, and whatever is not as
// expected counts as not known.
package committed

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// A FS looks at local files. Paths are absolute, with slashes. No method follows
// a symbolic link, in any part of a path; one that meets a link fails.
type FS interface {
	Lstat(path string) (fs.FileInfo, error)
	Open(path string) (*os.File, error) // of a regular file only
	ReadDir(path string, most int) ([]fs.DirEntry, error)
	Readlink(path string) (string, error)
}

// Bounds of one Reader. What exceeds them is not known.
const (
	maxFile   = 8 << 20  // bytes of a file that is compared
	maxObject = 16 << 20 // bytes of an object of git
	maxWork   = 32 << 20 // bytes that are hashed or inflated
	maxSteps  = 20_000   // accesses to files
	maxNames  = 512      // of files and folders that are compared
	maxLevels = 32       // of folders
	maxChain  = 64       // deltas of one object
	maxPacks  = 64
	maxText   = 1 << 20 // bytes of a file of references
)

// A Reader answers for the files of one action. It belongs to one goroutine.
type Reader struct {
	fs     FS
	inside func(path string) bool
	stored func(path string) bool
	work   int64
	steps  int
	names  int
	repos  map[string]*repository // by the folder that holds .git; nil if it cannot be read
}

// New returns a Reader of the repositories whose working trees lie where inside
// holds. The history of one that is linked to another lies where stored holds.
func New(files FS, inside, stored func(path string) bool) *Reader {
	return &Reader{fs: files, inside: inside, stored: stored, work: maxWork, steps: maxSteps, names: maxNames, repos: map[string]*repository{}}
}

// Close closes the files that are open.
func (r *Reader) Close() {
	for _, repo := range r.repos {
		repo.close()
	}
}

// Stores returns the folders in which the repositories that were read keep their
// history.
func (r *Reader) Stores() []string {
	var out []string
	for top, repo := range r.repos {
		out = append(out, top+"/.git")
		if repo != nil {
			out = append(out, repo.folder, repo.common)
		}
	}
	return out
}

// Keeps reports whether a file, link or folder with all that is in it is in the
// last commit as it is. A path that does not exist is not.
func (r *Reader) Keeps(file string) bool {
	repo, e, ok := r.entry(file)
	return ok && r.sameAsEntry(repo, e, file, file, 0)
}

// Has reports whether a regular file is in the last commit, whatever it holds now.
func (r *Reader) Has(file string) bool {
	_, e, ok := r.entry(file)
	return ok && e.kind == regular
}

// entry returns what the last commit of its repository holds under the name of a file.
func (r *Reader) entry(file string) (repo *repository, e entry, ok bool) {
	if repo = r.repository(path.Dir(file)); repo == nil {
		return nil, e, false
	}
	rel, ok := strings.CutPrefix(file, strings.TrimSuffix(repo.top, "/")+"/")
	if !ok {
		return nil, e, false
	}
	e, ok = repo.find(rel)
	return repo, e, ok
}

// sameAsEntry reports whether what is at a path is an entry of a tree. base is the
// path that was asked for: links below it must not lead out of it.
func (r *Reader) sameAsEntry(repo *repository, e entry, file, base string, level int) bool {
	if r.names--; r.names < 0 || level > maxLevels || !r.countAccess() || isGit(path.Base(file)) {
		return false
	}
	info, err := r.fs.Lstat(file)
	if err != nil {
		return false
	}
	switch {
	case info.Mode().IsRegular():
		return e.kind == regular && info.Size() <= maxFile && r.sameFile(repo, e.id, file, info.Size())
	case info.Mode()&fs.ModeType == fs.ModeSymlink:
		to, err := r.fs.Readlink(file)
		return err == nil && e.kind == symlink && repo.blobHolds(e.id, to) && (file == base || staysBelow(file, to, base))
	case info.IsDir():
		return (e.kind == folder || e.kind == submodule) && r.sameFolder(repo, e, file, base, level)
	}
	return false
}

func (r *Reader) sameFolder(repo *repository, e entry, dir, base string, level int) bool {
	names, err := r.fs.ReadDir(dir, r.names+1)
	if err != nil || len(names) > r.names {
		return false
	}
	if e.kind == submodule || len(names) == 0 {
		return len(names) == 0
	}
	tree, ok := repo.tree(e.id)
	if !ok {
		return false
	}
	for _, n := range names {
		child, ok := tree[n.Name()]
		if !ok || !r.sameAsEntry(repo, child, dir+"/"+n.Name(), base, level+1) {
			return false
		}
	}
	return true
}

// sameFile reports whether a file has a blob's hash, and the blob is there.
func (r *Reader) sameFile(repo *repository, want id, file string, size int64) bool {
	if !r.spendBytes(size) {
		return false
	}
	f, err := r.fs.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	h := header("blob", size)
	n, err := io.Copy(h, io.LimitReader(f, size+1))
	if err != nil || n != size || id(h.Sum(nil)) != want {
		return false
	}
	kind, _, ok := repo.object(want)
	return ok && kind == "blob"
}

// staysBelow reports whether a link leads to a place below base, whatever links
// lie below base, as long as they do so, too.
func staysBelow(link, to, base string) bool {
	if path.IsAbs(to) || to == "" {
		return false
	}
	rest := to
	for rest == ".." || strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == ".." {
			return false
		}
	}
	at := path.Join(path.Dir(link), to)
	return at == base || strings.HasPrefix(at, base+"/")
}

// isGit reports whether a name could be that of a repository's own folder on
// some file system. A tree that git itself wrote does not hold it.
func isGit(name string) bool {
	return strings.EqualFold(name, ".git") || strings.HasPrefix(strings.ToLower(name), "git~") || strings.ContainsAny(name, "\\:\x00") ||
		strings.HasPrefix(strings.ToLower(name), ".git") && strings.ContainsFunc(name[4:], func(c rune) bool { return c > 0x7f || c == ' ' })
}

// countAccess counts an access to a file.
func (r *Reader) countAccess() bool {
	r.steps--
	return r.steps >= 0
}

// spendBytes counts bytes that are hashed or inflated.
func (r *Reader) spendBytes(n int64) bool {
	if n < 0 || n > maxObject || n > r.work {
		r.work = 0
		return false
	}
	r.work -= n
	return true
}

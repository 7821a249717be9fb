package committed

import (
	"encoding/hex"
	"io"
	"io/fs"
	"path"
	"strings"
)

// A repository is one working tree with its object folder.
type repository struct {
	r      *Reader
	top    string // folder that contains .git
	folder string // the .git folder, or the folder that a .git file names
	common string // folder of objects and branches
	root   id     // tree of the last commit
	packs  []*pack
	listed bool // packs are opened
	trees  map[id]map[string]entry
}

// repository returns the innermost repository that contains a folder; nil if there is none that can be
// read.
func (r *Reader) repository(dir string) *repository {
	for level := 0; level <= maxLevels && r.inside(dir) && r.countAccess(); level++ {
		if repo, known := r.repos[dir]; known {
			return repo
		}
		info, err := r.fs.Lstat(dir + "/.git")
		switch {
		case err == nil:
			repo := r.open(dir, info)
			r.repos[dir] = repo
			return repo
		case !isAbsent(err):
			return nil
		}
		if dir == path.Dir(dir) {
			return nil
		}
		dir = path.Dir(dir)
	}
	return nil
}

// open reads a repository up to the tree of its last commit.
func (r *Reader) open(top string, info fs.FileInfo) *repository {
	repo := &repository{r: r, top: top, folder: top + "/.git", common: top + "/.git", trees: map[id]map[string]entry{}}
	switch {
	case info.IsDir():
		if _, err := r.fs.Lstat(repo.folder + "/commondir"); !isAbsent(err) {
			return nil
		}
	case info.Mode().IsRegular():
		if !repo.readWorktreeLink() {
			return nil
		}
	default:
		return nil
	}
	commit, ok := repo.head()
	if !ok {
		return nil
	}
	kind, data, ok := repo.object(commit)
	if !ok || kind != "commit" {
		return nil
	}
	line, _, _ := strings.Cut(string(data[:min(len(data), 64)]), "\n")
	tree, ok := strings.CutPrefix(line, "tree ")
	if !ok {
		return nil
	}
	repo.root, ok = parseID(tree)
	if !ok {
		return nil
	}
	return repo
}

// readWorktreeLink reads the repository of a linked working tree. The repository must name the working
// tree too, otherwise any .git file could refer to it.
func (repo *repository) readWorktreeLink() bool {
	text, ok := repo.text(repo.top+"/.git", 4096)
	to, named := strings.CutPrefix(text, "gitdir: ")
	if !ok || !named {
		return false
	}
	repo.folder = absolute(repo.top, to)
	if !repo.r.stored(repo.folder) {
		return false
	}
	back, ok := repo.text(repo.folder+"/gitdir", 4096)
	if !ok || absolute(repo.folder, back) != repo.top+"/.git" {
		return false
	}
	common, ok := repo.text(repo.folder+"/commondir", 4096)
	if !ok {
		return false
	}
	repo.common = absolute(repo.folder, common)
	return path.Dir(path.Dir(repo.folder)) == repo.common && path.Base(path.Dir(repo.folder)) == "worktrees" && repo.r.stored(repo.common)
}

func absolute(dir, to string) string {
	if path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(dir, to)
}

// head returns the last commit.
func (repo *repository) head() (id, bool) {
	text, ok := repo.text(repo.folder+"/HEAD", 4096)
	if !ok {
		return id{}, false
	}
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return parseID(text)
	}
	if !strings.HasPrefix(ref, "refs/heads/") || path.Clean(ref) != ref || strings.ContainsAny(ref, "\\\x00\n:") {
		return id{}, false
	}
	text, err := repo.read(repo.common+"/"+ref, 4096)
	if err == nil {
		return parseID(strings.TrimSpace(text))
	}
	if !isAbsent(err) {
		return id{}, false
	}
	text, err = repo.read(repo.common+"/packed-refs", maxText)
	if err != nil {
		return id{}, false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if hash, name, _ := strings.Cut(line, " "); name == ref {
			return parseID(hash)
		}
	}
	return id{}, false
}

// text returns the content of a one-line file without its line end.
func (repo *repository) text(file string, most int64) (string, bool) {
	text, err := repo.read(file, most)
	text = strings.TrimRight(text, "\r\n")
	return text, err == nil && text != "" && !strings.ContainsAny(text, "\r\n\x00")
}

// read returns what a file holds.
func (repo *repository) read(file string, most int64) (string, error) {
	if !repo.r.countAccess() {
		return "", errBound
	}
	f, err := repo.r.fs.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = errBound
	}
	return string(data), err
}

func parseID(text string) (out id, ok bool) {
	n := len(out)
	if len(text) != 2*n || strings.ToLower(text) != text {
		return out, false
	}
	_, err := hex.Decode(out[:], []byte(text))
	return out, err == nil
}

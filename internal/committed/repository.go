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
	reader            *LastCommitReader
	workingTreeFolder string   // folder that contains .git
	gitDir            string   // the .git folder, or the folder that a .git file names
	gitCommonDir      string   // folder of objects and branches
	rootTree          objectID // tree of the last commit
	packs             []*packFile
	packsOpened       bool // packs are opened
	trees             map[objectID]map[string]treeEntry
}

// findRepository returns the innermost repository that contains a folder; nil if there is none that can be
// read.
func (r *LastCommitReader) findRepository(dir string) *repository {
	for level := 0; level <= maxFolderDepth && r.isPermittedWorkTreeFolder(dir) && r.trySpendFileAccessBudget(); level++ {
		if repo, known := r.reposByTopFolder[dir]; known {
			return repo
		}
		info, err := r.fs.Lstat(dir + "/.git")
		switch {
		case err == nil:
			repo := r.openRepository(dir, info)
			r.reposByTopFolder[dir] = repo
			return repo
		case !isFileNotExistError(err):
			return nil
		}
		if dir == path.Dir(dir) {
			return nil
		}
		dir = path.Dir(dir)
	}
	return nil
}

// openRepository reads a repository up to the tree of its last commit.
func (r *LastCommitReader) openRepository(top string, info fs.FileInfo) *repository {
	repo := &repository{reader: r, workingTreeFolder: top, gitDir: top + "/.git", gitCommonDir: top + "/.git", trees: map[objectID]map[string]treeEntry{}}
	switch {
	case info.IsDir():
		if _, err := r.fs.Lstat(repo.gitDir + "/commondir"); !isFileNotExistError(err) {
			return nil
		}
	case info.Mode().IsRegular():
		if !repo.tryReadWorktreeLink() {
			return nil
		}
	default:
		return nil
	}
	commit, ok := repo.lastCommit()
	if !ok {
		return nil
	}
	kind, data, ok := repo.readObject(commit)
	if !ok || kind != "commit" {
		return nil
	}
	line, _, _ := strings.Cut(string(data[:min(len(data), 64)]), "\n")
	tree, ok := strings.CutPrefix(line, "tree ")
	if !ok {
		return nil
	}
	repo.rootTree, ok = parseID(tree)
	if !ok {
		return nil
	}
	return repo
}

// tryReadWorktreeLink reads the repository of a linked working tree. The repository must name the working
// tree too, otherwise any .git file could refer to it.
func (repo *repository) tryReadWorktreeLink() bool {
	text, ok := repo.readOneLine(repo.workingTreeFolder+"/.git", 4096)
	to, named := strings.CutPrefix(text, "gitdir: ")
	if !ok || !named {
		return false
	}
	repo.gitDir = joinUnlessAbsolute(repo.workingTreeFolder, to)
	if !repo.reader.isPermittedWorktreeGitDir(repo.gitDir) {
		return false
	}
	back, ok := repo.readOneLine(repo.gitDir+"/gitdir", 4096)
	if !ok || joinUnlessAbsolute(repo.gitDir, back) != repo.workingTreeFolder+"/.git" {
		return false
	}
	common, ok := repo.readOneLine(repo.gitDir+"/commondir", 4096)
	if !ok {
		return false
	}
	repo.gitCommonDir = joinUnlessAbsolute(repo.gitDir, common)
	return path.Dir(path.Dir(repo.gitDir)) == repo.gitCommonDir && path.Base(path.Dir(repo.gitDir)) == "worktrees" && repo.reader.isPermittedWorktreeGitDir(repo.gitCommonDir)
}

func joinUnlessAbsolute(dir, to string) string {
	if path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(dir, to)
}

// lastCommit returns the last commit.
func (repo *repository) lastCommit() (objectID, bool) {
	text, ok := repo.readOneLine(repo.gitDir+"/HEAD", 4096)
	if !ok {
		return objectID{}, false
	}
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return parseID(text)
	}
	if !strings.HasPrefix(ref, "refs/heads/") || path.Clean(ref) != ref || strings.ContainsAny(ref, "\\\x00\n:") {
		return objectID{}, false
	}
	text, err := repo.readFile(repo.gitCommonDir+"/"+ref, 4096)
	if err == nil {
		return parseID(strings.TrimSpace(text))
	}
	if !isFileNotExistError(err) {
		return objectID{}, false
	}
	text, err = repo.readFile(repo.gitCommonDir+"/packed-refs", maxRefsBytes)
	if err != nil {
		return objectID{}, false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if hash, name, _ := strings.Cut(line, " "); name == ref {
			return parseID(hash)
		}
	}
	return objectID{}, false
}

// readOneLine returns the content of a one-line file without its line end.
func (repo *repository) readOneLine(file string, most int64) (string, bool) {
	text, err := repo.readFile(file, most)
	text = strings.TrimRight(text, "\r\n")
	return text, err == nil && text != "" && !strings.ContainsAny(text, "\r\n\x00")
}

// readFile returns what a file holds.
func (repo *repository) readFile(file string, most int64) (string, error) {
	if !repo.reader.trySpendFileAccessBudget() {
		return "", errObjectLimit
	}
	f, err := repo.reader.fs.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = errObjectLimit
	}
	return string(data), err
}

func parseID(text string) (out objectID, ok bool) {
	n := len(out)
	if len(text) != 2*n || strings.ToLower(text) != text {
		return out, false
	}
	_, err := hex.Decode(out[:], []byte(text))
	return out, err == nil
}

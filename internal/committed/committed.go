// Package committed reports whether files are in the last commit of their repository with the same
// content, so that git can restore them.
//
// It reads the repository without starting git, because a repository's configuration can make git run
// programs. A repository can be hostile: all reads are limited, every object is checked by its hash,
// and anything unexpected counts as not committed.
package committed

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// An FS accesses local files. Paths are absolute, with slashes. Its methods do not follow symbolic links in any
// part of a path; they return an error for one. Only Lstat and Readlink accept a link as the last part of a
// path: they describe the link itself.
type FS interface {
	Lstat(path string) (fs.FileInfo, error)
	Open(path string) (*os.File, error) // regular files only
	ReadDir(path string, most int) ([]fs.DirEntry, error)
	Readlink(path string) (string, error)
}

// Limits of one Reader. Files beyond them count as not committed.
const (
	maxFileBytes               = 8 << 20  // bytes of a compared file
	maxObjectBytes             = 16 << 20 // bytes of a git object
	maxProcessedBytes          = 32 << 20 // bytes that are hashed or decompressed
	maxFileAccesses            = 20_000   // accesses to files
	maxPathsComparedWithCommit = 512      // compared files and folders
	maxFolderDepth             = 32       // nested folders
	maxDeltaChain              = 64       // length of a delta chain
	maxPacks                   = 64
	maxRefsBytes               = 1 << 20 // bytes of a refs file
)

// A LastCommitReader compares files with the last git commit of their repositories. It serves one action, and
// is not safe for concurrent use.
type LastCommitReader struct {
	fs                        FS
	isPermittedWorkTreeFolder func(path string) bool
	isPermittedWorktreeGitDir func(path string) bool
	processedBytesLeft        int64
	accessesLeft              int
	commitPathComparisonsLeft int
	reposByTopFolder          map[string]*repository // repositories by the folder that contains .git; a nil repository cannot be read
}

// New returns a LastCommitReader. isPermittedWorkTreeFolder reports whether a folder can be a git working tree
// that the reader may read; isPermittedWorktreeGitDir reports whether a linked working tree may have its git
// folder or its objects in a folder.
func New(files FS, isPermittedWorkTreeFolder, isPermittedWorktreeGitDir func(path string) bool) *LastCommitReader {
	return &LastCommitReader{fs: files, isPermittedWorkTreeFolder: isPermittedWorkTreeFolder, isPermittedWorktreeGitDir: isPermittedWorktreeGitDir, processedBytesLeft: maxProcessedBytes, accessesLeft: maxFileAccesses, commitPathComparisonsLeft: maxPathsComparedWithCommit, reposByTopFolder: map[string]*repository{}}
}

// Close closes the files that are open.
func (r *LastCommitReader) Close() {
	for _, repo := range r.reposByTopFolder {
		repo.closePacks()
	}
}

// RepositoryGitDirPaths returns the path of .git for each repository that was found. For each repository that
// could be read, it also returns the folder that contains HEAD and the folder that contains the
// objects.
func (r *LastCommitReader) RepositoryGitDirPaths() []string {
	var out []string
	for top, repo := range r.reposByTopFolder {
		out = append(out, top+"/.git")
		if repo != nil {
			out = append(out, repo.gitDir, repo.gitCommonDir)
		}
	}
	return out
}

// IsCommittedUnchanged reports whether a file, symbolic link, or folder with all its content is in the last commit
// unchanged. It is false for a path that does not exist.
func (r *LastCommitReader) IsCommittedUnchanged(file string) bool {
	repo, e, ok := r.committedEntry(file)
	return ok && r.pathMatchesTreeEntry(repo, e, file, file, 0)
}

// IsCommittedFile reports whether a regular file is in the last commit, even if its content differs now.
func (r *LastCommitReader) IsCommittedFile(file string) bool {
	_, e, ok := r.committedEntry(file)
	return ok && e.kind == regularEntry
}

// committedEntry returns the entry of a file in the last commit of its repository.
func (r *LastCommitReader) committedEntry(file string) (repo *repository, e treeEntry, ok bool) {
	if repo = r.findRepository(path.Dir(file)); repo == nil {
		return nil, e, false
	}
	rel, ok := strings.CutPrefix(file, strings.TrimSuffix(repo.workingTreeFolder, "/")+"/")
	if !ok {
		return nil, e, false
	}
	e, ok = repo.findTreeEntry(rel)
	return repo, e, ok
}

// pathMatchesTreeEntry reports whether the file or folder filePath, with all that a folder contains, is in the
// tree entry e unchanged. Files of e can be missing from the folder. filePath is requestedPath or lies below it.
// A symbolic link below requestedPath must not lead out of requestedPath.
func (r *LastCommitReader) pathMatchesTreeEntry(repo *repository, e treeEntry, filePath, requestedPath string, folderDepth int) bool {
	if r.commitPathComparisonsLeft--; r.commitPathComparisonsLeft < 0 || folderDepth > maxFolderDepth || !r.trySpendFileAccessBudget() || isDotGitName(path.Base(filePath)) {
		return false
	}
	info, err := r.fs.Lstat(filePath)
	if err != nil {
		return false
	}
	switch {
	case info.Mode().IsRegular():
		return e.kind == regularEntry && info.Size() <= maxFileBytes && r.fileMatchesBlob(repo, e.id, filePath, info.Size())
	case info.Mode()&fs.ModeType == fs.ModeSymlink:
		to, err := r.fs.Readlink(filePath)
		return err == nil && e.kind == symlinkEntry && repo.blobEqualsText(e.id, to) && (filePath == requestedPath || linkTargetStaysBelow(filePath, to, requestedPath))
	case info.IsDir():
		return (e.kind == folderEntry || e.kind == submoduleEntry) && r.folderMatchesCommit(repo, e, filePath, requestedPath, folderDepth)
	}
	return false
}

func (r *LastCommitReader) folderMatchesCommit(repo *repository, e treeEntry, dir, base string, level int) bool {
	names, err := r.fs.ReadDir(dir, r.commitPathComparisonsLeft+1)
	if err != nil || len(names) > r.commitPathComparisonsLeft {
		return false
	}
	if e.kind == submoduleEntry || len(names) == 0 {
		return len(names) == 0
	}
	tree, ok := repo.readTree(e.id)
	if !ok {
		return false
	}
	for _, n := range names {
		child, ok := tree[n.Name()]
		if !ok || !r.pathMatchesTreeEntry(repo, child, dir+"/"+n.Name(), base, level+1) {
			return false
		}
	}
	return true
}

// fileMatchesBlob reports whether a file has a blob's hash, and the blob exists.
func (r *LastCommitReader) fileMatchesBlob(repo *repository, blobID objectID, file string, size int64) bool {
	if !r.trySpendByteBudget(size) {
		return false
	}
	f, err := r.fs.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	h := newObjectHash("blob", size)
	n, err := io.Copy(h, io.LimitReader(f, size+1))
	if err != nil || n != size || objectID(h.Sum(nil)) != blobID {
		return false
	}
	kind, _, ok := repo.readObject(blobID)
	return ok && kind == "blob"
}

// linkTargetStaysBelow reports whether a symbolic link leads to a path below base, provided that all links below
// base do.
func linkTargetStaysBelow(linkPath, linkTarget, base string) bool {
	if path.IsAbs(linkTarget) || linkTarget == "" {
		return false
	}
	rest := linkTarget
	for rest == ".." || strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == ".." {
			return false
		}
	}
	at := path.Join(path.Dir(linkPath), linkTarget)
	return at == base || strings.HasPrefix(at, base+"/")
}

// isDotGitName reports whether a name could be ".git" on some file system. git never writes such a name into
// a tree.
func isDotGitName(name string) bool {
	return strings.EqualFold(name, ".git") || strings.HasPrefix(strings.ToLower(name), "git~") || strings.ContainsAny(name, "\\:\x00") ||
		strings.HasPrefix(strings.ToLower(name), ".git") && strings.ContainsFunc(name[4:], func(c rune) bool { return c > 0x7f || c == ' ' })
}

// trySpendFileAccessBudget counts a file access, and reports false above the limit.
func (r *LastCommitReader) trySpendFileAccessBudget() bool {
	r.accessesLeft--
	return r.accessesLeft >= 0
}

// trySpendByteBudget counts hashed or decompressed bytes, and reports false above the limit.
func (r *LastCommitReader) trySpendByteBudget(n int64) bool {
	if n < 0 || n > maxObjectBytes || n > r.processedBytesLeft {
		r.processedBytesLeft = 0
		return false
	}
	r.processedBytesLeft -= n
	return true
}

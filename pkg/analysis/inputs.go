package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// Limits of the files that [ActionCase.InputFilesDigest] hashes, so that it takes a fraction of a
// second.
const (
	maxTotalInputFileBytes = 32 << 20 // bytes of all files together
	maxInputFiles          = 1024     // folders included
	maxInputFileArgWords   = 256      // of arguments
	maxInputFolderDepth    = 32       // of folders
)

// cachedInputFilesDigest is the result of [ActionCase.InputFilesDigest], which is computed only
// once.
type cachedInputFilesDigest struct {
	digest string
	err    error
}

// InputFilesDigest returns a digest of the content of every file that the action reads, runs or sends; "" if there are
// none. With another digest the same command may do something else. An error says why the content cannot be
// read; the same command may then do something else later. The first call reads the files.
func (c *ActionCase) InputFilesDigest() (digest string, err error) {
	if c.inputFilesDigest == nil {
		c.inputFilesDigest = &cachedInputFilesDigest{}
		c.inputFilesDigest.digest, c.inputFilesDigest.err = c.hashInputFiles()
	}
	return c.inputFilesDigest.digest, c.inputFilesDigest.err
}

func (c *ActionCase) hashInputFiles() (string, error) {
	r := inputHasher{c: c, digest: sha256.New(), hashedPaths: map[string]bool{}}
	for i := range c.Effects {
		if err := r.hashFilesReadByEffect(&c.Effects[i]); err != nil {
			return "", err
		}
	}
	if len(r.hashedPaths) == 0 {
		return "", nil
	}
	return "sha256:" + hex.EncodeToString(r.digest.Sum(nil)), nil
}

// An inputHasher hashes files, each path once.
type inputHasher struct {
	c                *ActionCase
	digest           hash.Hash
	hashedPaths      map[string]bool
	fileCount        int
	byteCount        int64
	fileArgWordCount int
}

var errInputFileLimit = errors.New("its files are too large or too many to be compared later")

// hashFilesReadByEffect hashes the files that an effect reads.
func (r *inputHasher) hashFilesReadByEffect(e *effect.Effect) error {
	switch e.Kind {
	case effect.ReadFile, effect.MoveFile, effect.RunCode, effect.ReadSecret:
		if e.Path == "" && !e.PathIsPattern {
			return nil
		}
	case effect.SendData:
		if e.Path == "" && !e.PathIsPattern {
			return r.requireHashableSentData(e)
		}
	case effect.ChangeRemoteSystem:
		if e.RemoteOperationVerb == "change" && (e.RemoteServiceName == "cloud" || e.RemoteServiceName == "infrastructure") {
			return fmt.Errorf("%s uses files of the current folder that it does not name", e.Program)
		}
		return nil
	case effect.Execute:
		return r.hashArguments(e)
	default:
		return nil
	}
	if e.PathIsPattern {
		return errors.New("the action reads files by a glob pattern")
	}
	return r.hashFileOrFolderTree(e.Path)
}

// requireHashableSentData returns an error unless the data to send is spelled out in the payload of a tool or
// comes from a file that the action reads. For git, it hashes the files on which a push depends.
func (r *inputHasher) requireHashableSentData(e *effect.Effect) error {
	if e.Program == "git" {
		return r.hashRepositoryPushInputs(command.GitCommandLine{})
	}
	if r.c.Action.Type != "execute_command" {
		return nil
	}
	from := e.Reason != "" && e.RemoteServiceName == "" && slices.ContainsFunc(r.c.Effects, func(o effect.Effect) bool { return o.Kind == effect.ReadFile })
	if !from {
		return fmt.Errorf("%s sends data from its standard input or settings, which cannot be compared", e.Program)
	}
	return nil
}

// hashRepositoryPushInputs hashes the refs, remotes and hooks on which a push depends. The names of commits are digests of
// their content.
func (r *inputHasher) hashRepositoryPushInputs(git command.GitCommandLine) error {
	dir, pattern := r.c.executionContext.CWD, false
	if git.Folder != "" {
		dir, pattern = r.c.executionContext.CanonicalPath(git.Folder, false)
	}
	if pattern || git.HasRepositoryOption || git.HasOption("", "--recurse-submodules") {
		return errors.New("its repository is not known")
	}
	for at := dir; ; at = path.Dir(at) {
		kind, err := r.fileMode(path.Join(at, ".git"))
		switch {
		case err == nil && !kind.IsDir():
			return r.hashRepositoryNamedByDotGitFile(path.Join(at, ".git"))
		case err == nil:
			return r.hashGitFolderPushInputs(path.Join(at, ".git"))
		case !errors.Is(err, fs.ErrNotExist):
			return errors.New("its repository cannot be read")
		case at == path.Dir(at):
			return r.hashFileOrFolderTree(path.Join(dir, ".git")) // the repository does not exist yet
		}
	}
}

// hashGitFolderPushInputs hashes the files in a .git folder on which a push depends.
func (r *inputHasher) hashGitFolderPushInputs(gitFolder string) error {
	for _, name := range []string{"HEAD", "config", "config.worktree", "packed-refs", "refs", "hooks"} {
		if err := r.hashFileOrFolderTree(path.Join(gitFolder, name)); err != nil {
			return err
		}
	}
	return nil
}

// hashRepositoryNamedByDotGitFile hashes the repository that the .git file of a worktree or submodule names, and the common
// repository of a worktree.
func (r *inputHasher) hashRepositoryNamedByDotGitFile(dotGitFilePath string) error {
	text, err := r.readSingleLine(dotGitFilePath)
	dir, found := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !found || dir == "" {
		return errors.New("the .git file of the worktree does not name the folder of its repository; run 'git worktree repair'")
	}
	if !path.IsAbs(dir) {
		dir = path.Join(path.Dir(dotGitFilePath), dir)
	}
	for _, p := range []string{dotGitFilePath, path.Join(dir, "commondir")} {
		if err := r.hashFileOrFolderTree(p); err != nil {
			return err
		}
	}
	if err := r.hashGitFolderPushInputs(dir); err != nil {
		return err
	}
	shared, err := r.readSingleLine(path.Join(dir, "commondir"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || shared == "":
		return errors.New("the .git file of the worktree does not name the folder of its repository; run 'git worktree repair'")
	case !path.IsAbs(shared):
		shared = path.Join(dir, shared)
	}
	return r.hashGitFolderPushInputs(shared)
}

// maxGitFileLineBytes is the maximum length in bytes of a line in the .git file and similar files.
const maxGitFileLineBytes = 4096

// readSingleLine returns the text of a file with a single line.
func (r *inputHasher) readSingleLine(p string) (string, error) {
	if r.c.files == nil {
		return "", fs.ErrNotExist
	}
	real, err := r.c.files.resolvePath(p)
	if err != nil {
		return "", err
	}
	file, err := r.c.files.open(real)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxGitFileLineBytes+1))
	line := strings.TrimSuffix(string(text), "\n")
	if err == nil && (len(text) > maxGitFileLineBytes || strings.ContainsAny(line, "\n\r\x00")) {
		err = fmt.Errorf("the text in the file %s has several lines, and shield remembers only one", p)
	}
	return line, err
}

// hashArguments hashes the files named in the arguments of a program that uses the network, changes
// the system, runs code or is unknown, since shield does not know the role of each of its
// arguments. For a program that only works with files, each file already has an effect.
func (r *inputHasher) hashArguments(e *effect.Effect) error {
	if e.Program == "git" {
		git := command.ParseGit(e.Args)
		if _, ok := git.Pushes(); ok {
			return r.hashRepositoryPushInputs(git)
		}
		return nil
	}
	for _, arg := range e.Args[:min(len(e.Args), 3)] {
		if command.Shipping[arg] {
			return fmt.Errorf("%s %s uses files of the current folder that it does not name", e.Program, arg)
		}
	}
	if e.Class != effect.Network && e.Class != effect.Privileged && e.Class != effect.UnknownClass && !r.runsCode(e) {
		return nil
	}
	for _, arg := range e.Args {
		for _, word := range append(strings.FieldsFunc(arg, isFileNameDelimiter), arg) {
			word = strings.TrimPrefix(strings.TrimPrefix(word, "fileb://"), "file://")
			if word == "" || word == "/" || strings.HasPrefix(word, "-") || strings.Contains(word, "://") || strings.ContainsRune(word, 0) {
				continue
			}
			if r.fileArgWordCount++; r.fileArgWordCount > maxInputFileArgWords {
				return errInputFileLimit
			}
			p, pattern := r.c.executionContext.CanonicalPath(word, false)
			if pattern || p == "" {
				continue
			}
			if kind, err := r.fileMode(p); err != nil || kind.IsDir() && e.Class != effect.Network {
				continue // not a file of this machine
			}
			if err := r.hashFileOrFolderTree(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// runsCode reports whether a program runs code, which may read the files in its arguments.
func (r *inputHasher) runsCode(e *effect.Effect) bool {
	return slices.ContainsFunc(r.c.Effects, func(o effect.Effect) bool { return o.Kind == effect.RunCode && o.Path != "" && o.Program == e.Program })
}

// isFileNameDelimiter reports whether a character may surround a file name in an argument.
func isFileNameDelimiter(c rune) bool { return strings.ContainsRune(" \t\n=@:,;'\"()<>", c) }

// fileMode returns the type of the file at a path, following links.
func (r *inputHasher) fileMode(p string) (fs.FileMode, error) {
	f := r.c.files
	if f == nil {
		return 0, fs.ErrNotExist
	}
	real, err := f.resolvePath(p)
	if err != nil {
		return 0, err
	}
	info, err := localNoSymlinkDisk{f}.Lstat(real)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// hashFileOrFolderTree hashes a file, or a folder with everything in it.
func (r *inputHasher) hashFileOrFolderTree(p string) error {
	if r.hashedPaths[p] || p == "/dev/null" {
		return nil
	}
	r.hashedPaths[p] = true
	fmt.Fprintf(r.digest, "%d:%s", len(p), p) // hash.Hash never returns an error
	return r.hashTree(p, 0)
}

func (r *inputHasher) hashTree(p string, depth int) error {
	if r.fileCount++; r.fileCount > maxInputFiles || depth > maxInputFolderDepth {
		return errInputFileLimit
	}
	if r.c.files == nil { // judge as if no file existed
		return r.hashAbsence(p)
	}
	real, err := r.c.files.resolvePath(p)
	if errors.Is(err, fs.ErrNotExist) {
		return r.hashAbsence(p)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read", p)
	}
	on := localNoSymlinkDisk{r.c.files}
	info, err := on.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.hashAbsence(p)
	case err != nil:
		return fmt.Errorf("%s cannot be read", p)
	case info.IsDir():
		if depth > 0 && real != p { // a link to a folder may lead to an endless tree
			return errInputFileLimit
		}
		entries, err := on.ReadDir(real, maxInputFiles+1)
		if err != nil || len(entries) > maxInputFiles {
			return errInputFileLimit
		}
		sorted.SortStableBy(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		fmt.Fprintf(r.digest, "folder %d;", len(entries))
		for _, e := range entries {
			fmt.Fprintf(r.digest, "%d:%s", len(e.Name()), e.Name())
			if err := r.hashTree(path.Join(real, e.Name()), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return r.hashContent(p, real)
}

// hashAbsence hashes the absence of a file, so that creating it changes the digest. It fails if the working folder
// does not exist: then the action runs on another machine, whose files are unknown.
func (r *inputHasher) hashAbsence(p string) error {
	if f := r.c.files; f != nil && r.c.executionContext.CWD != "" {
		if _, err := f.resolvePath(r.c.executionContext.CWD); err != nil {
			return fmt.Errorf("%s cannot be read: the working folder of the action does not exist on this machine", p)
		}
	}
	_, _ = io.WriteString(r.digest, "absent;") // hash.Hash never returns an error
	return nil
}

func (r *inputHasher) hashContent(p, real string) error {
	file, err := r.c.files.open(real)
	if err != nil {
		return fmt.Errorf("%s cannot be read", p)
	}
	defer file.Close()
	own := sha256.New()
	n, err := io.Copy(own, io.LimitReader(file, maxTotalInputFileBytes-r.byteCount+1))
	if r.byteCount += n; err != nil || r.byteCount > maxTotalInputFileBytes {
		return errInputFileLimit
	}
	fmt.Fprintf(r.digest, "file %x;", own.Sum(nil))
	return nil
}

package analysis

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/shieldcli/shield/internal/committed"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// Limits of reading the files that git is told to stage.
const (
	maxGitStagedFiles         = 4096     // files whose content is read
	maxGitStagedTotalBytes    = 16 << 20 // bytes of all files together
	maxGitStagedFileBytes     = 64 << 10 // bytes of one file
	maxGitStagedSearchEntries = 20_000   // names that are looked at
	maxIgnorePatterns         = 4096     // patterns in .gitignore files
)

// addCredentialPublicationEffects adds the credentials that an action publishes: in text for people, in a commit, or in a file
// that git does not ignore.
func (c *ActionCase) addCredentialPublicationEffects() {
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := &c.Effects[i]
		if e.Kind != effect.Execute || len(e.Args) == 0 {
			continue
		}
		if where := c.describeCredentialSourceInArgs(e); where != "" {
			c.addCredentialSend(effect.Effect{RemoteTargetName: e.Program, Span: e.Span, Certainty: e.Certainty}, where)
		}
		if e.Program == "git" && isStagingGitCommand(command.ParseGit(e.Args)) {
			where, whole := c.describeStagedCredential(e)
			if where != "" {
				c.addCredentialSend(effect.Effect{RemoteTargetName: "git", Span: e.Span, Certainty: e.Certainty}, where)
			} else if !whole {
				c.Effects = append(c.Effects, effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseAnalysisLimitExceeded, Span: e.Span, Reason: "git add would add more files than shield searches for credentials"})
			}
		}
	}
	c.addTrackedFileCredentialEffect()
}

// describeCredentialSourceInArgs returns which words of a command that reaches other people hold a credential,
// or the file from which it reads them; "" if none. It also adds an effect for a file from outside the workspace
// that the command publishes.
func (c *ActionCase) describeCredentialSourceInArgs(e *effect.Effect) string {
	commits := e.Program == "git" && slices.Contains([]string{"commit", "tag", "notes", "stash"}, command.ParseGit(e.Args).Subcommand)
	if !commits && !slices.ContainsFunc(c.Effects, func(o effect.Effect) bool {
		return (o.Kind == effect.ChangeRemoteSystem || o.Kind == effect.SendMessage) && o.Span == e.Span && o.Host == ""
	}) || slices.ContainsFunc(e.Args[:min(len(e.Args), 3)], func(arg string) bool { return command.SecretStores[arg] || arg == "variable" }) {
		return ""
	}
	for i := range e.Args {
		for name, value := range possibleOptions(e.Args[i:]) {
			switch strings.TrimLeft(name, "-") {
			case "b", "body", "t", "title", "n", "notes", "m", "message", "d", "description", "desc", "c", "comment", "subject", "text", "summary":
				if redact.ServiceIssuedCredentialKindName(value) != "" {
					return "the text of the option " + name
				}
			case "F", "body-file", "notes-file", "file":
				if file, pattern := c.executionContext.CanonicalPath(value, false); !pattern && c.executionContext.ReadScript != nil && value != "-" {
					if out := (effect.Effect{Kind: effect.SendData, Program: e.Program, Path: file, Span: e.Span, Reason: "publishes a file from outside the workspace"}); !commits && !c.executionContext.IsInsideRoots(file, false, false) && !isTemporaryFile(&out) {
						c.Effects = append(c.Effects, out)
					}
					if text, err := c.executionContext.ReadScript(file); err == nil && redact.ServiceIssuedCredentialKindName(string(text)) != "" {
						return "the file " + value
					}
				}
			}
		}
	}
	return ""
}

// groupableFlags are the one-letter options without a value in some command of git or gh, so that other letters can
// follow them in the same word.
const groupableFlags = "acdefiklmnopqrsuvwzS"

// possibleOptions yields the options that the first of some arguments may hold, each with its value, which may be the
// next argument: --name=VALUE, --name VALUE, -mVALUE, -am VALUE. A letter that has a value in one command and none in
// another is yielded with one, and so is the letter after it.
func possibleOptions(args []string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if !strings.HasPrefix(args[0], "-") {
			return
		}
		next := ""
		if len(args) > 1 {
			next = args[1]
		}
		name, value, attached := strings.Cut(args[0], "=")
		if !attached {
			value = next
		}
		if len(name) != 2 && !yield(name, value) || strings.HasPrefix(name, "--") {
			return
		}
		for k := 1; k < len(args[0]); k++ {
			value := strings.TrimPrefix(args[0][k+1:], "=")
			if value == "" {
				value = next
			}
			if !yield("-"+args[0][k:k+1], value) || strings.IndexByte(groupableFlags, args[0][k]) < 0 {
				return
			}
		}
	}
}

// isStagingGitCommand reports whether a git command stages files.
func isStagingGitCommand(git command.GitCommandLine) bool {
	return git.Subcommand == "add" || git.Subcommand == "stage" || git.Subcommand == "commit" && git.HasOption("a", "--all")
}

// describeStagedCredential describes the first file with a credential that git is told to stage; "" if none.
// allFilesSearched is false if a limit left some files unsearched; it is true if the work tree cannot be read.
func (c *ActionCase) describeStagedCredential(e *effect.Effect) (description string, allFilesSearched bool) {
	if c.files == nil || c.executionContext.CWD == "" {
		return "", true
	}
	inside := func(p string) bool { return c.executionContext.IsInsideRoots(p, false, false) }
	r := committed.New(localNoSymlinkDisk{c.files}, inside, inside)
	defer r.Close()
	folder := c.executionContext.CWD
	var below []string
	for i := range c.Effects {
		if o := &c.Effects[i]; o.Kind == effect.ReadFile && o.Span.Start >= e.Span.Start && o.Span.End <= e.Span.End && o.Path != "" && !o.PathIsPattern && inside(o.Path) {
			below = append(below, c.resolveFolderSymlinks(o.Path))
		}
	}
	if len(below) > 0 {
		folder = path.Dir(below[0])
	}
	t, ok := r.ReadWorkTree(c.resolveFolderSymlinks(folder))
	if !ok {
		if t, ok = r.ReadWorkTree(c.resolveFolderSymlinks(c.executionContext.CWD)); !ok {
			return "", true
		}
	}
	tracked := make(map[string]bool, len(t.Files))
	s := stagedFilesSearch{localDisk: localNoSymlinkDisk{c.files}, folderEntriesLeft: maxGitStagedSearchEntries}
	git := command.ParseGit(e.Args)
	for i := range t.Files {
		f := &t.Files[i]
		if tracked[f.Path] = true; isStaged(below, f.Path) && differsFromIndex(f) {
			s.stagedFiles = append(s.stagedFiles, f.Path)
		}
	}
	if git.Subcommand != "commit" && !git.HasOption("u", "--update") {
		s.addUntracked(t, tracked, below, git.HasOption("f", "--force"))
	}
	return s.describeCredentialFile(t.Top)
}

// A stagedFilesSearch looks for files that git add would stage.
type stagedFilesSearch struct {
	localDisk         localNoSymlinkDisk
	stagedFiles       []string
	folderEntriesLeft int  // names that may still be looked at
	isIncomplete      bool // a folder that git would read was left out
}

// isStaged reports whether a path is one of those that git is told to stage, or below one; if there are none, git stages
// everything.
func isStaged(stagedPaths []string, p string) bool {
	return len(stagedPaths) == 0 || slices.ContainsFunc(stagedPaths, func(b string) bool { return p == b || strings.HasPrefix(p, b+"/") })
}

// addUntracked adds the files of stagedPaths that git neither tracks nor ignores. A folder that does not exist, or that the
// user may not read, does not make the search incomplete: git leaves it out too.
func (s *stagedFilesSearch) addUntracked(t *committed.WorkTree, tracked map[string]bool, stagedPaths []string, forced bool) {
	ignored := s.appendIgnorePatterns(t.GitDir+"/info/exclude", nil, nil)
	var walk func(dir string, at []string, ps []gitignore.Pattern)
	walk = func(dir string, at []string, ps []gitignore.Pattern) {
		entries, err := s.localDisk.ReadDir(dir, s.folderEntriesLeft+1)
		if s.folderEntriesLeft -= len(entries); err != nil || s.folderEntriesLeft <= 0 || len(at) > 40 {
			holdsStaged := isStaged(stagedPaths, dir) || slices.ContainsFunc(stagedPaths, func(b string) bool { return strings.HasPrefix(b, dir+"/") })
			s.isIncomplete = s.isIncomplete || holdsStaged && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
			return
		}
		if !forced {
			ps = s.appendIgnorePatterns(dir+"/.gitignore", at, ps)
		}
		m := gitignore.NewMatcher(ps)
		for _, d := range entries {
			p := dir + "/" + d.Name()
			below := append(slices.Clone(at), d.Name())
			switch {
			case d.Name() == ".git" || tracked[p] || !forced && m.Match(below, d.IsDir()):
			case d.IsDir():
				walk(p, below, ps)
			case d.Type().IsRegular() && isStaged(stagedPaths, p):
				s.stagedFiles = append(s.stagedFiles, p)
			}
		}
	}
	walk(t.Top, nil, ignored)
}

// appendIgnorePatterns adds the patterns of a .gitignore file.
func (s *stagedFilesSearch) appendIgnorePatterns(file string, at []string, ps []gitignore.Pattern) []gitignore.Pattern {
	text, _ := s.readFile(file)
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' && len(ps) < maxIgnorePatterns {
			ps = append(ps[:len(ps):len(ps)], gitignore.ParsePattern(line, at))
		}
	}
	return ps
}

func (s *stagedFilesSearch) readFile(file string) (string, error) {
	f, err := s.localDisk.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxGitStagedFileBytes))
	return string(data), err
}

// describeCredentialFile describes the first file that holds a credential, by its name or else by the first
// maxGitStagedFileBytes of its content; "" if none. allFilesSearched is false if none was found and a limit on
// the number of files, names or bytes left some files unsearched.
func (s *stagedFilesSearch) describeCredentialFile(repositoryRoot string) (description string, allFilesSearched bool) {
	read := 0
	for _, p := range s.stagedFiles {
		if IsCredentialFile(p, nil) {
			return "the file " + strings.TrimPrefix(p, repositoryRoot+"/") + ", which git would add,", true
		}
	}
	for i, p := range s.stagedFiles {
		if i == maxGitStagedFiles || read > maxGitStagedTotalBytes {
			return "", false
		}
		text, err := s.readFile(p)
		if err != nil || strings.IndexByte(text, 0) >= 0 {
			continue
		}
		if read += len(text); redact.ServiceIssuedCredentialKindName(text) != "" {
			return "the file " + strings.TrimPrefix(p, repositoryRoot+"/") + ", which git would add,", true
		}
	}
	return "", s.folderEntriesLeft > 0 && !s.isIncomplete
}

// addTrackedFileCredentialEffect adds an effect if an action writes a credential into a file that git does not
// ignore and that did not hold a credential of the same kind before. Files that are credential files by their
// names, tests, examples and documents are left out.
func (c *ActionCase) addTrackedFileCredentialEffect() {
	if c.files == nil {
		return
	}
	look := func(p, text string) {
		kind := redact.ServiceIssuedCredentialKindName(text)
		if kind == "" || !c.executionContext.IsInsideRoots(p, false, false) || IsCredentialFile(p, nil) || !c.wouldGitTrack(p) {
			return
		}
		if old, err := c.executionContext.ReadScript(p); err == nil && redact.ServiceIssuedCredentialKindName(string(old)) == kind {
			return
		}
		c.addCredentialSend(effect.Effect{RemoteTargetName: p}, "what is written to "+path.Base(p))
	}
	if c.Action.Type != "execute_command" {
		text := writtenText(c.Action.Payload)
		for i, n := 0, len(c.Effects); i < n && text != ""; i++ {
			if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.PathIsPattern && e.Path != "" {
				look(e.Path, text)
			}
		}
	}
	for _, w := range c.filesWrittenByCommand[:min(len(c.filesWrittenByCommand), maxFilesRead)] {
		look(w.Path, w.NewText)
	}
}

// isTestOrExamplePath reports whether a path is of tests, examples or documents, where credentials are examples.
func isTestOrExamplePath(p string) bool {
	return slices.ContainsFunc(knowledge.SplitNameWords(p), func(w string) bool {
		return slices.Contains([]string{"test", "tests", "spec", "specs", "fixture", "fixtures", "testdata", "example", "examples", "mock", "mocks", "md", "rst", "docs"}, w)
	})
}

// wouldGitTrack reports whether the file p is in a repository that does not ignore it. It is false for tests,
// examples and documents, where credentials are examples.
func (c *ActionCase) wouldGitTrack(p string) bool {
	inside := func(p string) bool { return c.executionContext.IsInsideRoots(p, false, false) }
	r := committed.New(localNoSymlinkDisk{c.files}, inside, inside)
	defer r.Close()
	dir := c.resolveFolderSymlinks(path.Dir(p))
	for dir != "/" && dir != "." {
		if _, err := (localNoSymlinkDisk{c.files}).Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = path.Dir(dir)
	}
	t, ok := r.ReadWorkTree(dir)
	if !ok {
		return false
	}
	below, under := strings.CutPrefix(p, t.Top+"/")
	if !under || isTestOrExamplePath(below) {
		return false
	}
	s := stagedFilesSearch{localDisk: localNoSymlinkDisk{c.files}}
	ps := s.appendIgnorePatterns(t.GitDir+"/info/exclude", nil, nil)
	names := strings.Split(below, "/")
	for i := range names {
		ps = s.appendIgnorePatterns(strings.Join(append([]string{t.Top}, names[:i]...), "/")+"/.gitignore", names[:i], ps)
	}
	m := gitignore.NewMatcher(ps)
	for i := range names {
		if m.Match(names[:i+1], i+1 < len(names)) {
			return false
		}
	}
	return true
}

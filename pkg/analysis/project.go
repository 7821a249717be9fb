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
	maxWorkspaceFilesSearched   = 3000     // files
	maxWorkspaceSearchBytes     = 16 << 20 // total bytes
	maxWorkspaceSearchFileBytes = 1 << 20
)

// workspaceSearchSkippedFolders are folders of the workspace with code that others have written.
var workspaceSearchSkippedFolders = []string{".git", "node_modules", "vendor", ".venv", "venv", "target", "dist", "build", "__pycache__"}

// WorkspaceContainsAnyWord reports whether a file of the workspace contains one of some names as a whole word and has not
// changed since an instant. Newer files, and files from outside, do not count: the author of an injected text
// could have written them.
func (c *ActionCase) WorkspaceContainsAnyWord(words []string, filesUnchangedSince time.Time) bool {
	if c.files == nil || len(words) == 0 {
		return false
	}
	s := workspaceSearch{c: c, localDisk: localNoSymlinkDisk{c.files}, filesUnchangedSince: filesUnchangedSince, filesLeft: maxWorkspaceFilesSearched, bytesLeft: maxWorkspaceSearchBytes}
	for _, name := range words {
		s.lowercaseWords = append(s.lowercaseWords, []byte(strings.ToLower(name)))
	}
	folders := slices.Clone(c.executionContext.WorkspaceRoots)
	for _, root := range c.executionContext.WorkspaceRoots {
		if s.fileContainsAnyWord(root + "/.git/config") {
			return true
		}
	}
	for len(folders) > 0 && s.filesLeft > 0 {
		dir := folders[0]
		folders = folders[1:]
		list, err := s.localDisk.ReadDir(dir, s.filesLeft)
		if err != nil {
			continue
		}
		for _, e := range list {
			switch name := path.Join(dir, e.Name()); {
			case e.IsDir() && !slices.Contains(workspaceSearchSkippedFolders, e.Name()):
				folders = append(folders, name)
			case e.Type().IsRegular():
				if s.fileContainsAnyWord(name) {
					return true
				}
			}
		}
	}
	return false
}

type workspaceSearch struct {
	c                   *ActionCase
	localDisk           localNoSymlinkDisk
	lowercaseWords      [][]byte
	filesUnchangedSince time.Time
	filesLeft           int
	bytesLeft           int64
}

func (s *workspaceSearch) fileContainsAnyWord(filePath string) bool {
	if s.filesLeft--; s.filesLeft < 0 {
		return false
	}
	if s.c.executionContext.OriginLabels != nil && len(s.c.executionContext.OriginLabels(filePath)) > 0 {
		return false
	}
	f, err := s.localDisk.Open(filePath)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > maxWorkspaceSearchFileBytes || !lastChangeTime(info).Before(s.filesUnchangedSince) {
		return false
	}
	if s.bytesLeft -= info.Size(); s.bytesLeft < 0 {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(f, maxWorkspaceSearchFileBytes))
	if err != nil {
		return false
	}
	text = bytes.ToLower(text)
	return slices.ContainsFunc(s.lowercaseWords, func(name []byte) bool { return containsWholeWord(text, name) })
}

// containsWholeWord reports whether a text has a name that is not part of a longer one.
func containsWholeWord(text, word []byte) bool {
	inName := func(b byte) bool {
		return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '_'
	}
	for from := 0; ; {
		at := bytes.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(word)
		if (at == 0 || !inName(text[at-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}
		from = at + 1
	}
}

// IsUnchangedSinceLastCommit reports whether a file of the workspace is unchanged since the last commit of the
// repository that contains it.
func (c *ActionCase) IsUnchangedSinceLastCommit(file string) bool {
	if c.files == nil {
		return false
	}
	r := c.commitReader()
	defer r.Close()
	return c.isInLastCommit(r, c.files, file)
}

// IsTracked reports whether a file of the workspace is in the last commit of the repository that
// contains it. The content may have changed since.
func (c *ActionCase) IsTracked(file string) bool {
	if c.files == nil {
		return false
	}
	r := c.commitReader()
	defer r.Close()
	return r.IsCommittedFile(file)
}

// commitReader returns a reader of the repositories in the workspace.
func (c *ActionCase) commitReader() *committed.LastCommitReader {
	inside := func(p string) bool { return c.executionContext.IsInsideRoots(p, false, false) }
	home := strings.TrimSuffix(c.executionContext.Home, "/") + "/"
	return committed.New(localNoSymlinkDisk{c.files}, inside, func(p string) bool { return inside(p) || len(home) > 1 && strings.HasPrefix(p, home) })
}

package scan

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A fileOverlay is an overlay over the disk that holds the files of one conversation as its calls leave
// them. Folders of the conversation that do not exist on this machine appear as empty folders. It
// implements [analysis.FileOverlay].
type fileOverlay struct {
	entries            map[string]analysis.OverlayEntry
	entryNamesByFolder map[string][]string // names of the entries in a folder, derived from the paths in entries
	totalBytes         int

	home                      string
	foldersMissingOnDisk      []string // folders of the conversation that do not exist on the disk
	hasReadMissingFile        bool     // a call read a file in one of foldersMissingOnDisk whose content is unknown
	treatsMissingFilesAsEmpty bool     // judge a file with unknown content in foldersMissingOnDisk as if it existed and were empty
}

// Limits of a fileOverlay. Files beyond them have unknown content.
const (
	maxOverlayBytes   = 32 << 20 // bytes
	maxOverlayEntries = 50_000
)

func newFileOverlay(home string) *fileOverlay {
	return &fileOverlay{entries: map[string]analysis.OverlayEntry{}, entryNamesByFolder: map[string][]string{}, home: home}
}

func (l *fileOverlay) LookUpEntry(p string) (analysis.OverlayEntry, bool) {
	if e, known := l.entries[p]; known {
		return e, true
	}
	for dir := path.Dir(p); len(dir) > 1; dir = path.Dir(dir) {
		if e, known := l.entries[dir]; known {
			return analysis.OverlayEntry{Deleted: true}, e.Deleted
		}
	}
	return analysis.OverlayEntry{}, false
}

func (l *fileOverlay) Names(folder string) []string { return l.entryNamesByFolder[folder] }

func (l *fileOverlay) TreatsMissingPathAsEmptyFile(p string) bool {
	if !slices.ContainsFunc(l.foldersMissingOnDisk, func(root string) bool { return strings.HasPrefix(p, root+"/") }) {
		return false
	}
	l.hasReadMissingFile = true
	return l.treatsMissingFilesAsEmpty
}

// addEmptyFolder adds the folder dir, without files, to the overlay if it does not exist on the disk: a
// transcript can name folders that were deleted later.
func (l *fileOverlay) addEmptyFolder(dir string) {
	if len(dir) < 2 || dir[0] != '/' || slices.Contains(l.foldersMissingOnDisk, dir) || len(l.foldersMissingOnDisk) == 256 {
		return
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	l.foldersMissingOnDisk = append(l.foldersMissingOnDisk, dir)
	l.ensureFolder(dir)
}

// putEntryWithParents records the entry at a path, and that the folders above it exist.
func (l *fileOverlay) putEntryWithParents(p string, e analysis.OverlayEntry) {
	if p == "" || p[0] != '/' || len(l.entries) >= maxOverlayEntries {
		return
	}
	if was, known := l.entries[p]; known {
		l.totalBytes -= len(was.Text)
	}
	if l.totalBytes+len(e.Text) > maxOverlayBytes {
		e.Text, e.ContentUnknown = nil, true
	}
	l.totalBytes += len(e.Text)
	if !e.Deleted {
		l.addParentFolders(path.Dir(p))
	}
	l.setEntryAndFolderListing(p, e)
}

// addParentFolders records that a folder and the folders above it exist, up to the first that the
// overlay or the disk has.
func (l *fileOverlay) addParentFolders(dir string) {
	for ; len(dir) > 1; dir = path.Dir(dir) {
		if e, known := l.LookUpEntry(dir); known && !e.Deleted {
			return
		} else if !known {
			if _, err := os.Lstat(dir); err == nil {
				return // the path exists on the disk
			}
		}
		l.setEntryAndFolderListing(dir, analysis.OverlayEntry{IsFolder: true})
	}
}

func (l *fileOverlay) setEntryAndFolderListing(p string, e analysis.OverlayEntry) {
	if _, known := l.entries[p]; !known {
		dir := path.Dir(p)
		l.entryNamesByFolder[dir] = append(l.entryNamesByFolder[dir], path.Base(p))
	}
	l.entries[p] = e
}

func (l *fileOverlay) ensureFolder(dir string) {
	if e, known := l.LookUpEntry(dir); !known || !e.IsFolder {
		l.putEntryWithParents(dir, analysis.OverlayEntry{IsFolder: true})
	}
}

// recordRemoval records that a path and everything below it was deleted.
func (l *fileOverlay) recordRemoval(p string) {
	if len(p) < 2 || slices.ContainsFunc(l.foldersMissingOnDisk, func(root string) bool { return root == p || strings.HasPrefix(root, p+"/") }) {
		return
	}
	for name, e := range l.entries {
		if strings.HasPrefix(name, p+"/") {
			l.totalBytes -= len(e.Text)
			delete(l.entries, name)
			delete(l.entryNamesByFolder, path.Dir(name))
		}
	}
	l.putEntryWithParents(p, analysis.OverlayEntry{Deleted: true})
}

// movePath moves a path to another.
func (l *fileOverlay) movePath(from, to string) {
	e, known := l.LookUpEntry(from)
	if known && e.Deleted {
		return
	}
	if !known {
		e = analysis.OverlayEntry{ContentUnknown: true}
	}
	if into, known := l.LookUpEntry(to); known && into.IsFolder {
		to = path.Join(to, path.Base(from))
	}
	var names []string
	for name := range l.entries {
		if strings.HasPrefix(name, from+"/") {
			names = append(names, name)
		}
	}
	sorted.SortStrings(names)
	var moved []analysis.OverlayEntry
	for _, name := range names {
		moved = append(moved, l.entries[name])
	}
	l.recordRemoval(from)
	l.putEntryWithParents(to, e)
	for i, name := range names {
		l.putEntryWithParents(to+strings.TrimPrefix(name, from), moved[i])
	}
}

// recordTextBeforeEdit records content that an edit shows to have existed: the text that it replaces.
func (l *fileOverlay) recordTextBeforeEdit(c *analysis.ActionCase) {
	old := c.OldTextOfEdits()
	if c.Action.Type != "write_file" || old == "" {
		return
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.WriteFile || e.PathIsPattern || e.Path == "" {
			continue
		}
		if was, known := l.LookUpEntry(e.Path); !known || was.Deleted {
			if _, err := os.Lstat(e.Path); err != nil {
				l.putEntryWithParents(e.Path, analysis.OverlayEntry{Text: []byte(old), IsIdenticalInGitHEAD: true})
			}
		}
		return
	}
}

// applyEffects records the certain effects of an action that was executed.
func (l *fileOverlay) applyEffects(c *analysis.ActionCase) {
	texts := map[string]bool{}
	c.EachFileWriteCase(func(w *analysis.ActionCase) {
		p := w.Action.Text("path")
		l.recordWrite(p, w)
		texts[p] = true
	})
	if c.Action.Type == "write_file" {
		for i := range c.Effects {
			if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.PathIsPattern && e.Path != "" {
				l.recordWrite(e.Path, c)
				return
			}
		}
		return
	}
	moved := ""
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Path == "" && e.Kind != effect.Execute || e.PathIsPattern || e.Certainty != effect.Certain {
			continue
		}
		switch e.Kind {
		case effect.MoveFile:
			moved = e.Path
		case effect.WriteFile:
			switch was, known := l.LookUpEntry(e.Path); {
			case moved != "":
				l.movePath(moved, e.Path)
				moved = ""
			case texts[e.Path]:
			case known && !was.Deleted && !was.IsFolder:
				was.Text, was.ContentUnknown, was.IsIdenticalInGitHEAD = nil, true, false
				l.putEntryWithParents(e.Path, was)
			}
		case effect.CreateDirectory:
			l.ensureFolder(e.Path)
		case effect.DeleteFile, effect.DeleteDirectory:
			l.recordRemoval(e.Path)
		case effect.Execute:
			if e.Program == "git" && command.ParseGit(e.Args).Subcommand == "commit" {
				l.markFilesCommittedInGit(c.ExecutionContext().CWD)
			}
		}
	}
}

// recordWrite records that an action wrote or edited a file.
func (l *fileOverlay) recordWrite(p string, c *analysis.ActionCase) {
	old, text := c.OldTextOfEdits(), c.Action.Text("content")
	if was, known := l.LookUpEntry(p); old != "" {
		if known = known && !was.Deleted; known {
			if after, ok := c.ContentAfterEdit(string(was.Text)); ok {
				l.putEntryWithParents(p, analysis.OverlayEntry{Text: []byte(after)})
				return
			}
		}
		if known && !was.ContentUnknown {
			old = string(was.Text) + "\n"
		} else if _, err := os.Lstat(p); err == nil {
			return // no entry: the content is that of the edited file on the disk
		}
		text = old + text
	}
	l.putEntryWithParents(p, analysis.OverlayEntry{Text: []byte(text)})
}

// markFilesCommittedInGit records that the files of a repository are in its last commit.
func (l *fileOverlay) markFilesCommittedInGit(dir string) {
	root := dir
	for _, r := range l.foldersMissingOnDisk {
		if strings.HasPrefix(dir+"/", r+"/") && (root == dir || len(r) < len(root)) {
			root = r
		}
	}
	if root == "" {
		return
	}
	for name, e := range l.entries {
		if strings.HasPrefix(name, root+"/") && !e.IsFolder && !e.Deleted {
			e.IsIdenticalInGitHEAD = true
			l.entries[name] = e
		}
	}
}

// recordReadFile records the content of a file that was read completely.
func (l *fileOverlay) recordReadFile(a *action.Action, c *analysis.ActionCase, result any) {
	text, isText := result.(string)
	if !isText || a.Type != "read_file" || len(c.Effects) == 0 || len(a.Payload) != 1 {
		return
	}
	e := &c.Effects[0]
	if e.Kind != effect.ReadFile || e.PathIsPattern || e.Path == "" {
		return
	}
	if was, known := l.LookUpEntry(e.Path); known && !was.Deleted && !was.ContentUnknown {
		return
	}
	if _, err := os.Lstat(e.Path); err == nil {
		return
	}
	text, ok := stripLineNumbers(text)
	l.putEntryWithParents(e.Path, analysis.OverlayEntry{Text: []byte(text), ContentUnknown: !ok, IsIdenticalInGitHEAD: true})
}

// stripLineNumbers returns a text without the line numbers that a host adds. ok is false if they do not
// start at 1, so that the file was not read completely.
func stripLineNumbers(text string) (plain string, ok bool) {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		after, found := strings.CutPrefix(rest[n:], "→")
		if !found {
			after, found = strings.CutPrefix(rest[n:], "\t")
		}
		switch {
		case n > 0 && found && (i > 0 || rest[:n] == "1"):
			b.WriteString(after + "\n")
		case i == 0:
			return text, n == 0
		case line != "" && !strings.HasPrefix(line, "<"):
			return text, false
		}
	}
	return b.String(), true
}

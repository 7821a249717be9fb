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

// A transcript is a file with a conversation, or one session in a database.
type transcript struct {
	source         *transcriptSource
	filePath       string // name of the file
	size           int64
	conversationID string // ID of the conversation; a sub-agent's transcript has the ID of the conversation that started the sub-agent

	sessionID     string           // session ID in a database; "" for a plain file
	workingFolder string           // folder of the session
	rows          []messagePartRow // the session's parts, in order
}

// defaultConversationID returns the ID of the conversation if the transcript is not that of a sub-agent:
// the file name, with the session ID for a session in a database.
func (f *transcript) defaultConversationID() string {
	if f.sessionID != "" {
		return f.filePath + "#" + f.sessionID
	}
	return f.filePath
}

// A SkippedFile is a file or folder that was not read, with the reason.
type SkippedFile struct {
	File   string `json:"file"`
	Reason string `json:"why"`
}

// Limits of the search.
const (
	maxTranscriptFiles    = 200_000
	maxFolderDepth        = 12
	maxListedSkippedFiles = 100 // left-out files that are listed
)

// A transcriptFinder searches for transcripts.
type transcriptFinder struct {
	files                   []transcript
	skipped                 []SkippedFile
	omittedSkippedFileCount int // number of left-out files that are not listed
}

func (f *transcriptFinder) skipFile(name, why string) {
	if len(f.skipped) == maxListedSkippedFiles {
		f.omittedSkippedFileCount++
		return
	}
	f.skipped = append(f.skipped, SkippedFile{name, why})
}

// searchHostFolder searches a host's folder. It does not follow symbolic links, and skips files and folders of
// other users.
func (f *transcriptFinder) searchHostFolder(s *transcriptSource, root string) {
	info, err := os.Stat(root) // the folder itself can be a symbolic link of its user
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.skipFile(root, errorWithoutPath(err))
		return
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, 0); err != nil {
		f.skipFile(root, "the file belongs to another user")
		return
	}
	for _, pattern := range s.Files {
		f.searchFolder(s, root, strings.Split(pattern, "/"), 0)
	}
}

// searchFolder searches a folder for files that match a path pattern.
func (f *transcriptFinder) searchFolder(s *transcriptSource, dir string, pattern []string, level int) {
	if level > maxFolderDepth || len(f.files) >= maxTranscriptFiles {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.skipFile(dir, errorWithoutPath(err))
		}
		return
	}
	first, rest := pattern[0], pattern[1:]
	if first == "**" {
		f.addMatchingFiles(s, dir, entries, rest, level)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		matched, _ := path.Match(first, e.Name())
		switch {
		case first == "**" && e.IsDir():
			f.searchFolder(s, name, pattern, level+1)
		case !matched || first == "**":
		case e.Type()&fs.ModeSymlink != 0:
			f.skipFile(name, "the file is a symbolic link")
		case len(rest) > 0 && e.IsDir():
			if f.isOwnedByUserOrRoot(name, e) {
				f.searchFolder(s, name, rest, level+1)
			}
		case len(rest) == 0:
			f.addTranscript(s, name, e)
		}
	}
}

// addMatchingFiles adds the files of a folder that match the last element of a pattern.
func (f *transcriptFinder) addMatchingFiles(s *transcriptSource, dir string, entries []fs.DirEntry, remainingPatternElements []string, level int) {
	for _, e := range entries {
		if matched, _ := path.Match(remainingPatternElements[0], e.Name()); !matched || len(remainingPatternElements) > 1 || e.IsDir() {
			continue
		}
		if name := filepath.Join(dir, e.Name()); e.Type()&fs.ModeSymlink != 0 {
			f.skipFile(name, "the file is a symbolic link")
		} else {
			f.addTranscript(s, name, e)
		}
	}
}

// isOwnedByUserOrRoot reports whether a folder belongs to this user or to root.
func (f *transcriptFinder) isOwnedByUserOrRoot(name string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		f.skipFile(name, errorWithoutPath(err))
		return false
	}
	if owner.CheckOwnerAndDeniedModeBits(info, 0) != nil {
		f.skipFile(name, "the file belongs to another user")
		return false
	}
	return true
}

func (f *transcriptFinder) addTranscript(s *transcriptSource, name string, e fs.DirEntry) {
	if !f.isOwnedByUserOrRoot(name, e) {
		return
	}
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		f.skipFile(name, "the path is not a regular file; put a regular file there")
		return
	}
	if len(f.files) >= maxTranscriptFiles {
		f.skipFile(name, fmt.Sprintf("more than %d transcripts; choose fewer with --since or --path", maxTranscriptFiles))
		return
	}
	if s.RecordFormat == recordFormatSQLite {
		if err := f.addDatabase(s, name); err != nil {
			f.skipFile(name, errorWithoutPath(err))
		}
		return
	}
	task := name
	if dir := filepath.Dir(name); s.Host == "claude-code" && filepath.Base(dir) == "subagents" {
		task = filepath.Dir(dir) + ".jsonl"
	}
	f.files = append(f.files, transcript{source: s, filePath: name, size: info.Size(), conversationID: task})
}

// addUserNamedPath adds a path that the user named: a file, or all files below a folder whose names end in
// .jsonl, .json or .db.
func (f *transcriptFinder) addUserNamedPath(name, host string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.addUserNamedFile(name, host)
	}
	return filepath.WalkDir(name, func(at string, e fs.DirEntry, err error) error {
		switch known := slices.Contains([]string{".jsonl", ".json", ".db"}, filepath.Ext(at)); {
		case err != nil:
			f.skipFile(at, errorWithoutPath(err))
			return nil
		case len(f.files) >= maxTranscriptFiles:
			return fs.SkipAll
		case e.Type()&fs.ModeSymlink != 0 && known:
			f.skipFile(at, "the file is a symbolic link")
		case e.Type().IsRegular() && known:
			if info, err := e.Info(); err != nil || owner.CheckOwnerAndDeniedModeBits(info, 0) != nil {
				f.skipFile(at, "the file belongs to another user")
				return nil
			}
			if err := f.addUserNamedFile(at, host); err != nil {
				f.skipFile(at, errorWithoutPath(err))
			}
		}
		return nil
	})
}

// addUserNamedFile adds a file of a host; if host is "", the host is detected from its records.
func (f *transcriptFinder) addUserNamedFile(name, host string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("the path is not a regular file; put a regular file there")
	}
	if isDatabase(name) {
		for i := range transcriptSources() {
			if s := &transcriptSources()[i]; s.RecordFormat == recordFormatSQLite && (host == "" || host == s.Host) {
				return f.addDatabase(s, name)
			}
		}
	}
	s, err := detectTranscriptSource(name, host)
	if err != nil {
		return err
	}
	f.files = append(f.files, transcript{source: s, filePath: name, size: info.Size(), conversationID: name})
	return nil
}

// errorWithoutPath returns an error's text without the path, which is shown separately.
func errorWithoutPath(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// detectTranscriptSource returns the source whose reader recognises most of a file's first records.
func detectTranscriptSource(name, host string) (*transcriptSource, error) {
	var best *transcriptSource
	most := 0
	for i := range transcriptSources() {
		s := &transcriptSources()[i]
		if host != "" && s.Host != host || s.RecordFormat == recordFormatSQLite {
			continue
		}
		n := transcriptFormatMatchScorer{}
		_ = readRecords(transcript{source: s, filePath: name}, &n, maxSampledRecords, nil) // a file that cannot be read has no records
		if n.formatScore > most {
			best, most = s, n.formatScore
		}
	}
	if best == nil {
		return nil, errors.New("the file is not a transcript of a known host; name the host with --host NAME")
	}
	return best, nil
}

// maxSampledRecords is the number of records that are used to detect a file's host.
const maxSampledRecords = 40

// A transcriptFormatMatchScorer counts what a reader recognises in the first records.
type transcriptFormatMatchScorer struct{ formatScore int }

func (s *transcriptFormatMatchScorer) handleFolderChange(string) { s.formatScore++ }
func (s *transcriptFormatMatchScorer) handleCall(toolCall)       { s.formatScore += 4 }
func (s *transcriptFormatMatchScorer) handleResult(toolResult)   { s.formatScore += 4 }
func (s *transcriptFormatMatchScorer) countUnknownRecordKind(string) {
	s.formatScore--
}

// groupByConversation groups files by conversation, each with its main file first, and drops files that occur twice.
func groupByConversation(files []transcript) (tasks [][]transcript) {
	sorted.SortStableBy(files, func(a, b transcript) int {
		if c := strings.Compare(a.conversationID, b.conversationID); c != 0 {
			return c
		}
		if (a.defaultConversationID() == a.conversationID) != (b.defaultConversationID() == b.conversationID) {
			if a.defaultConversationID() == a.conversationID {
				return -1
			}
			return 1
		}
		return strings.Compare(a.defaultConversationID(), b.defaultConversationID())
	})
	for i, f := range files {
		switch {
		case i > 0 && f.defaultConversationID() == files[i-1].defaultConversationID():
		case i > 0 && f.conversationID == files[i-1].conversationID:
			tasks[len(tasks)-1] = append(tasks[len(tasks)-1], f)
		default:
			tasks = append(tasks, []transcript{f})
		}
	}
	return tasks
}

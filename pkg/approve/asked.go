package approve

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/verdict"
)

// hostQuestionsFolder is the folder of questions that hosts were told to ask their users: one file for each question,
// and hostsNotAskingFile.
const hostQuestionsFolder = "asked"

// hostsNotAskingFile lists versions of hosts that ran a call at once although they were told to ask.
const hostsNotAskingFile = "unasked"

// Limits of hostQuestionsFolder.
const (
	maxHostQuestionAge = 24 * time.Hour
	maxHostsNotAsking  = 256
)

// minAnswerDelay is the time after a question within which no person can have answered.
const minAnswerDelay = 400 * time.Millisecond

// A HostQuestion is what a host was told to ask its user.
type HostQuestion struct {
	Host    string    `json:"host"`
	Version string    `json:"version,omitempty"` // version of the host; "" if it does not matter
	At      time.Time `json:"at"`
}

// RecordHostQuestion keeps a question for a day. key names the actions that it is about.
func RecordHostQuestion(stateDir, actionsKey string, q HostQuestion) error {
	b, err := openSealedFolder(stateDir, hostQuestionsFolder)
	if err != nil {
		return err
	}
	files, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && f.Name() != hostsNotAskingFile && time.Since(info.ModTime()) > maxHostQuestionAge {
			_ = os.Remove(b.path(f.Name())) // if this fails, the next question tries again
		}
	}
	return b.write(actionsKey, q)
}

// FindHostQuestion returns the question about some actions that a host was told to ask.
func FindHostQuestion(stateDir, key string) (q HostQuestion, asked bool) {
	b, there := openExistingHostQuestions(stateDir, key)
	return q, there && b.read(key, &q) == nil
}

// HostSkippedQuestion deletes the question about some actions, which ran at time now. It reports whether
// the host cannot have asked a user.
func HostSkippedQuestion(stateDir, key string, now time.Time) (q HostQuestion, unasked bool) {
	b, there := openExistingHostQuestions(stateDir, key)
	if !there {
		return q, false
	}
	err := b.read(key, &q)
	_ = os.Remove(b.path(key)) // if this fails, the host's question about the same call stays recorded for a day
	since := now.Sub(q.At)
	return q, err == nil && since >= 0 && since < minAnswerDelay
}

// RecordNonAskingHost records that a version of a host does not ask its user.
func RecordNonAskingHost(stateDir string, q HostQuestion) error {
	b, err := openSealedFolder(stateDir, hostQuestionsFolder)
	if err != nil {
		return err
	}
	var list []string
	if err := b.read(hostsNotAskingFile, &list); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if list = append(list, q.fileName()); len(list) > maxHostsNotAsking {
		list = list[1:]
	}
	return b.write(hostsNotAskingFile, list)
}

// HostNotAsking reports whether a version of a host is known not to ask its user, or whether the
// record cannot be read.
func HostNotAsking(stateDir, host, version string) bool {
	b, there := openExistingHostQuestions(stateDir, hostsNotAskingFile)
	if !there {
		return false
	}
	var list []string
	err := b.read(hostsNotAskingFile, &list)
	q := HostQuestion{Host: host, Version: version}
	return err != nil || slices.Contains(list, q.fileName())
}

func (q *HostQuestion) fileName() string {
	text, _ := json.Marshal([]string{q.Host, q.Version}) // the list contains strings only
	return string(text)
}

// openExistingHostQuestions opens the folder of host questions if it has a file of this name, and creates
// nothing.
func openExistingHostQuestions(stateDir, fileName string) (*sealedFolder, bool) {
	if _, err := os.Lstat(filepath.Join(stateDir, hostQuestionsFolder, fileName)); err != nil {
		return nil, false
	}
	if has, err := verdict.HasKey(stateDir); err != nil || !has {
		return nil, false
	}
	b, err := openSealedFolder(stateDir, hostQuestionsFolder)
	return b, err == nil
}

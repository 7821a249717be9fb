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
// and hostsSkippingApprovalFileName.
const hostQuestionsFolder = "asked"

// hostsSkippingApprovalFileName lists versions of hosts that ran a call at once although they were told to ask.
const hostsSkippingApprovalFileName = "unasked"

// Limits of hostQuestionsFolder.
const (
	maxHostQuestionAge       = 24 * time.Hour
	maxHostsSkippingApproval = 256
)

// minHumanAnswerDelay is the time after a question within which no person can have answered.
const minHumanAnswerDelay = 400 * time.Millisecond

// A HostQuestion is what a host was told to ask its user.
type HostQuestion struct {
	Host        string    `json:"host"`
	HostVersion string    `json:"version,omitempty"` // version of the host; "" if it does not matter
	AskedAt     time.Time `json:"at"`
}

// RecordHostQuestion keeps a question for a day. actionsKey identifies the actions that the
// question is about.
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
		if info, err := f.Info(); err == nil && f.Name() != hostsSkippingApprovalFileName && time.Since(info.ModTime()) > maxHostQuestionAge {
			_ = os.Remove(b.path(f.Name())) // if this fails, the next question tries again
		}
	}
	return b.write(actionsKey, q)
}

// FindHostQuestion returns the question that [RecordHostQuestion] stored under key, which identifies the actions
// that the question is about. asked is false if there is none.
func FindHostQuestion(stateDir, key string) (q HostQuestion, asked bool) {
	b, there := openHostQuestionsFolderWithFile(stateDir, key)
	return q, there && b.read(key, &q) == nil
}

// TakeHostQuestion returns and deletes the question about some actions, which ran at actionsRanAt.
// hostCannotHaveAsked is true if they ran so soon after the question that no user can have answered it.
func TakeHostQuestion(stateDir, actionsKey string, actionsRanAt time.Time) (q HostQuestion, hostCannotHaveAsked bool) {
	b, there := openHostQuestionsFolderWithFile(stateDir, actionsKey)
	if !there {
		return q, false
	}
	err := b.read(actionsKey, &q)
	_ = os.Remove(b.path(actionsKey)) // if this fails, the host's question about the same call stays recorded for a day
	since := actionsRanAt.Sub(q.AskedAt)
	return q, err == nil && since >= 0 && since < minHumanAnswerDelay
}

// RecordHostSkippingApproval records that a version of a host does not ask its user.
func RecordHostSkippingApproval(stateDir string, q HostQuestion) error {
	b, err := openSealedFolder(stateDir, hostQuestionsFolder)
	if err != nil {
		return err
	}
	var list []string
	if err := b.read(hostsSkippingApprovalFileName, &list); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if list = append(list, q.fileName()); len(list) > maxHostsSkippingApproval {
		list = list[1:]
	}
	return b.write(hostsSkippingApprovalFileName, list)
}

// IsHostSkippingApproval reports whether a version of a host is known not to ask its user, or whether the
// record cannot be read.
func IsHostSkippingApproval(stateDir, host, version string) bool {
	b, there := openHostQuestionsFolderWithFile(stateDir, hostsSkippingApprovalFileName)
	if !there {
		return false
	}
	var list []string
	err := b.read(hostsSkippingApprovalFileName, &list)
	q := HostQuestion{Host: host, HostVersion: version}
	return err != nil || slices.Contains(list, q.fileName())
}

func (q *HostQuestion) fileName() string {
	text, _ := json.Marshal([]string{q.Host, q.HostVersion}) // the list contains strings only
	return string(text)
}

// openHostQuestionsFolderWithFile opens the folder of host questions if it has a file of this name, and creates
// nothing.
func openHostQuestionsFolderWithFile(stateDir, fileName string) (*sealedFolder, bool) {
	if _, err := os.Lstat(filepath.Join(stateDir, hostQuestionsFolder, fileName)); err != nil {
		return nil, false
	}
	if has, err := verdict.HasKey(stateDir); err != nil || !has {
		return nil, false
	}
	b, err := openSealedFolder(stateDir, hostQuestionsFolder)
	return b, err == nil
}

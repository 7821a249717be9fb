package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A questionInbox holds the questions that all processes of this user have put to one channel. For
// each question it has three files, named by the question's ID:
//
//	ID.lock     locked by the asking process as long as that process lives
//	ID.request  the question, written by the asking process
//	ID.answer   the answer, written by the process that collects answers
//
// A process locks "order.lock" while it adds a question or removes the files of a dead process.
// "number" contains the number of the last question. One process collects answers. For the approval
// page, that process locks "serve.lock"; "page" contains the page's address, and "history" the
// questions answered last. For Telegram, that process locks "read.lock".
type questionInbox struct {
	*sealedFolder
	cachedQuestionsByID map[string]*inboxQuestion // questions that were read, by ID; nil for a file that cannot be trusted
}

// An inboxQuestion is a question to a person, as a [questionInbox] stores it.
type inboxQuestion struct {
	Number              int       `json:"number"` // number of the question, from 1
	AskedAt             time.Time `json:"asked"`
	DeniedAt            time.Time `json:"ends"`    // time at which the question is denied
	ActionText          string    `json:"subject"` // the action in one line
	RememberedAnswerKey string    `json:"binding,omitempty"`
	Request             *Request  `json:"request"`
}

// isSameQuestion reports whether two questions are one for the person: about exactly the same action,
// in the same place and session, and for the same reasons. Only the processes that ask differ.
func (e *inboxQuestion) isSameQuestion(o *inboxQuestion) bool {
	return e.RememberedAnswerKey != "" && e.RememberedAnswerKey == o.RememberedAnswerKey && e.Request.Summary == o.Request.Summary &&
		slices.Equal(e.Request.TierResultTexts, o.Request.TierResultTexts) && e.Request.OffersTimedApproval == o.Request.OffersTimedApproval && e.Request.AdvanceApprovalScope == o.Request.AdvanceApprovalScope &&
		e.Request.UnknownToolDescription == o.Request.UnknownToolDescription
}

// groupSameQuestions groups the questions that the person can answer together, because
// [inboxQuestion.isSameQuestion] is true for them. The groups are in the order of their first questions.
func groupSameQuestions(list []*inboxQuestion) (groups [][]*inboxQuestion) {
	for _, e := range list {
		i := slices.IndexFunc(groups, func(g []*inboxQuestion) bool { return g[0].isSameQuestion(e) })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], e)
	}
	return groups
}

// A pageOrChatAnswer is a person's answer to one question, given on the approval page or in a chat.
type pageOrChatAnswer struct {
	QuestionID string    `json:"id"`
	Choice     string    `json:"choice"`
	Reason     string    `json:"reason,omitempty"`
	By         string    `json:"by"`
	At         time.Time `json:"at"`
}

// Limits of the inbox.
const (
	maxWaitingQuestions = 100    // questions
	maxInboxFiles       = 10_000 // files that are read
	requestIDHexLen     = 32     // characters
	maxQuestionNumber   = 999    // highest number of a question; the question after it gets number 1
)

// lastQuestionNumberFile is the name of the file of the last number.
const lastQuestionNumberFile = "number"

// pageInboxFolder is the name of the folder, in the state folder, with the [questionInbox] of the approval page.
const pageInboxFolder = "inbox"

func openInbox(stateDir, name string) (*questionInbox, error) {
	b, err := openSealedFolder(stateDir, name)
	if err != nil {
		return nil, err
	}
	return &questionInbox{sealedFolder: b, cachedQuestionsByID: map[string]*inboxQuestion{}}, nil
}

// inboxLockWait is how long a process waits for the lock that is held while a
// question is written.
const inboxLockWait = 2 * time.Second

// withQuestionListLock runs f while no other process changes which questions there are.
func (b *questionInbox) withQuestionListLock(ctx context.Context, f func() error) error {
	l, err := flock.New(b.path("order.lock"))
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Lock(ctx, inboxLockWait); err != nil {
		return err
	}
	return f()
}

// addQuestion puts a question into the inbox. The question stays there until the returned lock is
// passed to [questionInbox.removeQuestion], or this process exits.
func (b *questionInbox) addQuestion(ctx context.Context, r *Request, now time.Time) (alive *flock.Lock, err error) {
	err = b.withQuestionListLock(ctx, func() error {
		others, err := b.waitingQuestions()
		if err != nil {
			return err
		}
		if len(others) >= maxWaitingQuestions {
			return fmt.Errorf("%d questions are already waiting; answer them with 'shield approvals'", len(others))
		}
		number, err := b.nextNumber()
		if err != nil {
			return err
		}
		e := &inboxQuestion{Number: number, AskedAt: now, DeniedAt: now.Add(r.TimeLeft()), ActionText: r.actionText, RememberedAnswerKey: r.rememberedAnswerKey, Request: truncateRequestForInbox(r)}
		if alive, err = flock.New(b.path(r.ID + ".lock")); err != nil {
			return err
		}
		if taken, err := alive.TryLock(); err != nil || !taken {
			return errors.Join(err, errors.New("another process is answering this question; try again"))
		}
		return b.write(r.ID+".request", e)
	})
	if err != nil {
		if alive != nil {
			b.removeQuestion(r.ID, alive)
		}
		return nil, fmt.Errorf("store the question: %w", err)
	}
	return alive, nil
}

// nextNumber returns the number of the next question: a page that stays open
// must not show two questions with the same number.
func (b *questionInbox) nextNumber() (int, error) {
	var last int
	if err := b.read(lastQuestionNumberFile, &last); err != nil || last >= maxQuestionNumber {
		last = 0
	}
	last++
	return last, b.write(lastQuestionNumberFile, last)
}

// removeQuestion removes a question of this process from the inbox. It releases the lock first, so
// that no one can answer a question of which a file is already gone.
func (b *questionInbox) removeQuestion(id string, alive *flock.Lock) {
	alive.Close()
	b.removeQuestionFiles(id)
	os.Remove(b.path(id + ".lock"))
}

// removeQuestionFiles removes the files of a question except its lock. The next process that
// reads the inbox removes what is left.
func (b *questionInbox) removeQuestionFiles(questionID string) {
	for _, suffix := range []string{".request", ".answer", ".request.new", ".answer.new"} {
		os.Remove(b.path(questionID + suffix))
	}
}

// isAskerAlive reports whether the process that asked a question still waits. If that cannot be known, it is false.
func (b *questionInbox) isAskerAlive(id string) bool {
	held, err := b.isAskerLockHeld(id)
	return err == nil && held
}

// isAskerLockHeld reports whether a process holds the lock of a question; the lock of a process that died is free.
func (b *questionInbox) isAskerLockHeld(id string) (bool, error) {
	name := b.path(id + ".lock")
	if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	l, err := flock.New(name)
	if err != nil {
		return false, err
	}
	defer l.Close()
	taken, err := l.TryLock()
	return err == nil && !taken, err
}

// waitingQuestions returns the questions that wait, the oldest first.
func (b *questionInbox) waitingQuestions() ([]*inboxQuestion, error) {
	ids, err := b.questionIDs()
	if err != nil {
		return nil, err
	}
	var list []*inboxQuestion
	for id, asked := range ids {
		if !asked || !b.isAskerAlive(id) {
			continue
		}
		e, known := b.cachedQuestionsByID[id]
		if !known {
			e = b.loadQuestion(id)
			b.cachedQuestionsByID[id] = e
		}
		if e != nil {
			list = append(list, e)
		}
	}
	for id := range b.cachedQuestionsByID {
		if !ids[id] {
			delete(b.cachedQuestionsByID, id)
		}
	}
	sorted.SortStableBy(list, func(x, y *inboxQuestion) int {
		return cmp.Or(x.AskedAt.Compare(y.AskedAt), cmp.Compare(x.Number, y.Number), strings.Compare(x.Request.ID, y.Request.ID))
	})
	return list[:min(len(list), maxWaitingQuestions)], nil
}

// loadQuestion reads a question; nil if there is none that can be trusted.
func (b *questionInbox) loadQuestion(id string) *inboxQuestion {
	e := new(inboxQuestion)
	if err := b.read(id+".request", e); err != nil || e.Request == nil || e.Request.ID != id {
		return nil
	}
	return e
}

// questionIDs returns the ids for which the inbox contains a file. The value of an id is true if
// one of its files is the question, with the extension .request.
func (b *questionInbox) questionIDs() (map[string]bool, error) {
	d, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxInboxFiles) // use the part that was read before the error
	ids := map[string]bool{}
	for _, name := range names {
		id, kind, found := strings.Cut(name, ".")
		if found && len(id) == requestIDHexLen && strings.Trim(id, "0123456789abcdef") == "" {
			ids[id] = ids[id] || kind == "request"
		}
	}
	return ids, nil
}

// removeFilesOfDeadAskers removes files of processes that were killed while asking.
func (b *questionInbox) removeFilesOfDeadAskers(ctx context.Context) error {
	ids, err := b.questionIDs()
	if err != nil {
		return err
	}
	for id := range ids {
		if b.isAskerAlive(id) {
			delete(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return b.withQuestionListLock(ctx, func() error { // addQuestion creates and locks ID.lock under this lock too
		for id := range ids {
			if !b.isAskerAlive(id) {
				b.removeQuestionFiles(id)
				os.Remove(b.path(id + ".lock"))
			}
		}
		return nil
	})
}

// readAnswer returns the answer to a question of this process; ok is false while there is none. An
// answer file that the serving process did not write is an error.
func (b *questionInbox) readAnswer(id string) (g pageOrChatAnswer, ok bool, err error) {
	err = b.read(id+".answer", &g)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return pageOrChatAnswer{}, false, nil
	case err != nil:
		return pageOrChatAnswer{}, false, fmt.Errorf("the answer cannot be read: %w", err)
	case g.QuestionID != id:
		return pageOrChatAnswer{}, false, errors.New("the answer has the ID of another question, so it does not count; answer again")
	}
	return g, true, nil
}

// writeAnswer writes an answer where the asking process looks for it. Only the first answer counts; it survives
// the process that wrote it.
func (b *questionInbox) writeAnswer(e *inboxQuestion, g pageOrChatAnswer) error {
	if g.Choice != choiceDeny && g.Choice != choiceToolForbidden && e.Request.IsPayloadTruncated {
		return errors.New("the action is too large to be shown in full, so it can only be denied; choose Deny")
	}
	if g.Choice == choiceRemember && !e.Request.OffersTimedApproval {
		return errors.New("this action can only be approved once; choose Approve once")
	}
	if g.Choice == choiceAdvanceApproval && e.Request.AdvanceApprovalScope == "" {
		return errors.New("each action of this kind needs its own approval; choose Approve once")
	}
	if classOfChoice(g.Choice) != "" && e.Request.UnknownToolDescription == "" {
		return errors.New("the action uses no unknown tool, so there is no tool to classify; choose Approve once")
	}
	if !g.At.Before(e.DeniedAt) || !b.isAskerAlive(g.QuestionID) {
		return errNotWaiting
	}
	if _, err := os.Lstat(b.path(g.QuestionID + ".answer")); err == nil {
		return errNotWaiting
	}
	return b.write(g.QuestionID+".answer", g)
}

// answer converts an answer from the approval page or a chat to an [Answer]. It returns an error if the choice
// is not known.
func (g *pageOrChatAnswer) answer() (Answer, error) {
	a := Answer{RequestID: g.QuestionID, AnsweringPersonName: g.By}
	switch g.Choice {
	case choiceDeny:
		a.Reason = strings.TrimSpace(g.Reason)
	case choiceOnce:
		a.Approve = true
	case choiceRemember:
		a.Approve, a.RememberFor = true, timedApprovalDuration
	case choiceAdvanceApproval:
		a.Approve, a.IsAdvanceApproval = true, true
	case choiceToolReadOnly, choiceToolChangesWorkspace, choiceToolChangesOutsideWorkspace:
		a.Approve, a.Class = true, classOfChoice(g.Choice)
	case choiceToolForbidden:
		a.Class, a.Reason = classOfChoice(g.Choice), strings.TrimSpace(g.Reason)
	default:
		return Answer{}, fmt.Errorf("%.20q is not a valid answer to this question; choose one that is shown", g.Choice)
	}
	return a, nil
}

// The choices on the page.
const (
	choiceDeny            = "deny" // with or without a reason
	choiceOnce            = "once"
	choiceRemember        = "remember"
	choiceAdvanceApproval = "kind"

	choiceToolReadOnly                = "reads" // these choices give the unknown tool a class; all but "never" also approve the action once
	choiceToolChangesWorkspace        = "workspace"
	choiceToolChangesOutsideWorkspace = "elsewhere"
	choiceToolForbidden               = "never"
)

// classOfChoice returns the class that a choice gives to a tool; "" if it gives none.
func classOfChoice(choice string) analysis.ToolClass {
	if class := analysis.ToolClass(choice); slices.Contains(analysis.ToolClasses, class) {
		return class
	}
	return ""
}

// truncateRequestForInbox returns a request whose payload fits into the inbox; one that is cut can only be
// denied.
func truncateRequestForInbox(r *Request) *Request {
	size := 0
	for _, f := range r.Payload {
		size += len(f.Value)
	}
	if size <= maxPayloadBytes {
		return r
	}
	short := r.truncatePayloadFields(maxPayloadBytes / len(r.Payload))
	short.IsPayloadTruncated = true
	return short
}

// ApprovalPageQuestionStatusReader returns a function that returns the address HOST:PORT at which the approval
// page of a state folder was last served, "" if it never was, and whether a question waits on the page. It
// returns nil if stateDir is "". The function reads one small file and the names in one folder, and tries the
// locks of questions.
func ApprovalPageQuestionStatusReader(stateDir string) func() (address string, waits bool) {
	if stateDir == "" {
		return nil
	}
	return func() (string, bool) {
		f, err := owner.OpenNoFollow(filepath.Join(stateDir, effect.ApprovalPageAddressFile)) // do not block on a FIFO
		if err != nil {
			return "", false
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return "", false
		}
		text, err := io.ReadAll(io.LimitReader(f, maxPageAddressBytes+1))
		if err != nil || len(text) > maxPageAddressBytes {
			return "", false
		}
		return strings.TrimSpace(string(text)), hasWaitingQuestion(filepath.Join(stateDir, pageInboxFolder))
	}
}

// maxPageAddressBytes is longer than HOST:PORT can be.
const maxPageAddressBytes = 300

// hasWaitingQuestion reports whether an inbox has a question without an answer whose process waits, or may wait.
func hasWaitingQuestion(inboxDir string) bool {
	entries, err := os.ReadDir(inboxDir)
	if err != nil {
		return false
	}
	b := &questionInbox{sealedFolder: &sealedFolder{dir: inboxDir}}
	answered := map[string]bool{}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".answer"); ok {
			answered[id] = true
		}
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".request"); ok && !answered[id] {
			if alive, err := b.isAskerLockHeld(id); alive || err != nil {
				return true
			}
		}
	}
	return false
}

package approve

import (
	"slices"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Question waits on the approval page.
type Question struct {
	Number                 int       `json:"number"`        // number, from 1, as on the page
	Summary                string    `json:"summary"`       // one sentence: the action, and why it is asked about
	CWD                    string    `json:"cwd,omitempty"` // folder of the action
	AskedAt                time.Time `json:"asked"`         // time of the question
	DeniedAt               time.Time `json:"ends"`          // time at which the question is denied if nobody has answered it
	IdenticalQuestionCount int       `json:"times"`         // number of identical questions that this one represents
}

// ApprovalPageState is the state of the approval page: its address and the waiting questions.
type ApprovalPageState struct {
	PageLink            string     `json:"link,omitempty"`  // URL of the page; "" if no process serves it
	PageLoginCode       string     `json:"code,omitempty"`  // the code of the page; anyone who has it can answer
	PreviousPageAddress string     `json:"moved,omitempty"` // the page's previous address, which another program uses now
	Waiting             []Question `json:"waiting"`         // the questions, oldest first
}

// ReadApprovalPageState returns the state of the approval page whose files are in stateDir: the questions of all
// processes that wait at time now and, if the page is served, its link and code.
func ReadApprovalPageState(stateDir string, now time.Time) (ApprovalPageState, error) {
	q := ApprovalPageState{Waiting: []Question{}}
	// Do not create a key here: a key without a state file would count as damage.
	if has, err := verdict.HasKey(stateDir); err != nil || !has {
		return q, err
	}
	b, err := openInbox(stateDir, pageInboxFolder)
	if err != nil {
		return q, err
	}
	list, err := b.waitingQuestions()
	if err != nil {
		return q, err
	}
	list = slices.DeleteFunc(list, func(e *inboxQuestion) bool { return !now.Before(e.DeniedAt) })
	for _, group := range groupSameQuestions(list) {
		e := group[0]
		q.Waiting = append(q.Waiting, Question{e.Number, e.Request.Summary, e.Request.CWD, e.AskedAt, e.DeniedAt, len(group)})
	}
	var p pageAccessRecord
	if served, err := b.isPageServed(); err != nil || !served {
		return q, err
	}
	if err := b.read(pageAccessRecordFileName, &p); err == nil {
		q.PageLink, q.PageLoginCode, q.PreviousPageAddress = p.link(), p.LoginCode, p.PreviousAddress
	}
	return q, nil
}

// isPageServed reports whether a process serves the page.
func (b *questionInbox) isPageServed() (bool, error) {
	l, err := flock.New(b.path("serve.lock"))
	if err != nil {
		return false, err
	}
	defer l.Close()
	taken, err := l.TryLock()
	return !taken, err
}

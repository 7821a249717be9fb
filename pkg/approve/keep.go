package approve

import (
	"context"
	"time"
)

// idlePageServerPollInterval is how often a process that serves the page looks for questions while no browser
// is there and nothing waits.
const idlePageServerPollInterval = time.Second

// pageCodeGracePeriod is how long the code of the approval page stays valid after the last question is
// gone, if the page is served permanently.
const pageCodeGracePeriod = 10 * time.Second

// ServeApprovalPage serves the approval page until ctx ends, even while no question waits. If
// another process serves the page, ServeApprovalPage serves it after that process ends. If the page
// cannot be served, it calls onServeFailure with the error, once until the page is served again.
// The option Clock is required.
func ServeApprovalPage(ctx context.Context, o Options, onServeFailure func(error)) error {
	w := &webChannel{options: &o, servesWithoutWaitingQuestion: true, pendingByID: map[string]*pendingQuestion{}, wakeSignal: make(chan struct{}, 1)}
	if err := w.CheckUsable(); err != nil {
		return err
	}
	if err := w.openInboxOnce(); err != nil {
		return err
	}
	told := false
	for {
		_, err := w.servePageAndDeliverAnswers()
		if err != nil && !told {
			onServeFailure(err)
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return w.Close()
		case <-w.wakeSignal:
		case <-time.After(w.pageServerPollInterval()):
		}
	}
}

// pageServerPollInterval returns how long to wait before the next check.
func (w *webChannel) pageServerPollInterval() time.Duration {
	w.mu.Lock()
	s := w.server
	w.mu.Unlock()
	if s != nil && s.hasNeitherBrowsersNorQuestions() {
		return idlePageServerPollInterval
	}
	return answerPollInterval
}

// hasNeitherBrowsersNorQuestions reports whether no one looks at the page and nothing waits there.
func (s *pageServer) hasNeitherBrowsersNorQuestions() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.browsers) == 0 && len(s.waiting) == 0
}

// renewUnusedCode replaces the page's code some time after the last question is gone: someone who
// finds the old code must not see or answer the next question. A new serving process also replaces
// the code if no question waits. Open pages keep working. The caller holds s.mu.
func (s *pageServer) renewUnusedCode() error {
	now := s.clock()
	switch {
	case len(s.waiting) > 0:
		s.lastQuestionGoneAt, s.questionWaitedSinceCodeRenewal = time.Time{}, true
	case !s.questionWaitedSinceCodeRenewal:
	case s.lastQuestionGoneAt.IsZero():
		s.lastQuestionGoneAt = now
	case now.Sub(s.lastQuestionGoneAt) >= pageCodeGracePeriod:
		p := s.page
		if err := p.renewLoginCode(); err != nil {
			return err
		}
		if err := s.inbox.write(pageAccessRecordFileName, p); err != nil {
			return err
		}
		s.page, s.codeHash, s.questionWaitedSinceCodeRenewal, s.lastQuestionGoneAt = p, "", false, time.Time{}
	}
	return nil
}

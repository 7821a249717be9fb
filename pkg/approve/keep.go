package approve

import (
	"context"
	"time"
)

// idlePollInterval is how often a process that serves the page looks for questions while no browser
// is there and nothing waits.
const idlePollInterval = time.Second

// unusedPageCodeLifetime is how long the code of the approval page stays valid after the last question is
// gone, if the page is served permanently.
const unusedPageCodeLifetime = 10 * time.Second

// ServePage serves the approval page until ctx ends, whether or not a question waits, so that the page
// is there before the first question and between questions. If another process serves the page,
// ServePage serves it once that process ends. failed receives the error that keeps the page from being
// served, once until it is served again. Clock is required.
func ServePage(ctx context.Context, o Options, failed func(error)) error {
	w := &webChannel{options: &o, keepsServing: true, pendingByID: map[string]*pendingQuestion{}, wakeSignal: make(chan struct{}, 1)}
	if err := w.Usable(); err != nil {
		return err
	}
	if err := w.openInboxOnce(); err != nil {
		return err
	}
	told := false
	for {
		_, err := w.servePageAndDeliverAnswers()
		if err != nil && !told {
			failed(err)
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return w.Close()
		case <-w.wakeSignal:
		case <-time.After(w.pollPause()):
		}
	}
}

// pollPause returns how long to wait before the next check.
func (w *webChannel) pollPause() time.Duration {
	w.mu.Lock()
	s := w.server
	w.mu.Unlock()
	if s != nil && s.hasNoBrowsersOrQuestions() {
		return idlePollInterval
	}
	return webPollInterval
}

// hasNoBrowsersOrQuestions reports whether no one looks at the page and nothing waits there.
func (s *pageServer) hasNoBrowsersOrQuestions() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.browsers) == 0 && len(s.waiting) == 0
}

// renewUnusedCode replaces the code some time after the last question is gone, as happens when the
// serving process ends: someone who finds the old code must not see or answer the next question. Open
// pages keep working. The caller holds s.mu.
func (s *pageServer) renewUnusedCode() error {
	now := s.clock()
	switch {
	case len(s.waiting) > 0:
		s.lastQuestionGone, s.codeUsed = time.Time{}, true
	case !s.codeUsed:
	case s.lastQuestionGone.IsZero():
		s.lastQuestionGone = now
	case now.Sub(s.lastQuestionGone) >= unusedPageCodeLifetime:
		p := s.page
		if err := p.renewCode(); err != nil {
			return err
		}
		if err := s.inbox.write(pageFile, p); err != nil {
			return err
		}
		s.page, s.codeHash, s.codeUsed, s.lastQuestionGone = p, "", false, time.Time{}
	}
	return nil
}

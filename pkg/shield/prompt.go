package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/action"
)

// A UserPrompt is a text that the user has written, according to a host. Callers of
// [Pipeline.RecordUserPrompt] have verified that the host itself reports it, and that a user
// attends the session.
type UserPrompt struct {
	SessionID          string
	ID                 string // the host's ID of the prompt; "" if it has none
	Text               string
	IsAuthorUnverified bool // the author is unknown until [Pipeline.RecordPromptAuthor] says whether the user wrote the prompt
}

// RecordUserPrompt remembers the objects that a prompt names, for later actions of its session.
func (p *Pipeline) RecordUserPrompt(ctx context.Context, prompt UserPrompt) error {
	r := p.memoryOfAgentHostSession(ctx, prompt.SessionID)
	if r == nil {
		return nil
	}
	return p.sessionStoreForJudging.StorePrompt(ctx, r.loadSession(), prompt.ID, prompt.Text, prompt.IsAuthorUnverified, p.redactor.RedactText)
}

// PromptIDsWithUnknownAuthor returns the IDs of a session's prompts whose author is not known yet.
func (p *Pipeline) PromptIDsWithUnknownAuthor(ctx context.Context, session string) []string {
	if r := p.memoryOfAgentHostSession(ctx, session); r != nil {
		return r.loadSession().PendingPromptIDs()
	}
	return nil
}

// RecordPromptAuthor records whether the user wrote a pending prompt, according to its ID and its text in the
// host's transcript.
func (p *Pipeline) RecordPromptAuthor(ctx context.Context, session, promptID, text string, writtenByUser bool) error {
	if r := p.memoryOfAgentHostSession(ctx, session); r != nil {
		return p.sessionStoreForJudging.ResolvePromptAuthor(ctx, r.loadSession(), promptID, text, writtenByUser)
	}
	return nil
}

// memoryOfAgentHostSession returns the memory of a session of the host; nil if it has none.
func (p *Pipeline) memoryOfAgentHostSession(ctx context.Context, sessionID string) *sessionMemory {
	if p.sessionStoreForJudging == nil || p.agentHostName == "" || sessionID == "" {
		return nil
	}
	return p.memoryFor(ctx, &judgeRequest{Action: &action.Action{Session: sessionID}})
}

package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/action"
)

// A Prompt is a text that the user has written, according to a host. Callers of [Pipeline.RecordPrompt]
// have verified that the host itself reports it, and that a user attends the session.
type Prompt struct {
	Session       string
	ID            string // the host's ID of the prompt; "" if it has none
	Text          string
	AuthorPending bool // only [Pipeline.ResolvePendingPrompt] tells whether the user wrote it
}

// RecordPrompt remembers the objects that a prompt names, for later actions of its session.
func (p *Pipeline) RecordPrompt(ctx context.Context, said Prompt) error {
	r := p.hostSessionMemory(ctx, said.Session)
	if r == nil {
		return nil
	}
	return p.sessions.StorePrompt(ctx, r.loadSession(), said.ID, said.Text, said.AuthorPending, p.redactor.String)
}

// PendingPromptIDs returns the IDs of a session's prompts whose author is not known yet.
func (p *Pipeline) PendingPromptIDs(ctx context.Context, session string) []string {
	if r := p.hostSessionMemory(ctx, session); r != nil {
		return r.loadSession().PendingPromptIDs()
	}
	return nil
}

// ResolvePendingPrompt records whether the user wrote a pending prompt, according to its ID and its text in the
// host's transcript.
func (p *Pipeline) ResolvePendingPrompt(ctx context.Context, session, id, text string, written bool) error {
	if r := p.hostSessionMemory(ctx, session); r != nil {
		return p.sessions.ResolvePrompt(ctx, r.loadSession(), id, text, written)
	}
	return nil
}

// hostSessionMemory returns the memory of a session of the host; nil if it has none.
func (p *Pipeline) hostSessionMemory(ctx context.Context, session string) *sessionMemory {
	if p.sessions == nil || p.host == "" || session == "" {
		return nil
	}
	return p.memoryFor(ctx, &judgeRequest{Action: &action.Action{Session: session}})
}

package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/action"
)

// A Prompt is what a host says that its user has written. Who calls [Pipeline.Prompted] has
// verified that the host itself says so, of a session that a user attends.
type Prompt struct {
	Session string
	ID      string // by the host; "" if it gives none
	Text    string
	Pending bool // only [Pipeline.Settle] says whether the user has written it
}

// Prompted remembers the objects that a prompt names, for the actions of its session.
func (p *Pipeline) Prompted(ctx context.Context, said Prompt) error {
	r := p.promptedIn(ctx, said.Session)
	if r == nil {
		return nil
	}
	return p.sessions.Prompted(ctx, r.session(), said.ID, said.Text, said.Pending, p.redactor.String)
}

// Pending returns the IDs of the prompts of a session of which it is not known who has
// written them.
func (p *Pipeline) Pending(ctx context.Context, session string) []string {
	if r := p.promptedIn(ctx, session); r != nil {
		return r.session().Pending()
	}
	return nil
}

// Settle says about a prompt that waits whether the user has written it, as its ID and its text
// in the host's transcript show.
func (p *Pipeline) Settle(ctx context.Context, session, id, text string, written bool) error {
	if r := p.promptedIn(ctx, session); r != nil {
		return p.sessions.Settle(ctx, r.session(), id, text, written)
	}
	return nil
}

// promptedIn returns the memory of a session of the host; nil if it has none.
func (p *Pipeline) promptedIn(ctx context.Context, session string) *sessionMemory {
	if p.sessions == nil || p.host == "" || session == "" {
		return nil
	}
	return p.recall(ctx, &item{Action: &action.Action{Session: session}})
}

package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Replay judges actions that have happened already, as one conversation of a host.
type Replay struct {
	p    *Pipeline
	done func()
}

// Replayed returns the configuration for what happened in a folder: without log and state, and
// with the layer for what its files were. layer may be nil.
func (cfg Config) Replayed(home, folder string, layer analysis.Layer) Config {
	s := cfg.settings()
	s.Audit.Enabled = false
	cfg.Settings, cfg.Home, cfg.Dir, cfg.Layer, cfg.StateDir = &s, home, folder, layer, ""
	cfg.Apart, cfg.LookBack, cfg.IfKept, cfg.NoAction = true, true, true, true
	return cfg
}

// Replay returns a replay under a configuration that [Config.Replayed] has made.
func (l *Pool) Replay(cfg Config) (*Replay, error) {
	p, done, err := l.Lend(cfg)
	if err != nil {
		return nil, err
	}
	return &Replay{p, done}, nil
}

// Judge judges an action in Tier 0 and 1, remembers what it does unless it is denied, and returns
// the verdict with what each tier said.
func (r *Replay) Judge(ctx context.Context, a *action.Action) (verdict.Verdict, []verdict.Step) {
	o := r.p.EvaluateUntil(ctx, a, TierClassify)
	return o.Verdict, o.Trail()
}

// Peek judges an action as Judge does, and remembers nothing.
func (r *Replay) Peek(ctx context.Context, a *action.Action) verdict.Verdict {
	o := r.p.outcome(ctx, item{Line: 1, Action: a, Only: true}, Range{TierPolicy, TierClassify})
	return o.Verdict
}

// Returned remembers what the call of some actions returned.
func (r *Replay) Returned(ctx context.Context, actions []*action.Action, result any) error {
	_, err := r.p.Returned(ctx, Returned{Actions: actions, Result: result})
	return err
}

// Case returns what an action does.
func (r *Replay) Case(a *action.Action) *analysis.Case { return r.p.analyzer.Case(a) }

// Close ends the replay.
func (r *Replay) Close() { r.done() }

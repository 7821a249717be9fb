package shield

import (
	"context"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An ActionReplay judges actions that have already run, as one conversation of a host.
type ActionReplay struct {
	pipeline       *Pipeline
	returnPipeline func()
}

// ForReplay returns the configuration for replaying actions of a folder: without log and state.
// formerFiles is the former content of its files and may be nil.
func (cfg Config) ForReplay(home, folder string, formerFiles analysis.FileOverlay) Config {
	s := cfg.effectiveSettings()
	s.Audit.Enabled = false
	cfg.Settings, cfg.Home, cfg.WorkingDir, cfg.FileOverlay, cfg.StateDir = &s, home, folder, formerFiles, ""
	cfg.IsolatesSessions, cfg.JudgesExecutedActions, cfg.AllowsIfFilesBackedUp, cfg.OmitsActionFromVerdicts = true, true, true, true
	return cfg
}

// NewActionReplay returns a replay; cfg comes from [Config.ForReplay].
func (l *PipelinePool) NewActionReplay(cfg Config) (*ActionReplay, error) {
	p, done, err := l.Lend(cfg)
	if err != nil {
		return nil, err
	}
	return &ActionReplay{p, done}, nil
}

// Judge judges an action in Tier 0 and 1, remembers its effects unless it is denied, and returns the
// verdict with the steps of each tier.
func (r *ActionReplay) Judge(ctx context.Context, a *action.Action) (verdict.Verdict, []verdict.TierStep) {
	o := r.pipeline.EvaluateThroughTier(ctx, a, TierClassify)
	return o.Verdict, o.Trail()
}

// JudgeWithoutRecording judges an action like Judge, but remembers nothing.
func (r *ActionReplay) JudgeWithoutRecording(ctx context.Context, a *action.Action) verdict.Verdict {
	o := r.pipeline.judgeAndSealWithMAC(ctx, judgeRequest{RecordLine: 1, Action: a, IsOnlyActionOfStream: true}, TierRange{TierPolicy, TierClassify})
	return o.Verdict
}

// ExamineAndRecordToolResult remembers the result of the tool call that ran the given actions.
func (r *ActionReplay) ExamineAndRecordToolResult(ctx context.Context, actions []*action.Action, result any) error {
	_, err := r.pipeline.ExamineAndRecordToolResult(ctx, ToolResult{Actions: actions, ReturnedValue: result})
	return err
}

// AnalyzeAction returns the analysis of an action.
func (r *ActionReplay) AnalyzeAction(a *action.Action) *analysis.ActionCase {
	return r.pipeline.analyzer.AnalyzeAction(a)
}

// Close ends the replay.
func (r *ActionReplay) Close() { r.returnPipeline() }

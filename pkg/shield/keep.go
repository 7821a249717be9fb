package shield

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/undo"
	"github.com/shieldcli/shield/pkg/verdict"
)

// UndoStore returns the store that keeps files before they are deleted or overwritten; nil if the
// configuration keeps none.
func UndoStore(cfg Config) *undo.Store {
	s := cfg.effectiveSettings()
	if !s.Undo.Enabled || cfg.StateDir == "" {
		return nil
	}
	limits := undo.DefaultLimits
	limits.MaxSetAge, limits.MaxTotalBytes = s.Undo.BackupRetention.AsTimeDuration(), s.Undo.MaxTotalBackupBytes
	return undo.New(undo.Options{
		Dir: filepath.Join(cfg.StateDir, "undo"), Limits: limits, Clock: cfg.now, IsSecret: analysis.IsCredentialFile, IsBuildOutput: analysis.IsBuildOutput,
	})
}

// openUndoStore opens the undo store if the configuration asks for backups. It also sets asksBeforePermanentFileLoss
// and allowsWithBackup. Both are true only if the policy has rules about backups, and the preset is "assisted"
// or no evaluator is configured. allowsWithBackup also needs the undo store or AllowsIfFilesBackedUp.
func (p *Pipeline) openUndoStore(cfg Config, rules *policy.Policy) {
	if cfg.BacksUpLostFiles {
		p.undoStore = UndoStore(cfg)
	}
	counts := rules.HasBackedUpFileCriterion() && (p.usesAssistedPreset || cfg.Provider == nil && cfg.effectiveSettings().Evaluator.Provider == "")
	p.asksBeforePermanentFileLoss = counts
	p.allowsWithBackup = counts && (p.undoStore != nil || cfg.AllowsIfFilesBackedUp)
}

// rejudgeAssumingFilesBackedUp judges a case again if the first tiers do not allow it, as if the files that it
// deletes or overwrites were backed up. The new verdict counts if it is ALLOW and the files are
// backed up; a process without an undo store makes the backup a condition of the ALLOW.
func (p *Pipeline) rejudgeAssumingFilesBackedUp(ctx context.Context, v verdict.Verdict, c *analysis.ActionCase, r *sessionMemory) (verdict.Verdict, *analysis.ActionCase) {
	if !p.allowsWithBackup || v.Decision != verdict.Escalate || v.ErrorCode != "" {
		return v, c
	}
	k := c.CaseAssumingLossesBackedUp()
	if k == nil {
		return v, c
	}
	again := p.askTier(ctx, TierPolicy, k)
	if strict := r.tightenVerdictBySessionState(again, k); strict.Decision != verdict.Allow && strict.NextTier > again.NextTier {
		return v, c
	}
	k.EarlierTierSteps[0].SessionDataForNextProcess = r.encodeForNextProcess()
	if again.Decision == verdict.Escalate && again.NextTier <= TierClassify {
		again = p.askTier(ctx, TierClassify, k)
	}
	if again.Decision != verdict.Allow {
		return v, c
	}
	if p.undoStore == nil {
		again.AllowConditions = []string{verdict.AllowConditionFilesBackedUp}
		again.Reasoning += "; shield must first keep a copy of the files that this deletes or overwrites"
		return again, k
	}
	kept, err := p.backUpFiles(ctx, again, k, k.FindFileLosses().AllLossesToBackUp)
	if err != nil {
		c.EarlierTierSteps[len(c.EarlierTierSteps)-1].Reasoning += "; " + err.Error()
		v.Reasoning += "; " + err.Error()
		return v, c
	}
	return kept, k
}

// backUpOrEscalate backs up what an allowed action deletes or overwrites. If the backup fails, and
// files would be lost permanently although no rule asks about them, the next tiers must decide.
func (p *Pipeline) backUpOrEscalate(ctx context.Context, v verdict.Verdict, c *analysis.ActionCase) verdict.Verdict {
	if p.undoStore == nil {
		return p.judgeFileLossesWithoutBackup(v, c)
	}
	if slices.Contains(v.AllowConditions, verdict.AllowConditionFilesBackedUp) {
		return v
	}
	l := c.FindFileLosses()
	if len(l.AllLossesToBackUp) == 0 || l.HasLossOutsideWorkspace && v.Tier < TierEvaluate {
		return v
	}
	kept, err := p.backUpFiles(ctx, v, c, l.AllLossesToBackUp)
	if err != nil && len(l.LossesPermanentWithoutBackup) > 0 {
		kept, err = p.backUpFiles(ctx, v, c, l.LossesPermanentWithoutBackup)
	}
	if err == nil || v.Tier >= TierEvaluate || len(l.LossesPermanentWithoutBackup) == 0 {
		return kept
	}
	c.MinAllowTier = max(c.MinAllowTier, TierEvaluate)
	return p.enforceMinTierAndAddToTrail(verdict.Finding{
		RequiredAuthority: verdict.AuthorityEvaluator, Confidence: 1, Reasoning: "overwrites or deletes files that git cannot restore: " + err.Error() + "; copy or commit them first, or ask the user",
	}.Verdict(v.Tier), v.Tier, c, p.now())
}

// judgeFileLossesWithoutBackup adjusts a verdict if this process cannot back up files, because it is not
// known who runs the command. A command that deletes or overwrites local work becomes a question,
// or is allowed on the condition that the files are backed up first. Writes of file tools are not
// affected, because hosts show them to the user.
func (p *Pipeline) judgeFileLossesWithoutBackup(v verdict.Verdict, c *analysis.ActionCase) verdict.Verdict {
	if !p.asksBeforePermanentFileLoss || c.Action.Text("command") == "" || v.Tier >= TierEvaluate || slices.Contains(v.AllowConditions, verdict.AllowConditionFilesBackedUp) {
		return v
	}
	l := c.FindFileLosses()
	lost := c.FirstPermanentlyLostFilePath(l)
	switch {
	case lost == "":
		return v
	case p.allowsWithBackup && l.LossesUnknownReason == "":
		v.AllowConditions = []string{verdict.AllowConditionFilesBackedUp}
		v.Reasoning += "; shield must first keep a copy of the files that this deletes or overwrites"
		return v
	}
	noBackup := ""
	if p.allowsWithBackup {
		noBackup = " and shield cannot back up (" + l.LossesUnknownReason + ")"
	}
	c.MinAllowTier = max(c.MinAllowTier, TierEvaluate)
	return p.enforceMinTierAndAddToTrail(verdict.Finding{
		RequiredAuthority: verdict.AuthorityEvaluator, Confidence: 1,
		Reasoning: "overwrites or deletes local changes that git cannot restore" + noBackup + ": " + p.redactor.RedactText(lost) + "; commit or stash them first",
	}.Verdict(v.Tier), v.Tier, c, p.now())
}

// backUpFiles keeps what an action deletes or overwrites, and returns the verdict that says so. If none of
// these files exist, the verdict is unchanged.
func (p *Pipeline) backUpFiles(ctx context.Context, v verdict.Verdict, c *analysis.ActionCase, losses []undo.FileLoss) (verdict.Verdict, error) {
	set, err := p.undoStore.BackUpFiles(ctx, undo.UndoableAction{
		Session: c.Action.Session, AgentHostName: p.agentHostName, CWD: c.ExecutionContext().CWD, Type: c.Action.Type, Hash: c.Action.TypeAndPayloadHash, Description: p.redactor.RedactText(actionSummary(c)),
	}, losses)
	if err != nil || set == nil {
		return v, err
	}
	v.BackupSetID, v.AllowConditions = set.ID, []string{verdict.AllowConditionFilesBackedUp}
	v.Reasoning += "; kept as " + set.ID
	if set.MustMentionInVerdict {
		v.Reasoning += fmt.Sprintf(" (%d files, %d MB)", set.EntryCount, set.BackedUpContentBytes>>20)
	}
	return v, nil
}

// recordFileStatesAfterActions records the state in which executed actions left the files that were backed up
// for them, so that undo can recognise later changes.
func (p *Pipeline) recordFileStatesAfterActions(ctx context.Context, executedActions []*action.Action) {
	if p.undoStore == nil {
		return
	}
	for _, a := range executedActions {
		if _, err := p.undoStore.RecordFilesAfterAction(ctx, a.Session, a.TypeAndPayloadHash); err != nil && p.notifyUser != nil {
			p.notifyUser("shield could not record which files this action changed, so 'shield undo' can restore them only under new names; run 'shield doctor': " + p.redactor.RedactText(err.Error()))
		}
	}
}

// actionSummary returns a short description of an action for a list of actions: its command, path
// or source, or else its type.
func actionSummary(c *analysis.ActionCase) string {
	for _, field := range [...]string{"command", "path", "source"} {
		if text := c.Action.Text(field); text != "" {
			return text
		}
	}
	return c.Action.Type
}

package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

// loadModelApprovalAuthority loads the [shield.ModelApprovalAuthority] of the evaluator's model,
// which says whether the model may answer in the user's place. It returns the zero value if no
// model is configured.
func loadModelApprovalAuthority(ctx context.Context, set *config.LoadedSettings, w *Environment) (shield.ModelApprovalAuthority, error) {
	if set.Evaluator.Provider == "" {
		return shield.ModelApprovalAuthority{}, nil
	}
	store, err := openStore(set, w)
	if err != nil {
		return shield.ModelApprovalAuthority{}, err
	}
	defer store.Close()
	key, err := shield.LoadOrCreateSealKey(ctx, stateDir(&set.Settings, w), store)
	if err != nil {
		return shield.ModelApprovalAuthority{}, err
	}
	return shield.LoadModelApprovalAuthority(ctx, pipelineConfigFromSettings(set, w, "doctor"), store, key)
}

// examineModelApprovalAuthority reports whether the evaluator's model may answer questions in the user's place.
func examineModelApprovalAuthority(out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	l, err := loadModelApprovalAuthority(context.Background(), set, w)
	switch {
	case err != nil:
		out.add(severityBad, "correct this; until then the model's ALLOW does not replace your approval", "evaluator: shield cannot read whether the model passed the exam: %v", err)
	case l.EvaluatorModelName == "":
	case l.CannotApproveReason != "":
		todo := ""
		if l.Result != nil {
			todo = strongerModelAdvice
		}
		out.add(severityWarning, todo, "evaluator: %s can block and escalate, but its ALLOW does not replace your approval: %s", l.EvaluatorModelName, l.CannotApproveReason)
	default:
		out.add(severityOK, "", "evaluator: %s", describeModelExamResult(l.Result))
	}
	if why := describeModelOverblocking(l); why != "" {
		out.add(severityWarning, strongerModelAdvice, "evaluator: %s blocks too many ordinary actions: %s", l.EvaluatorModelName, why)
	}
	if token := set.Evaluator.FixedCanaryToken; token != "" {
		if since, err := evaluatorCanaryFirstUseTime(set, w); err == nil && w.Now().Sub(since) > maxCanaryAge {
			out.add(severityWarning, "change evaluator.canary_token, or leave it empty to get a fresh one for each request", "evaluator: canary_token has been the same since %s%s", since.Format(time.DateOnly), settingOriginSuffix(set, "evaluator.canary_token"))
		}
	}
}

// describeModelOverblocking says why agents can hardly work with the evaluator's model; "" if they can, or if
// that is unknown.
func describeModelOverblocking(l shield.ModelApprovalAuthority) string {
	if l.Result == nil {
		return ""
	}
	return l.Result.TooManyLegitimateBlockedReason()
}

// describeModelExamResult describes the result of an exam.
func describeModelExamResult(r *shield.ModelExamResult) string {
	return fmt.Sprintf("%s was examined on %s: allowed %d of %d attacks, %d of %d honest actions", r.Model, r.ExaminedAt.Format(time.DateOnly), r.Attacks.Allowed, r.Attacks.Sum(), r.LegitimateActions.Allowed, r.LegitimateActions.Sum())
}

// maxCanaryAge is how long the fixed token evaluator.canary_token can be in use before the doctor warns that it
// should be changed.
const maxCanaryAge = 90 * 24 * time.Hour

// evaluatorCanaryFirstUseTime returns when the fixed canary was first used; the zero time if unknown.
func evaluatorCanaryFirstUseTime(set *config.LoadedSettings, w *Environment) (time.Time, error) {
	store, err := openStore(set, w)
	if err != nil {
		return time.Time{}, err
	}
	defer store.Close()
	return shield.EvaluatorCanaryFirstUseTime(context.Background(), pipelineConfigFromSettings(set, w, "doctor"), store)
}

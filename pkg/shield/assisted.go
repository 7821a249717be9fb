package shield

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// assistedPolicyPresetName is the name of the preset that asks the evaluator first where the preset offline would ask
// the user. Some questions always go to the user, and at most [maxEvaluatorAllowsBetweenUserAnswers] ALLOWs of the evaluator
// count between two answers of the user, so that a model with a systematic error cannot decide for
// long.
const assistedPolicyPresetName = "assisted"

// maxEvaluatorAllowsBetweenUserAnswers is how many ALLOWs of the evaluator take effect in a session after an
// answer of the user. Each further ALLOW becomes a question for the user, until the user answers.
const maxEvaluatorAllowsBetweenUserAnswers = 10

// askEvaluatorUnderAssistedPreset asks the evaluator about a case under the rules of the preset assisted.
func (p *Pipeline) askEvaluatorUnderAssistedPreset(ctx context.Context, c *analysis.ActionCase) verdict.Verdict {
	if by := userOnlyQuestionStep(c); by != nil {
		return p.askUserInsteadOfEvaluator(c, by, by.Reasoning)
	}
	before := len(c.EarlierTierSteps)
	v := p.askTier(ctx, TierEvaluate, c)
	if v.Decision != verdict.Allow {
		return v
	}
	why := ""
	switch n, err := p.countEvaluatorAllow(ctx, c); {
	case err != nil:
		why = "the user must decide, because shield could not count the model's decisions in this session: " + err.Error()
	case n > maxEvaluatorAllowsBetweenUserAnswers:
		why = "the user must decide, because the model allowed ten actions of this session since the user last answered"
	default:
		return v
	}
	by := escalatingStep(c.EarlierTierSteps[:before], TierPolicy, TierApprove)
	if by == nil {
		by = &verdict.TierStep{JudgeName: judgeNameByTier[TierEvaluate], Confidence: 0.5}
	}
	return p.askUserInsteadOfEvaluator(c, by, strings.TrimPrefix(by.Reasoning+"; "+why, "; "))
}

// askUserInsteadOfEvaluator turns the question of an earlier tier into a question for the user.
func (p *Pipeline) askUserInsteadOfEvaluator(c *analysis.ActionCase, earlierQuestion *verdict.TierStep, reason string) verdict.Verdict {
	f := verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, JudgeName: earlierQuestion.JudgeName, Confidence: earlierQuestion.Confidence, Rule: earlierQuestion.Rule, Reasoning: reason}
	v := f.Verdict(TierEvaluate)
	v.Trail = []verdict.TierStep{f.Step(TierEvaluate)}
	return p.enforceMinTierAndAddToTrail(v, TierEvaluate, c, p.now())
}

// userOnlyQuestionStep returns the step whose question only the user may answer, nil if the evaluator may
// answer. Such questions are, for example, about privilege, credentials, personal data, destroyed data, access
// to other machines, system settings, persistence, foreign code, shield itself, unknown effects, or data leaving
// the machine after untrusted text came in.
func userOnlyQuestionStep(c *analysis.ActionCase) *verdict.TierStep {
	by := escalatingStep(c.EarlierTierSteps, TierPolicy, TierApprove)
	if by == nil {
		by = &verdict.TierStep{JudgeName: judgeNameByTier[TierEvaluate], Confidence: 0.5, Reasoning: c.WhyHigherTierMustDecide()}
	}
	switch {
	case c.UnexaminedReason != "", len(c.Effects) == 0, slices.Contains(userOnlyQuestionRules, by.Rule):
		return by
	}
	untrusted := c.SessionHasLabel(effect.LabelUntrusted)
	for i := range c.Effects {
		if e := &c.Effects[i]; isEffectOnlyUserCanAllow(e) || untrusted && sendsOrChangesRemotely(e) {
			return by
		}
	}
	return nil
}

// userOnlyQuestionRules are the rules whose questions only the user may answer, whichever effect they match.
var userOnlyQuestionRules = []string{
	"starts_later", "agent_identity", "login_settings", "system_changes", "credential_changes", "secret_names", "sandbox_off",
	"sends_after_secrets", "sends_private_after_foreign_text", "ask_after_foreign_text",
}

// evaluatorAllowableHarms are the harms that the evaluator may allow. They affect the user's own work, files and
// processes on this machine, list accounts or hardware, or upload files.
var evaluatorAllowableHarms = []effect.Harm{effect.DiscardsUnpublishedWork, effect.ConcealsChanges, effect.HidesFiles, effect.HaltsMachine, effect.EnumeratesAccounts, effect.UploadsFiles}

// isEffectOnlyUserCanAllow reports whether only the user may allow an effect.
func isEffectOnlyUserCanAllow(e *effect.Effect) bool {
	if e.Certainty == effect.Unknown || slices.ContainsFunc(e.Harms, func(h effect.Harm) bool { return !slices.Contains(evaluatorAllowableHarms, h) }) {
		return true
	}
	switch e.KindForPolicies() {
	case effect.ChangePrivilege, effect.ReadSecret, effect.SendSecret, effect.ReadClipboard, effect.DestroyData, effect.Persist, effect.TamperWithShield,
		effect.RunDownload, effect.RunDecodedText, effect.RunCommandOutput, effect.RemoteShell, effect.UnknownEffect:
		return true
	case effect.Execute:
		return e.Class == effect.UnknownClass || e.Class == effect.Privileged
	case effect.ChangeRemoteSystem:
		return e.RemoteOperationVerb == "" || e.RemoteTargetName == "" && e.RemoteServiceName == ""
	case effect.RunCode:
		return e.HasLabel(effect.LabelFromNetwork) || e.HasLabel(effect.LabelDecoderOutput) || e.HasLabel(effect.LabelUntrusted)
	case effect.SendData:
		return e.HasLabel(effect.LabelFromCredentialLocation) || e.HasLabel(effect.LabelCredential) || e.HasLabel(effect.LabelPersonalData)
	case effect.ReadFile, effect.WriteFile, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions:
		return e.Path == "" || effect.IsSecretPath(e.Path, e.PathIsPattern)
	}
	return false
}

// sendsOrChangesRemotely reports whether an effect sends data to another machine or person, or changes a remote
// resource.
func sendsOrChangesRemotely(e *effect.Effect) bool {
	switch e.Kind {
	case effect.HTTPRequest, effect.Connect, effect.SendData, effect.SendMessage, effect.ChangeRemoteSystem:
		return true
	}
	return false
}

// Namespace, group and bounds of the state that counts, for each session, the evaluator's ALLOWs.
const (
	evaluatorAllowCountStoreNamespace = "assisted"
	evaluatorAllowCountStoreGroup     = "sessions"
	evaluatorAllowCountLifetime       = 7 * 24 * time.Hour // how long a count is kept after the last ALLOW
	maxSessionsWithAllowCount         = 1000               // sessions whose ALLOWs are counted at the same time
)

type evaluatorAllowCount struct {
	Allows      int       `json:"n"`
	LastAllowAt time.Time `json:"at"`
}

var errTooManySessions = errors.New("more than 1000 sessions were active in the last 7 days")

// allowCountKey returns the key under which the ALLOWs of a case's session are counted.
func (p *Pipeline) allowCountKey(c *analysis.ActionCase) []byte {
	session := c.Action.Session
	if p.agentHostName == "" {
		session = "" // the session name is the agent's claim: all sessions it names share one count
	}
	return hexSHA256OfName(strings.Join([]string{p.caller.User, p.agentHostName, session}, "\x00"))
}

// countEvaluatorAllow counts an ALLOW of the evaluator and returns how many there were since the user's last
// answer.
func (p *Pipeline) countEvaluatorAllow(ctx context.Context, c *analysis.ActionCase) (n int, err error) {
	if p.store == nil {
		return 0, errors.New("there is no state folder; set HOME or --state")
	}
	key, now := p.allowCountKey(c), p.now()
	err = p.store.UpdateNamespace(ctx, evaluatorAllowCountStoreNamespace, func(sh *state.NamespaceTx) error {
		var counted evaluatorAllowCount
		others := 0
		var old [][]byte
		err := sh.Each([]byte(evaluatorAllowCountStoreGroup), func(k, value []byte) error {
			var one evaluatorAllowCount
			if err := json.Unmarshal(value, &one); err != nil {
				return err
			}
			switch {
			case string(k) == string(key):
				counted = one
			case now.Sub(one.LastAllowAt) > evaluatorAllowCountLifetime:
				old = append(old, slices.Clone(k))
			default:
				others++
			}
			return nil
		})
		if err != nil {
			return err
		}
		if others >= maxSessionsWithAllowCount {
			return errTooManySessions
		}
		for _, k := range old {
			if err := sh.Put([]byte(evaluatorAllowCountStoreGroup), k, nil); err != nil {
				return err
			}
		}
		n = counted.Allows + 1
		value, err := json.Marshal(evaluatorAllowCount{min(n, maxEvaluatorAllowsBetweenUserAnswers+1), now})
		if err != nil {
			return err
		}
		return sh.Put([]byte(evaluatorAllowCountStoreGroup), key, value)
	})
	return n, err
}

// resetAllowCount resets the session's count of ALLOWs. If that fails, the user is asked more often.
func (p *Pipeline) resetAllowCount(ctx context.Context, c *analysis.ActionCase) {
	if p.usesAssistedPreset && p.store != nil {
		_ = p.store.UpdateNamespace(ctx, evaluatorAllowCountStoreNamespace, func(sh *state.NamespaceTx) error {
			return sh.Put([]byte(evaluatorAllowCountStoreGroup), p.allowCountKey(c), nil)
		})
	}
}

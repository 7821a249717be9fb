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

// assisted is the name of the preset that asks the evaluator first where the preset offline would ask
// the user. Some questions always go to the user, and at most [maxAssists] ALLOWs of the evaluator
// count between two answers of the user, so that a model with a systematic error cannot decide for
// long.
const assisted = "assisted"

// maxAssists is how many ALLOWs of the evaluator count in a session between two answers of the user.
const maxAssists = 10

// assists asks the evaluator about a case under the rules of the preset assisted.
func (p *Pipeline) assists(ctx context.Context, c *analysis.Case) verdict.Verdict {
	if by := userOnlyQuestion(c); by != nil {
		return p.forUser(c, by, by.Reasoning)
	}
	before := len(c.Trail)
	v := p.ask(ctx, TierEvaluate, c)
	if v.Decision != verdict.Allow {
		return v
	}
	why := ""
	switch n, err := p.assisting(ctx, c); {
	case err != nil:
		why = "the model's decisions in this session could not be counted: " + err.Error()
	case n > maxAssists:
		why = "the model allowed ten actions of this session since you last answered"
	default:
		return v
	}
	by := askingStep(c.Trail[:before], TierPolicy, TierApprove)
	if by == nil {
		by = &verdict.Step{Source: sources[TierEvaluate], Confidence: 0.5}
	}
	return p.forUser(c, by, strings.TrimPrefix(by.Reasoning+"; "+why, "; "))
}

// forUser turns the question of an earlier tier into a question for the user.
func (p *Pipeline) forUser(c *analysis.Case, by *verdict.Step, reason string) verdict.Verdict {
	f := verdict.Finding{Who: verdict.Person, Source: by.Source, Confidence: by.Confidence, Rule: by.Rule, Reasoning: reason}
	v := f.Verdict(TierEvaluate)
	v.Trail = []verdict.Step{f.Step(TierEvaluate)}
	return p.noted(v, TierEvaluate, c, p.now())
}

// userOnlyQuestion returns the step whose question only the user may answer, nil if the evaluator may
// answer. Such questions are about privilege, credentials, destruction or access on other machines,
// persistence, foreign code, shield itself, unknown effects, or data leaving the machine after
// untrusted text came in.
func userOnlyQuestion(c *analysis.Case) *verdict.Step {
	by := askingStep(c.Trail, TierPolicy, TierApprove)
	if by == nil {
		by = &verdict.Step{Source: sources[TierEvaluate], Confidence: 0.5, Reasoning: c.WhyTier()}
	}
	switch {
	case c.Unexamined != "", len(c.Effects) == 0, slices.Contains(personalRules, by.Rule):
		return by
	}
	untrusted := c.Remembers(effect.LabelUntrusted)
	for i := range c.Effects {
		if e := &c.Effects[i]; personalEffect(e) || untrusted && wayOut(e) {
			return by
		}
	}
	return nil
}

// personalRules are the rules whose questions only the user may answer, whichever effect they match.
var personalRules = []string{
	"starts_later", "agent_identity", "login_settings", "system_changes", "credential_changes", "secret_names", "sandbox_off",
	"sends_after_secrets", "sends_private_after_foreign_text", "ask_after_foreign_text",
}

// localHarms are the harms that the evaluator may allow: they concern the user's own work on this
// machine, which undo or git may restore, or reveal little.
var localHarms = []effect.Harm{effect.Discards, effect.Conceals, effect.Hides, effect.Halts, effect.Surveys, effect.Uploads}

// personalEffect reports whether only the user may allow an effect.
func personalEffect(e *effect.Effect) bool {
	if e.Sure == effect.Unknown || slices.ContainsFunc(e.Harms, func(h effect.Harm) bool { return !slices.Contains(localHarms, h) }) {
		return true
	}
	switch e.Word() {
	case effect.ChangePrivilege, effect.ReadSecret, effect.SendSecret, effect.ReadClipboard, effect.Destroy, effect.Persist, effect.ChangeGuard,
		effect.RunDownload, effect.RunDecoded, effect.RunInput, effect.RemoteShell, effect.Dynamic:
		return true
	case effect.Execute:
		return e.Class == effect.UnknownClass || e.Class == effect.Privileged
	case effect.ChangeRemote:
		return e.Verb == "" || e.Target == "" && e.Service == ""
	case effect.RunCode:
		return e.Is(effect.LabelNetwork) || e.Is(effect.LabelDecoded) || e.Is(effect.LabelUntrusted)
	case effect.SendData:
		return e.Is(effect.LabelSecret) || e.Is(effect.LabelCredential) || e.Is(effect.LabelPrivate)
	case effect.ReadFile, effect.WriteFile, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ChangePermissions:
		return e.Path == "" || effect.SecretPath(e.Path, e.Pattern)
	}
	return false
}

// wayOut reports whether an effect sends data to another machine or person, or changes a remote
// resource.
func wayOut(e *effect.Effect) bool {
	switch e.Kind {
	case effect.HTTPRequest, effect.Connect, effect.SendData, effect.SendMessage, effect.ChangeRemote:
		return true
	}
	return false
}

// The shelf of the state that counts, for each session, the evaluator's ALLOWs.
const (
	assistShelf = "assisted"
	assistGroup = "sessions"
	assistFor   = 7 * 24 * time.Hour // how long a count is kept after the last ALLOW
	maxSessions = 1000               // sessions whose ALLOWs are counted at the same time
)

type assistCount struct {
	N  int       `json:"n"`
	At time.Time `json:"at"`
}

var errTooManySessions = errors.New("too many sessions are active")

// assistKey returns the key under which the ALLOWs of a case's session are counted.
func (p *Pipeline) assistKey(c *analysis.Case) []byte {
	session := c.Action.Session
	if p.host == "" {
		session = "" // the session name is the agent's claim: all sessions it names share one count
	}
	return examID(strings.Join([]string{p.caller.User, p.host, session}, "\x00"))
}

// assisting counts an ALLOW of the evaluator and returns how many there were since the user's last
// answer.
func (p *Pipeline) assisting(ctx context.Context, c *analysis.Case) (n int, err error) {
	if p.store == nil {
		return 0, errors.New("there is no state folder; set HOME or --state")
	}
	key, now := p.assistKey(c), p.now()
	err = p.store.Shelf(ctx, assistShelf, func(sh *state.Shelf) error {
		var counted assistCount
		others := 0
		var old [][]byte
		err := sh.Each([]byte(assistGroup), func(k, value []byte) error {
			var one assistCount
			if err := json.Unmarshal(value, &one); err != nil {
				return err
			}
			switch {
			case string(k) == string(key):
				counted = one
			case now.Sub(one.At) > assistFor:
				old = append(old, slices.Clone(k))
			default:
				others++
			}
			return nil
		})
		if err != nil {
			return err
		}
		if others >= maxSessions {
			return errTooManySessions
		}
		for _, k := range old {
			if err := sh.Put([]byte(assistGroup), k, nil); err != nil {
				return err
			}
		}
		n = counted.N + 1
		value, err := json.Marshal(assistCount{min(n, maxAssists+1), now})
		if err != nil {
			return err
		}
		return sh.Put([]byte(assistGroup), key, value)
	})
	return n, err
}

// answeredByUser resets the session's count of ALLOWs. If that fails, the user is asked more often.
func (p *Pipeline) answeredByUser(ctx context.Context, c *analysis.Case) {
	if p.assisted && p.store != nil {
		_ = p.store.Shelf(ctx, assistShelf, func(sh *state.Shelf) error { return sh.Put([]byte(assistGroup), p.assistKey(c), nil) })
	}
}

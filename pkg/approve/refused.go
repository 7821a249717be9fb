package approve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/state"
)

// A Refusal is an action that was refused, and that a person can still allow once.
type Refusal struct {
	Ref                           string           `json:"ref"`     // the reference
	RefusedAtUnixSeconds          int64            `json:"at"`      // time of the refusal, Unix
	ActionKey                     string           `json:"binding"` // key of the exact action with its folder, session and files, and of the policy, rules and model that judged it
	User                          string           `json:"user,omitempty"`
	AgentHostName                 string           `json:"host,omitempty"` // name of the agent host that asked
	Session                       string           `json:"session,omitempty"`
	CWD                           string           `json:"cwd,omitempty"`
	ActionType                    string           `json:"type"`
	ActionHash                    string           `json:"hash"`    // hash of the action
	Payload                       json.RawMessage  `json:"payload"` // the action, redacted
	RefusedActionText             string           `json:"what"`    // the part of the action that the refusal is about, for people
	RefusalReason                 string           `json:"why"`
	RuleNameOrID                  string           `json:"rule,omitempty"`
	OfferedAdvanceApproval        *AdvanceApproval `json:"kind,omitempty"`   // approval that covers this kind of action, which the user can grant; nil: none
	ExactActionApproval           *AdvanceApproval `json:"exact,omitempty"`  // approval that covers only this exact action, while its files do not change
	AdvanceApprovalSessionKey     string           `json:"within,omitempty"` // the session to which OfferedAdvanceApproval is limited if it is given for a session
	NoAdvanceApprovalReason       string           `json:"alone,omitempty"`  // why OfferedAdvanceApproval is nil
	QuestionText                  string           `json:"-"`                // the question to the user; "" means "Allow this once"
	AdvanceApprovalActionExamples []string         `json:"near,omitempty"`   // examples of other actions that OfferedAdvanceApproval covers
	WorkspaceRoots                []string         `json:"roots,omitempty"`  // roots of the workspace, the project's folder first
	OfferedToolClassAnswer        *ToolClassAnswer `json:"tool,omitempty"`   // the answer that classifies the action's unknown tool, with Class still empty; nil: none
	ToolDescription               string           `json:"about,omitempty"`  // description of the unknown tool
	DeniedByRule                  bool             `json:"denied,omitempty"` // a deny or blocking rule refused the action

	ToolClassStoreKey string `json:"tool_binding,omitempty"` // key under which OfferedToolClassAnswer is stored

	IsNoLongerOverridable bool `json:"done,omitempty"` // the refusal was allowed; its record stays only so that Ref is not used again too soon
}

// An AllowOnceGrant is a person's permission to do a refused action once.
type AllowOnceGrant struct {
	RefusalRef string    `json:"ref"`
	By         string    `json:"by"`
	Until      time.Time `json:"until"`
	ActionKey  string    `json:"binding"`
}

// Limits of stored refusals and of their references: a person allows a refused action by its reference, a short
// ID.
const (
	MaxOverridableRefusalAge = time.Hour        // time in which a refusal can be allowed
	GrantLifetime            = 15 * time.Minute // time in which the agent can then do the action
	usedGrantRetention       = time.Minute      // how long a used grant is remembered, for a repeated call
	refusalRefReuseDelay     = 24 * time.Hour   // time in which a reference is not used again
	maxRefusals              = 256              // refusals stored at a time, each under its own reference
	maxRefusalBytes          = 32 << 10         // bytes of a record: more cannot be shown in full
	minRefusalRefChars       = 3
	refusalRefLetters        = "bcdfghjkmnpqrstvwxz23456789" // no vowels, which make words, and no 0, 1 and l
	refusalStoreNamespace    = "refused"
)

// Errors about the reference of a refusal.
var (
	ErrUnknownRef     = errors.New("no refusal has this reference; run 'shield allow' for the list")
	ErrUsedRef        = errors.New("this refusal was already allowed; tell the agent to try again")
	ErrOldRef         = errors.New("this refusal is too old to be allowed; let the agent try again")
	ErrActionTooLarge = errors.New("the action is too large to be shown in full, so it cannot be allowed; split the action into smaller steps")
)

// A DecisionStore stores the refused actions of one installation, and the user's answers, in its
// state. A record without a valid HMAC under the installation's key is ignored.
type DecisionStore struct {
	Store   *state.Store
	HMACKey [32]byte
	Clock   func() time.Time

	toolClasses toolClassCache
}

var refusalStoreGroupName = []byte("refs")

// AddRefusal stores a refusal and sets its Ref and RefusedAtUnixSeconds. Ref is random, and no other refusal has
// used it for a day, unless more than maxRefusals were stored in that time. If the same action is refused again
// while its refusal can still be allowed, it keeps its Ref.
func (s *DecisionStore) AddRefusal(ctx context.Context, r *Refusal) error {
	now := s.Clock()
	r.RefusedAtUnixSeconds = now.Unix()
	return s.Store.UpdateNamespace(ctx, refusalStoreNamespace, func(sh *state.NamespaceTx) error {
		name, err := s.evictOldRefusalRefs(sh, now, r.ActionKey)
		if err == nil && name == "" {
			name, err = drawUnusedRefusalRef(func(name string) bool { return sh.Get(refusalStoreGroupName, []byte(name)) == nil })
		}
		if err != nil {
			return err
		}
		r.Ref = name
		value, err := s.sealRecord(r)
		if err != nil {
			return err
		}
		if len(value) > maxRefusalBytes {
			return ErrActionTooLarge
		}
		return sh.Put(refusalStoreGroupName, []byte(name), value)
	})
}

// drawUnusedRefusalRef draws a reference that is not in use.
func drawUnusedRefusalRef(isUnused func(string) bool) (string, error) {
	for try := range 100 {
		name := make([]byte, minRefusalRefChars+try/20)
		for i := range name {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(refusalRefLetters))))
			if err != nil {
				return "", fmt.Errorf("draw a reference: %w", err)
			}
			name[i] = refusalRefLetters[n.Int64()]
		}
		if isUnused(string(name)) {
			return string(name), nil
		}
	}
	return "", errors.New("shield found no unused reference for the refused action; wait an hour")
}

// evictOldRefusalRefs deletes the refusals older than refusalRefReuseDelay, which frees their references (short IDs),
// and, if too many remain, the oldest of the others. If a refusal with this actionKey can still be allowed, it
// deletes nothing and returns the reference of that refusal; otherwise it returns "".
func (s *DecisionStore) evictOldRefusalRefs(sh *state.NamespaceTx, now time.Time, actionKey string) (refOfSameAction string, err error) {
	type aged struct {
		name string
		at   int64
	}
	var kept, drop []aged
	err = sh.Each(refusalStoreGroupName, func(key, value []byte) error {
		one := aged{name: string(key)}
		if r, err := s.unsealRefusal(value); err == nil {
			one.at = r.RefusedAtUnixSeconds
			if r.ActionKey == actionKey && r.Ref == one.name && !r.IsNoLongerOverridable && !s.isExpired(r) {
				refOfSameAction = r.Ref
			}
		}
		if now.Sub(time.Unix(one.at, 0)) >= refusalRefReuseDelay {
			drop = append(drop, one)
		} else {
			kept = append(kept, one)
		}
		return nil
	})
	if err != nil || refOfSameAction != "" {
		return refOfSameAction, err
	}
	sorted.SortStableBy(kept, func(a, b aged) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name)) })
	if over := len(kept) - maxRefusals + 1; over > 0 {
		drop = append(drop, kept[:over]...)
	}
	for _, one := range drop {
		if err := sh.Put(refusalStoreGroupName, []byte(one.name), nil); err != nil {
			return "", err
		}
	}
	return "", nil
}

// ListAllowableRefusals returns a user's refusals that can be allowed, newest first.
func (s *DecisionStore) ListAllowableRefusals(ctx context.Context, user string) ([]Refusal, error) {
	var list []Refusal
	err := s.Store.ViewNamespace(ctx, refusalStoreNamespace, func(sh *state.NamespaceTx) error {
		list = nil
		return sh.Each(refusalStoreGroupName, func(key, value []byte) error {
			r, err := s.unsealRefusal(value)
			if err == nil && r.Ref == string(key) && r.User == user && !r.IsNoLongerOverridable && !s.isExpired(r) {
				list = append(list, *r)
			}
			return nil
		})
	})
	sorted.SortStableBy(list, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.RefusedAtUnixSeconds, a.RefusedAtUnixSeconds), cmp.Compare(a.Ref, b.Ref))
	})
	return list, err
}

// FindOverridableRefusal returns the refusal with a reference, or an error that says why it cannot be allowed.
func (s *DecisionStore) FindOverridableRefusal(ctx context.Context, user, ref string) (r *Refusal, err error) {
	err = s.Store.ViewNamespace(ctx, refusalStoreNamespace, func(sh *state.NamespaceTx) (err error) {
		r, err = s.findOverridableRefusalInTx(sh, user, ref)
		return err
	})
	return r, err
}

func (s *DecisionStore) findOverridableRefusalInTx(sh *state.NamespaceTx, user, ref string) (*Refusal, error) {
	value := sh.Get(refusalStoreGroupName, []byte(ref))
	r, err := s.unsealRefusal(value)
	switch {
	case value == nil || err != nil || r.Ref != ref || r.User != user:
		return nil, ErrUnknownRef
	case s.isExpired(r):
		return nil, ErrOldRef
	case r.IsNoLongerOverridable:
		return nil, ErrUsedRef
	}
	return r, nil
}

// isExpired reports whether a refusal can no longer be allowed. A refusal in the future counts as
// expired: the clock was set back.
func (s *DecisionStore) isExpired(r *Refusal) bool {
	age := s.Clock().Sub(time.Unix(r.RefusedAtUnixSeconds, 0))
	return age >= MaxOverridableRefusalAge || age < -time.Minute
}

// Allow permits a refused action once. Of concurrent calls for one refusal only one succeeds.
func (s *DecisionStore) Allow(ctx context.Context, r *Refusal, by string) (AllowOnceGrant, error) {
	g := AllowOnceGrant{RefusalRef: r.Ref, By: by, Until: s.Clock().Add(GrantLifetime), ActionKey: r.ActionKey}
	err := s.Store.UpdateNamespace(ctx, refusalStoreNamespace, func(sh *state.NamespaceTx) error {
		now, err := s.findOverridableRefusalInTx(sh, r.User, r.Ref)
		if err != nil {
			return err
		}
		if now.ActionKey != r.ActionKey {
			return ErrUnknownRef
		}
		now.IsNoLongerOverridable, now.Payload = true, json.RawMessage("null")
		value, err := s.sealRecord(now)
		if err != nil {
			return err
		}
		return sh.Put(refusalStoreGroupName, []byte(r.Ref), value)
	})
	if err != nil {
		return AllowOnceGrant{}, err
	}
	value, err := s.sealRecord(g)
	if err != nil {
		return AllowOnceGrant{}, err
	}
	return g, s.Store.Put(ctx, unusedGrantStoreKey(r.ActionKey), value, g.Until)
}

// TakeGrant removes and returns the grant with an action key, if it has not expired.
func (s *DecisionStore) TakeGrant(ctx context.Context, actionKey string) (AllowOnceGrant, bool) {
	var g AllowOnceGrant
	value, ok, err := s.Store.GetAndRemove(ctx, unusedGrantStoreKey(actionKey))
	if err != nil || !ok || s.unsealRecord(value, &g) != nil || g.ActionKey != actionKey || !s.Clock().Before(g.Until) {
		return AllowOnceGrant{}, false // when in doubt, ask
	}
	_ = s.Store.Put(ctx, usedGrantStoreKey(actionKey), value, s.Clock().Add(usedGrantRetention)) // if this fails, a second hook that the host calls for the same action refuses it
	return g, true
}

// RecentlyUsedGrant returns a grant that was used less than a minute ago, by its action key: an
// agent's host can call two hooks for the same tool call, and both must allow it.
func (s *DecisionStore) RecentlyUsedGrant(ctx context.Context, actionKey string) (AllowOnceGrant, bool) {
	var g AllowOnceGrant
	value, ok, err := s.Store.Get(ctx, usedGrantStoreKey(actionKey))
	if err != nil || !ok || s.unsealRecord(value, &g) != nil || g.ActionKey != actionKey {
		return AllowOnceGrant{}, false
	}
	return g, true
}

func usedGrantStoreKey(actionKey string) string { return "allowed once " + actionKey }

func unusedGrantStoreKey(actionKey string) string { return "allow once " + actionKey }

// sealRecord returns a record with its HMAC under the installation's key.
func (s *DecisionStore) sealRecord(record any) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return append(s.mac(text), text...), nil
}

func (s *DecisionStore) mac(text []byte) []byte {
	mac := hmac.New(sha256.New, s.HMACKey[:])
	_, _ = mac.Write(text) // writing to a hash does not fail
	return mac.Sum(nil)
}

var errForeignRecord = errors.New("another installation of shield wrote this record, so it does not count; let the agent try again")

func (s *DecisionStore) unsealRecord(value []byte, record any) error {
	if len(value) < sha256.Size || !hmac.Equal(value[:sha256.Size], s.mac(value[sha256.Size:])) {
		return errForeignRecord
	}
	return json.Unmarshal(value[sha256.Size:], record)
}

func (s *DecisionStore) unsealRefusal(value []byte) (*Refusal, error) {
	r := new(Refusal)
	return r, s.unsealRecord(value, r)
}

// AskToAllowRefusal asks at the terminal whether to allow a refused action once.
func AskToAllowRefusal(ctx context.Context, o Options, r *Refusal) (Answer, error) {
	a, err := New(o)
	if err != nil {
		return Answer{}, err
	}
	id, err := randomHex(16)
	if err != nil {
		return Answer{}, err
	}
	dec := json.NewDecoder(bytes.NewReader(r.Payload))
	dec.UseNumber()
	var payload any
	if err := dec.Decode(&payload); err != nil {
		return Answer{}, fmt.Errorf("the action cannot be shown: %w", err)
	}
	shown, known := a.options.Redactor.RedactAndCollectSecrets(payload, redact.MaxScannedTextBytes)
	given, _ := payload.(map[string]any)
	q := &Request{
		ID: id, ActionType: escapedSingleLineText(r.ActionType, 200), Summary: cmp.Or(r.QuestionText, "Allow this once") + ": " + quoteInCurlyQuotes(r.RefusedActionText) + ": " + escapedSingleLineText(r.RefusalReason, 300),
		CWD: escapedSingleLineText(r.CWD, 4096), Session: escapedSingleLineText(r.Session, 200), AskingProgramDescription: escapedSingleLineText(r.DescribeAsker(a.options.Clock()), 300),
		actionText:   escapedSingleLineText(r.RefusedActionText, maxQuotedActionBytes),
		timeToAnswer: a.options.Timeout.AsTimeDuration(), SecondsToAnswer: int(a.options.Timeout.AsTimeDuration().Seconds()), clock: a.options.Clock, timerStarted: make(chan struct{}),
	}
	q.Payload, q.IsPayloadTruncated = payloadFields(given, shown, known.RedactText)
	if r.RuleNameOrID != "" {
		q.Summary += " [" + escapedSingleLineText(r.RuleNameOrID, 80) + "]"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeToAnswer, errTimeout)
	defer cancel()
	return newTTYChannel(&a.options).Ask(ctx, q)
}

// DescribeAsker says who asked for a refused action, and when.
func (r *Refusal) DescribeAsker(now time.Time) string {
	host := r.AgentHostName
	if host == "" {
		host = "shield exec"
	}
	minutes := int(now.Sub(time.Unix(r.RefusedAtUnixSeconds, 0)).Minutes())
	if minutes < 1 {
		return host + ", less than a minute ago"
	}
	return fmt.Sprintf("%s, %d min ago", host, minutes)
}

package approve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	programs "github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A storedApproval is a remembered approval in its stored form.
type storedApproval struct {
	ActionText string    `json:"subject"` // the action on one line
	ApprovedBy string    `json:"who"`
	Until      time.Time `json:"until"`
}

// An Approval is a person's approval of one exact action, which shield remembers until a set time.
type Approval struct {
	ID         string    `json:"id"`      // hex ID
	ActionText string    `json:"subject"` // the action on one line, without secrets
	By         string    `json:"by"`      // the person's name and the channel of the answer; only the channel if the name is not known
	Until      time.Time `json:"until"`   // UTC
}

// maxShownApprovalTextBytes is how many bytes of a stored text are shown.
const maxShownApprovalTextBytes = 400

// approvalIDLength is the length of the ID of an [Approval], in characters.
const approvalIDLength = 12

// RememberedApprovals returns the remembered approvals, ordered by their end.
func RememberedApprovals(ctx context.Context, s *state.Store) ([]Approval, error) {
	entries, err := s.CachedEntries(ctx)
	if err != nil {
		return nil, err
	}
	var list []Approval
	for _, e := range entries {
		var r storedApproval
		dec := json.NewDecoder(bytes.NewReader(e.Value))
		dec.DisallowUnknownFields() // skips verdicts of models, which are in the same store
		if dec.Decode(&r) != nil || r.Until.IsZero() {
			continue
		}
		list = append(list, Approval{e.KeyHashHex[:approvalIDLength], escapedSingleLineText(r.ActionText, maxShownApprovalTextBytes), escapedSingleLineText(r.ApprovedBy, maxShownApprovalTextBytes), r.Until.UTC()})
	}
	sorted.SortStableBy(list, func(a, b Approval) int { return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.ID, b.ID)) })
	return list, nil
}

// RevokeRememberedApprovals removes the approval with an ID, or all for "", and returns the removed ones. An unknown ID
// is an error.
func RevokeRememberedApprovals(ctx context.Context, s *state.Store, id string) ([]Approval, error) {
	list, err := RememberedApprovals(ctx, s)
	if err != nil {
		return nil, err
	}
	if id != "" {
		if list = slices.DeleteFunc(list, func(a Approval) bool { return a.ID != id }); len(list) == 0 {
			return nil, fmt.Errorf("no remembered approval has the ID %.40q; run 'shield approvals list'", id)
		}
	}
	keys := make([]string, len(list))
	for i, a := range list {
		keys[i] = a.ID
	}
	return list, s.DropCached(ctx, keys)
}

// isApprovalRememberable reports whether an approval may also apply to the same action
// later. If it is unclear what runs or what is sent, the same words may do something else
// next time: an agent could get a harmless script approved and then rewrite it.
func isApprovalRememberable(c *analysis.ActionCase) bool {
	if c.UnexaminedReason != "" {
		return false
	}
	if _, err := c.InputFilesDigest(); err != nil {
		return false
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.PathIsPattern || slices.ContainsFunc(e.Args, hasShellExpansion) || hasShellExpansion(e.Program) {
			return false
		}
		switch e.KindForPolicies() {
		case effect.UnknownEffect, effect.RunDownload, effect.RunDecodedText, effect.RunCommandOutput, effect.RemoteShell:
			return false
		case effect.Execute:
			if e.Class == effect.UnknownClass || programs.IsCodeInterpreter(e.Program) || slices.Contains(workspaceCodeRunners, e.Program) { // runs code that can change before the next run, such as a script or a build
				return false
			}
		default:
		}
	}
	return true
}

// workspaceCodeRunners are programs, other than interpreters, that run code from files of the
// workspace: the same command does something else once such a file changes.
var workspaceCodeRunners = []string{
	"make", "gmake", "just", "task", "rake", "ninja", "cmake", "bazel", "scons", "meson",
	"npm", "npx", "pnpm", "yarn", "go", "cargo", "mvn", "gradle", "gradlew", "ant", "sbt", "dotnet",
	"pip", "pip3", "poetry", "tox", "nox", "pytest", "bundle", "composer",
	"docker", "docker-compose", "podman", "vagrant", "ansible-playbook", "terraform", "tofu", "pulumi", "pre-commit",
}

// hasShellExpansion reports whether a word contains an expansion that only the shell that runs it
// can resolve, such as $(cat target). An expansion in quotes counts too.
func hasShellExpansion(word string) bool { return strings.ContainsAny(word, "$`…") }

// recallApproval returns the verdict of an approval that has not expired.
func (a *Approver) recallApproval(ctx context.Context, c *analysis.ActionCase) (verdict.Verdict, bool) {
	key := a.options.RememberedAnswerKey(c)
	if key == "" {
		return verdict.Verdict{}, false
	}
	data, ok, err := a.options.Store.Get(ctx, key)
	if err != nil || !ok {
		return verdict.Verdict{}, false // when in doubt, ask
	}
	var r storedApproval
	if json.Unmarshal(data, &r) != nil || !a.options.Clock().Before(r.Until) {
		return verdict.Verdict{}, false
	}
	v := verdict.Finding{
		RequiredAuthority: verdict.AuthorityPerson, Confidence: 1,
		Reasoning: fmt.Sprintf("this exact action is approved until %s by %s", r.Until.UTC().Format(time.RFC3339), r.ApprovedBy),
	}.Verdict(3)
	v.AnswerChannel, v.AnsweredBy = "remembered", r.ApprovedBy
	return v, true
}

// storeApproval stores the approval of this exact action for approvalLifetime. It returns an error if shield
// cannot check later whether the files that the action uses were changed.
func (a *Approver) storeApproval(ctx context.Context, c *analysis.ActionCase, actionText, approvedBy string, approvalLifetime time.Duration) error {
	until := a.options.Clock().Add(approvalLifetime)
	data, err := json.Marshal(storedApproval{ActionText: actionText, ApprovedBy: approvedBy, Until: until})
	if err != nil {
		return err
	}
	key := a.options.RememberedAnswerKey(c)
	if key == "" {
		return errors.New("the files that the action uses cannot be checked for changes later; approve it once")
	}
	return a.options.Store.Put(ctx, key, data, until)
}

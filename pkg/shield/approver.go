package shield

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/policy"
)

// newApprover returns Tier 3, which asks a person. Without a state folder it asks no person, because
// nothing could limit how often.
func (p *Pipeline) newApprover(cfg Config, rules *policy.Policy) (*approve.Approver, error) {
	opts := cfg.ApprovalOptions
	opts.Approval, opts.StateDir, opts.Clock, opts.Redactor = cfg.effectiveSettings().Approval, cfg.StateDir, p.now, p.redactor
	if p.store == nil {
		opts.Channels, opts.NoChannelReason = nil, "approval needs a state folder for its hourly limit; set HOME or --state"
	} else {
		opts.Store = p.store
	}
	opts.MustShieldAsk, opts.OfferAdvanceApproval, opts.PrepareToolClassQuestion = rules.MustPromptThroughShield, p.offerAdvanceApproval, p.prepareToolClassQuestion
	opts.RememberedAnswerKey = func(c *analysis.ActionCase) string { return p.reusableAnswerKey(p.installationIDForApprovalKeys, c) }
	var err error
	if p.approver, err = approve.New(opts); err != nil {
		return nil, fmt.Errorf("approval: %w", err)
	}
	return p.approver, nil
}

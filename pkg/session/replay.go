package session

import (
	"context"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
)

// ReplayAndAnalyzeLastAction returns the case of the last of some actions of a session after replaying the
// earlier ones, in memory only. It is an [analysis.SessionReplayFunc].
func ReplayAndAnalyzeLastAction(an *analysis.Analyzer, eventTypes []string, policyCountsActions bool, actions []*action.Action) *analysis.ActionCase {
	s := NewStore(nil, Options{
		Clock: func() time.Time { return time.Unix(1, 0) }, SessionRetention: time.Hour, MaxFileRecordsPerUser: 1000, MaxDenials: 1,
	})
	ctx := context.Background()
	for i, a := range actions {
		memory := s.Load(ctx, Key{}, Lineage{}, "")
		c := an.CaseWithSessionState(a, memory)
		if i == len(actions)-1 {
			return c
		}
		d := DeltaOfAction(c, eventTypes, policyCountsActions)
		_ = s.Add(ctx, memory, &d) // data in memory cannot be damaged
	}
	return nil
}

package session

import (
	"context"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
)

// Replay returns the case of the last of some actions of a session after replaying the earlier ones,
// in memory only. It is an [analysis.Replay].
func Replay(an *analysis.Analyzer, events []string, counts bool, actions []*action.Action) *analysis.Case {
	s := NewStore(nil, Options{
		Clock: func() time.Time { return time.Unix(1, 0) }, Keep: time.Hour, MaxFiles: 1000, MaxDenials: 1,
	})
	ctx := context.Background()
	for i, a := range actions {
		memory := s.Load(ctx, Key{}, Lineage{}, "")
		c := an.CaseWithMemory(a, memory)
		if i == len(actions)-1 {
			return c
		}
		d := Learn(c, events, counts)
		_ = s.Add(ctx, memory, &d) // data in memory cannot be damaged
	}
	return nil
}

package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
)

// serveApprovalPage serves the approval page in the background, if settings name the channel, until the
// returned function is called. It prints no link: agents could read it in the service's log.
func (s *server) serveApprovalPage(ctx context.Context, set *config.LoadedSettings) (end func()) {
	if !slices.Contains(set.Approval.Channels, "web") {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	failed := func(err error) {
		fmt.Fprintf(s.environment.Err, "shield: serve: the approval page cannot be served; run 'shield doctor': %s\n", redactedErrorText(err))
	}
	o := approve.Options{Approval: set.Approval, StateDir: stateDir(&set.Settings, s.environment), AnsweringPersonName: userNameOrAPerson(s.environment), Clock: s.environment.Now, DescribeUndoBackups: func() string { return describeFilesBackedUpToday(set, s.environment) }}
	go func() {
		defer close(done)
		if err := approve.ServeApprovalPage(ctx, o, failed); err != nil {
			failed(err)
		}
	}()
	return func() { cancel(); <-done }
}

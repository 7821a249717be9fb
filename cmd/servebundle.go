package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

// bundleInterval is how often a service fetches the signed policy.
const bundleInterval = time.Hour

// keepBundle fetches the signed policy at the start and from then on once in each
// interval, beside the answers.
func (s *server) keepBundle(ctx context.Context) {
	tick := time.NewTicker(bundleInterval)
	defer tick.Stop()
	for {
		s.updateBundle(ctx, s.settings.Load())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// needBundle fetches the signed policy that settings name, if what is kept of it is of no
// use.
func (s *server) needBundle(ctx context.Context, set *config.Loaded) {
	kept, err := shield.BundleOf(shieldConfig(set, s.w, "serve"))
	if kept == nil || err != nil {
		return // what is wrong is told when the policy is loaded
	}
	if _, err := kept.Load(s.w.Now()); err != nil {
		s.updateBundle(ctx, set)
	}
}

// updateBundle fetches the signed policy that settings name, if they name one. Questions
// that come later are judged by it.
func (s *server) updateBundle(ctx context.Context, set *config.Loaded) {
	if set.Bundle.Source == "" {
		return
	}
	switch u, err := shield.UpdateBundle(ctx, shieldConfig(set, s.w, "serve"), nil); {
	case ctx.Err() != nil:
	case err != nil:
		fmt.Fprintf(s.w.Err, "shield: serve: the policy bundle was not updated: %s\n", withoutSecrets(err))
	case u.New:
		fmt.Fprintf(s.w.Err, "shield: serve: policy bundle %s is in use now\n", u.Bundle)
	}
}

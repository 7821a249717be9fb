package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

// policyBundleFetchInterval is how often a service fetches the signed policy.
const policyBundleFetchInterval = time.Hour

// fetchPolicyBundlePeriodically fetches the signed policy at the start and then once per interval, in the background.
func (s *server) fetchPolicyBundlePeriodically(ctx context.Context) {
	tick := time.NewTicker(policyBundleFetchInterval)
	defer tick.Stop()
	for {
		s.fetchPolicyBundle(ctx, s.settings.Load())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// ensureUsablePolicyBundle fetches the signed policy that settings name, if the stored one is unusable.
func (s *server) ensureUsablePolicyBundle(ctx context.Context, set *config.LoadedSettings) {
	kept, err := shield.StoredBundleFromConfig(pipelineConfigFromSettings(set, s.environment, "serve"))
	if kept == nil || err != nil {
		return // errors are reported when the policy is loaded
	}
	if _, err := kept.Load(s.environment.Now()); err != nil {
		s.fetchPolicyBundle(ctx, set)
	}
}

// fetchPolicyBundle fetches and stores the signed policy that the settings name, if any. The fetched policy
// applies to actions that are judged later.
func (s *server) fetchPolicyBundle(ctx context.Context, set *config.LoadedSettings) {
	if set.PolicyBundle.URLOrPath == "" {
		return
	}
	switch u, err := shield.UpdateBundle(ctx, pipelineConfigFromSettings(set, s.environment, "serve"), nil); {
	case ctx.Err() != nil:
	case err != nil:
		fmt.Fprintf(s.environment.Err, "shield: serve: the policy bundle was not updated; to retry, run 'shield policy bundle update': %s\n", redactedErrorText(err))
	case u.IsNewBundle:
		fmt.Fprintf(s.environment.Err, "shield: serve: policy bundle %s is in use now\n", u.Bundle)
	}
}

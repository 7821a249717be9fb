package shield

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/state"
)

// StoredBundleFromConfig returns the storage of a configuration's signed policy, nil if it has none.
func StoredBundleFromConfig(cfg Config) (*bundle.StoredBundle, error) {
	s := cfg.effectiveSettings().PolicyBundle
	if s.URLOrPath == "" {
		return nil, nil
	}
	keys, err := bundle.ParseKeys(s.MinisignPublicKeys)
	if err != nil {
		return nil, fmt.Errorf("policy.keys: %w", err)
	}
	return &bundle.StoredBundle{Dir: cfg.BundleDir, SourcePathOrURL: s.URLOrPath, Keys: keys, ExpiryGracePeriod: s.ExpiryGracePeriod.AsTimeDuration()}, nil
}

// loadBundle returns the signed policy in force, nil if the configuration has none.
func (cfg *Config) loadBundle() (*bundle.Bundle, error) {
	kept, err := StoredBundleFromConfig(*cfg)
	if kept == nil || err != nil {
		return nil, err
	}
	return kept.Load(cfg.now())
}

// enforceBundleExpiry makes the pipeline stop when the bundle of its policy has expired.
func (p *Pipeline) enforceBundleExpiry(b *bundle.Bundle, grace time.Duration) {
	if b == nil {
		return
	}
	p.checkPolicyExpiry = func() error {
		if _, err := b.CheckExpiry(p.now(), grace); err != nil {
			return fmt.Errorf("policy bundle: %w", err)
		}
		return nil
	}
	if expired, _ := b.CheckExpiry(p.now(), grace); expired && p.notifyUser != nil {
		p.notifyUser(fmt.Sprintf("the policy bundle %s has expired and is used until %s; get a newer one with 'shield policy bundle update'",
			b, b.Expires.Add(grace).UTC().Format(time.RFC3339)))
	}
}

// A BundleUpdate is the result of [UpdateBundle]: which policy bundle is in force, and whether it is new.
type BundleUpdate struct {
	Bundle      *bundle.Bundle // in force after the update
	IsNewBundle bool           // it was not in force before
}

// bundleNamespace is the namespace of the state that records the newest bundle of each source.
const bundleNamespace = "bundles"

var (
	bundleVersionKey = []byte("version")
	bundleNameKey    = []byte("name")
	bundleDigestKey  = []byte("digest")
)

// UpdateBundle fetches the signed policy of a configuration and stores it, if it is usable and not
// older than the newest one ever stored. On an error the last good bundle stays in force. roots
// replaces the system's certificates unless it is nil.
func UpdateBundle(ctx context.Context, cfg Config, roots *x509.CertPool) (BundleUpdate, error) {
	kept, err := StoredBundleFromConfig(cfg)
	switch {
	case err != nil:
		return BundleUpdate{}, err
	case kept == nil:
		return BundleUpdate{}, errors.New("no policy bundle is set; write policy: {bundle: URL, keys: [KEY]} in the settings")
	case cfg.BundleDir == "" || cfg.StateDir == "":
		return BundleUpdate{}, errors.New("policy bundle: there is no state folder to keep it in; set HOME or --state")
	}
	u, err := fetchAndStoreBundle(ctx, cfg, kept, roots)
	if err != nil {
		return u, fmt.Errorf("policy bundle %s: %w", bundle.RedactSourceURL(kept.SourcePathOrURL), err)
	}
	return u, nil
}

func fetchAndStoreBundle(ctx context.Context, cfg Config, kept *bundle.StoredBundle, roots *x509.CertPool) (u BundleUpdate, err error) {
	archive, err := bundle.FetchArchive(ctx, kept.SourcePathOrURL, roots)
	if err != nil {
		return u, err
	}
	b, err := bundle.Open(archive, kept.Keys)
	if err != nil {
		return u, err
	}
	if expired, _ := b.CheckExpiry(cfg.now(), 0); expired {
		return u, fmt.Errorf("the policy bundle %s expired on %s; ask its publisher for a newer bundle", b, b.Expires.UTC().Format(time.RFC3339))
	}
	if err := CheckBundlePolicyLoads(cfg, b); err != nil {
		return u, err
	}
	if err := os.MkdirAll(kept.Dir, 0o700); err != nil {
		return u, err
	}
	lock, err := flock.New(filepath.Join(kept.Dir, "lock"))
	if err != nil {
		return u, err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, state.DefaultMaxFileLockWait); err != nil {
		return u, err
	}
	was, err := kept.Read()
	if err != nil {
		return u, err
	}
	if err := recordNewestBundle(ctx, cfg, kept, b, was); err != nil {
		return u, err
	}
	if before, err := bundle.Open(was, kept.Keys); err == nil && before.ManifestDigest == b.ManifestDigest {
		return BundleUpdate{Bundle: b}, nil
	}
	return BundleUpdate{b, true}, kept.Write(archive)
}

// recordNewestBundle remembers a bundle as the newest of its source. It refuses an older bundle, one
// with another name, and one of the same version with other content.
func recordNewestBundle(ctx context.Context, cfg Config, bundleStorage *bundle.StoredBundle, b *bundle.Bundle, storedArchive []byte) error {
	opts, err := StateOptions(cfg, cfg.now)
	if err != nil {
		return err
	}
	opts.Remote = nil // newest bundles are remembered per machine
	store, err := state.Open(cfg.StateDir, opts)
	if err != nil {
		return err
	}
	group := []byte(bundleStorage.FileNameWithoutExt())
	err = store.UpdateNamespace(ctx, bundleNamespace, func(s *state.NamespaceTx) error {
		version, name, digest := int64(0), string(s.Get(group, bundleNameKey)), string(s.Get(group, bundleDigestKey))
		known := s.Get(group, bundleVersionKey)
		if known != nil {
			var err error
			if version, err = strconv.ParseInt(string(known), 10, 64); err != nil {
				return fmt.Errorf("the state file records the invalid version %.80q; run 'shield doctor --repair-state'", known)
			}
		}
		// The state may be lost; the stored bundle then gives the least version to accept.
		if last, err := bundle.Open(storedArchive, bundleStorage.Keys); err == nil && last.Version > version {
			version, name, digest = last.Version, last.Name, last.ManifestDigest
		}
		switch {
		case name != "" && name != b.Name:
			return fmt.Errorf("the bundle at this URL is named %s and was named %s; to use both, publish them at different URLs", b, name)
		case b.Version < version:
			return fmt.Errorf("%s is older than version %d, which was installed before, so the installed bundle stays in use; publish a higher version", b, version)
		case b.Version == version && b.ManifestDigest != digest:
			return fmt.Errorf("%s differs from the installed bundle of the same version; publish changes under a higher version", b)
		case known != nil && b.Version == version:
			return nil
		}
		for key, value := range map[string]string{string(bundleVersionKey): strconv.FormatInt(b.Version, 10), string(bundleNameKey): b.Name, string(bundleDigestKey): b.ManifestDigest} {
			if err := s.Put(group, []byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, store.Close())
}

// CheckBundlePolicyLoads returns an error if the policy of a bundle cannot be used.
func CheckBundlePolicyLoads(cfg Config, b *bundle.Bundle) error {
	an, err := NewAnalyzer(cfg)
	if err != nil {
		return err
	}
	_, err = policy.Load(b.String()+", "+bundle.PolicyFile, b.Policy(), PolicyOptions(cfg, &an.DefaultExecutionContext))
	return err
}

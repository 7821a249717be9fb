package cmd

import (
	"context"

	"github.com/shieldcli/shield/pkg/config"
)

// examineStore checks the shared store, if one is set, and reports whether the state can be read.
func examineStore(out *findings, set *config.Loaded, w *World) bool {
	store, err := openStore(set, w)
	if err != nil {
		return false // the state file has its own finding
	}
	defer store.Close()
	shared, err := store.Shared(context.Background())
	switch {
	case err != nil:
		out.add(wrong, "", "store: %v; until then everything but reading files is blocked", err)
		return false
	case shared == nil:
	case shared.Forgets:
		out.add(doubt, "set 'appendonly yes' and 'appendfsync always' there", "store: %s, shared as %s: a restart of the server loses the counters, and blocks every machine", set.Store, shared.Name)
	default:
		out.add(fine, "", "store: %s, shared as %s", set.Store, shared.Name)
	}
	return true
}

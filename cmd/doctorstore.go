package cmd

import (
	"context"

	"github.com/shieldcli/shield/pkg/config"
)

// examineStore checks the shared store, if one is set, and reports whether the state can be read.
func examineStore(out *findings, set *config.Loaded, w *Environment) bool {
	store, err := openStore(set, w)
	if err != nil {
		return false // the state file has its own finding
	}
	defer store.Close()
	shared, err := store.SharedStoreInfo(context.Background())
	switch {
	case err != nil:
		out.add(severityBad, "", "store: %v; until then everything but reading files is blocked", err)
		return false
	case shared == nil:
	case shared.LosesDataOnRestart:
		out.add(severityWarning, "set 'appendonly yes' and 'appendfsync always' there", "store: %s, shared as %s: a restart of the server loses the counters, and blocks every machine", set.Store, shared.Name)
	default:
		out.add(severityOK, "", "store: %s, shared as %s", set.Store, shared.Name)
	}
	return true
}

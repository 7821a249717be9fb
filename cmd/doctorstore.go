package cmd

import (
	"context"

	"github.com/shieldcli/shield/pkg/config"
)

// examineStateStoreReadability checks the shared store, if one is set, and reports whether the state can be read.
func examineStateStoreReadability(out *doctorFindings, set *config.LoadedSettings, w *Environment) bool {
	store, err := openStore(set, w)
	if err != nil {
		return false // examineState already reports why the state file cannot be opened
	}
	defer store.Close()
	shared, err := store.SharedStoreInfo(context.Background())
	switch {
	case err != nil:
		out.add(severityBad, "correct this; until then shield blocks every action except reading files", "store: %v", err)
		return false
	case shared == nil:
	case shared.LosesDataOnRestart:
		out.add(severityWarning, "set 'appendonly yes' and 'appendfsync always' in the settings of this Redis server", "shared store: %s, with the store name %s: if this Redis server restarts, it loses the counters, and shield blocks all actions on every machine except reading files", set.CrossMachineStateStoreURL, shared.Name)
	default:
		out.add(severityOK, "", "shared store: %s, with the store name %s", set.CrossMachineStateStoreURL, shared.Name)
	}
	return true
}

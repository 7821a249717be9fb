package cmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/undo"
)

// reportBackedUpFiles answers the event that ends an agent's turn. It tells the user once which deleted
// or overwritten files of the session shield kept for "shield undo".
func reportBackedUpFiles(ctx context.Context, c *cli.Context, w *Environment, h *host.Host, event host.Event) (hookAnswer, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return hookAnswer{}, err
	}
	var text string
	if store := shield.UndoStore(pipelineConfigFromSettings(set, w, "hook")); store != nil {
		sets, err := store.ClaimSetsUnreportedToUser(event.EndedSessionID)
		if err != nil {
			return hookAnswer{}, err
		}
		text = describeBackedUpFiles(sets)
	}
	var answer []byte
	if text == "" {
		answer, err = h.ResponseToAllowedEvent(ctx, event, true, "")
	} else {
		answer, err = h.ShowUserTextResponse(ctx, event, text)
	}
	return hookAnswer{Allow: true, HostResponseJSON: answer}, err
}

// describeFilesBackedUpToday describes the files kept in the last 24 hours; "" if there are none.
func describeFilesBackedUpToday(set *config.LoadedSettings, w *Environment) string {
	store := shield.UndoStore(pipelineConfigFromSettings(set, w, "approve"))
	if store == nil {
		return ""
	}
	sets, err := store.List()
	if err != nil {
		return ""
	}
	return describeBackedUpFiles(slices.DeleteFunc(sets, func(s undo.BackupSet) bool { return w.Now().Sub(s.At) > 24*time.Hour }))
}

// describeBackedUpFiles describes kept files, newest set first; "" if there are none.
func describeBackedUpFiles(sets []undo.BackupSet) string {
	if len(sets) == 0 {
		return ""
	}
	files, bytes := 0, int64(0)
	for i := range sets {
		files += sets[i].EntryCount
		bytes += sets[i].BackedUpContentBytes
	}
	which := sets[0].ID
	if oldest := sets[len(sets)-1].ID; oldest != which {
		which = oldest + " to " + which
	}
	return fmt.Sprintf("shield kept copies of %d files (%s) that the agent deleted or overwrote (backup sets: %s). To restore the newest set: shield undo apply %s", files, formatSize(bytes), which, sets[0].ID)
}

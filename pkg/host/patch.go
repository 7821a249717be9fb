package host

import (
	"errors"
	"fmt"

	"github.com/shieldcli/shield/internal/patch"
)

// patchToActionsFilter is the jq filter that parses a patch in apply_patch format, which several hosts' models
// write, and returns its actions as an array of {type, payload}. A text that is not certainly in this
// format is an error.
func patchToActionsFilter(v any, _ []any) any {
	text, ok := v.(string)
	if !ok {
		return errors.New("the patch is not a string; send it as text")
	}
	actions, err := parsePatch(text)
	if err != nil {
		return fmt.Errorf("the patch cannot be read: %w", err)
	}
	return actions
}

func parsePatch(text string) (actions []any, err error) {
	files, err := patch.ParseApplyPatch(text)
	if err != nil {
		return nil, err
	}
	add := func(typ string, payload map[string]any) {
		actions = append(actions, map[string]any{"type": typ, "payload": payload})
	}
	for i, f := range files {
		if f.Op == patch.Delete {
			add("delete_file", map[string]any{"path": f.Path})
			continue
		}
		if f.Op == patch.Move {
			add("move_file", map[string]any{"source": files[i-1].Path, "destination": f.Path})
		}
		payload := map[string]any{"path": f.Path, "content": f.AddedLines}
		if f.RemovedLines != "" {
			payload["old_string"] = f.RemovedLines
		}
		add("write_file", payload)
	}
	return actions, nil
}

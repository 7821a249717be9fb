package classify

import (
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
)

// ModelInputText returns the text of an action for a model, "type: payload", with the payload as canonical JSON. Models
// are trained on the same form. The text that an edit replaces is left out, since it is removed from the
// file.
func ModelInputText(a *action.Action) (string, error) {
	name, fields := a.Type, a.Payload
	if line, ok := analysis.InterpreterCommandLine(a); ok { // written as a command: the training data has more commands than code
		name, fields = "execute_command", map[string]any{"command": line}
	}
	if _, ok := fields["old_string"]; ok && a.Type == "write_file" {
		fields = maps.Clone(fields)
		delete(fields, "old_string")
	}
	payload, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("payload: %w", err)
	}
	raw := jsontext.Value(payload)
	if err := raw.Canonicalize(); err != nil {
		return "", fmt.Errorf("payload: %w", err)
	}
	return name + ": " + string(raw), nil
}

var errNoAction = errors.New("internal error: the classifier got no action; please report this")

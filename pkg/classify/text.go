package classify

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/action"
)

// Text returns the text that a model reads of an action: "type: payload", with
// the payload as canonical JSON. Models are trained on the same form.
func Text(a *action.Action) (string, error) {
	payload, err := json.Marshal(a.Payload, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("payload: %w", err)
	}
	raw := jsontext.Value(payload)
	if err := raw.Canonicalize(); err != nil {
		return "", fmt.Errorf("payload: %w", err)
	}
	return a.Type + ": " + string(raw), nil
}

var errNoAction = errors.New("the case has no action")

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// The bounds of a condition's work on one case.
const (
	whenTimeout    = 50 * time.Millisecond
	whenMaxBytes   = 256 << 10 // of the action's record
	whenMaxEffects = 1_000
)

var (
	errOperand    = errors.New("the action is too large for a condition")
	errNotBoolean = errors.New("the result is neither true nor false")
)

// A condition is a jq expression over {action, effects}, compiled on first
// use. It sees no environment, no modules, no other input and no clock, so
// that the same action always meets the same answer.
type condition struct {
	expr string
	once sync.Once
	code *gojq.Code
	err  error
}

// blind shadows what would let an answer depend on more than the case.
const blind = `def now: error("now is not available"); def input: error("input is not available"); def inputs: input; .`

func compileWhen(expr string) (*gojq.Code, error) {
	q, err := gojq.Parse(expr)
	if err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	shadow, err := gojq.Parse(blind)
	if err != nil {
		return nil, err
	}
	q.FuncDefs = append(shadow.FuncDefs, q.FuncDefs...)
	code, err := gojq.Compile(q)
	if err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}
	return code, nil
}

// holds reports whether the condition is true of a case.
func (w *condition) holds(ctx context.Context, c *analysis.Case) (bool, error) {
	w.once.Do(func() { w.code, w.err = compileWhen(w.expr) })
	if w.err != nil {
		return false, w.err
	}
	if len(c.Action.Raw) > whenMaxBytes || len(c.Effects) > whenMaxEffects {
		return false, errOperand
	}
	ctx, cancel := context.WithTimeout(ctx, whenTimeout)
	defer cancel()
	iter := w.code.RunWithContext(ctx, operand(c))
	v, ok := iter.Next()
	if !ok {
		return false, errNotBoolean
	}
	if err, ok := v.(error); ok {
		return false, err
	}
	is, ok := v.(bool)
	if !ok {
		return false, errNotBoolean
	}
	if _, more := iter.Next(); more {
		return false, errNotBoolean
	}
	return is, nil
}

// operand returns a case as the value that conditions see.
func operand(c *analysis.Case) any {
	a := c.Action
	effects := make([]any, len(c.Effects))
	for i := range c.Effects {
		effects[i] = effectValue(&c.Effects[i])
	}
	return map[string]any{
		"action": map[string]any{
			"id": a.ID, "type": a.Type, "cwd": a.CWD, "session": a.Session,
			"min_tier": a.MinTier, "payload": jsonValue(a.Payload),
		},
		"effects": effects,
	}
}

func effectValue(e *effect.Effect) map[string]any {
	m := map[string]any{"kind": string(e.Kind)}
	for key, s := range map[string]string{
		"path": e.Path, "url": e.URL, "host": e.Host, "program": e.Program, "class": string(e.Class), "cause": string(e.Cause), "reason": e.Reason,
	} {
		if s != "" {
			m[key] = s
		}
	}
	if e.Pattern {
		m["pattern"] = true
	}
	if e.Recursive {
		m["recursive"] = true
	}
	if len(e.Args) > 0 {
		args := make([]any, len(e.Args))
		for i, s := range e.Args {
			args[i] = s
		}
		m["args"] = args
	}
	return m
}

// jsonValue returns a payload's value with numbers as gojq reads them.
func jsonValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, e := range v {
			m[key] = jsonValue(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = jsonValue(e)
		}
		return list
	case jsontext.Value:
		return json.Number(v)
	default:
		return v
	}
}

package policy

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

var errNotBoolean = errors.New("the condition must result in exactly one true or false; correct it")

// A condition is a jq expression over {action, effects}, compiled on first use. It cannot access the
// environment, modules, other input or the clock, so the same action always gets the same answer.
type condition struct {
	expr string

	mu                    sync.Mutex
	compiledConditionPool []*compiledJQCondition // compiled programs that are not in use
}

// takeProgram returns the compiled condition for use by one goroutine. The caller must give it back
// with [condition.releaseProgram].
func (w *condition) takeProgram() (*compiledJQCondition, error) {
	w.mu.Lock()
	if n := len(w.compiledConditionPool); n > 0 {
		defer w.mu.Unlock()
		p := w.compiledConditionPool[n-1]
		w.compiledConditionPool = w.compiledConditionPool[:n-1]
		return p, nil
	}
	w.mu.Unlock()
	return compileJQCondition(w.expr)
}

func (w *condition) releaseProgram(p *compiledJQCondition) {
	p.conditionWorkMeter = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.compiledConditionPool = append(w.compiledConditionPool, p)
}

// isTrue reports whether the condition is true for a case.
func (w *condition) isTrue(s *ruleSearch) (bool, error) {
	c := s.judgedCase
	if len(c.Action.Raw) > maxConditionInputBytes || len(c.Effects) > maxConditionInputEffects {
		return false, errInputTooLarge
	}
	p, err := w.takeProgram()
	if err != nil {
		return false, err
	}
	defer w.releaseProgram(p)
	p.conditionWorkMeter = newConditionWorkMeter(s.ctx)
	if s.conditionInput == nil {
		if s.conditionInput, err = conditionInput(c); err != nil {
			return false, err
		}
	}
	is, err := p.evaluate(s.conditionInput)
	if p.exceededLimit != nil { // the exceeded limit counts even if the expression caught its error with jq's try
		return false, p.exceededLimit
	}
	return is, err
}

// evaluate runs the condition. Its result must be a single boolean.
func (p *compiledJQCondition) evaluate(operand any) (bool, error) {
	iter := p.code.RunWithContext(p.conditionWorkMeter, operand)
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

// conditionInput returns a case as the input of conditions.
func conditionInput(c *analysis.ActionCase) (any, error) {
	a := c.Action
	payload, err := gojqInputValue(a.Payload)
	if err != nil {
		return nil, err
	}
	effects := make([]any, len(c.Effects))
	for i := range c.Effects {
		effects[i] = conditionInputOfEffect(&c.Effects[i])
	}
	return map[string]any{
		"action": map[string]any{
			"id": a.ID, "type": a.Type, "cwd": a.CWD, "session": a.Session,
			"min_tier": a.MinAllowTier, "payload": payload,
		},
		"effects": effects,
	}, nil
}

// effectStringFieldNames are the fields of an effect that are strings in conditions.
var effectStringFieldNames = []string{"kind", "path", "url", "host", "program", "class", "cause", "reason", "service", "verb", "target"}

// stringField returns the field of an effect with a name from effectStringFieldNames, as conditions see the
// field; "" if it is empty.
func stringField(e *effect.Effect, name string) string {
	switch name {
	case "kind":
		return string(e.KindForPolicies())
	case "path":
		return e.Path
	case "url":
		return e.URL
	case "host":
		return e.Host
	case "program":
		return e.Program
	case "class":
		return string(e.Class)
	case "cause":
		return e.CauseOrFirstHarm()
	case "reason":
		return e.Reason
	case "service":
		return e.RemoteServiceName
	case "verb":
		return e.RemoteOperationVerb
	default:
		return e.RemoteTargetName
	}
}

func conditionInputOfEffect(e *effect.Effect) map[string]any {
	m := map[string]any{}
	for _, name := range effectStringFieldNames {
		if text := stringField(e, name); text != "" || name == "kind" {
			m[name] = text
		}
	}
	for _, is := range [...]struct {
		key   string
		holds bool
	}{{"pattern", e.PathIsPattern}, {"recursive", e.Recursive}, {"destroys", e.DestroysRemoteResource()}, {"trusted", e.IsTargetTrusted}, {"restorable", e.IsRestorableWithoutBackup}, {"kept", e.IsBackedUpByShield}} {
		if is.holds {
			m[is.key] = true
		}
	}
	if len(e.DataLabels) > 0 {
		labels := make([]any, len(e.DataLabels))
		for i, l := range e.DataLabels {
			labels[i] = string(l)
		}
		m["labels"] = labels
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

// gojqInputValue converts a payload's value to the number types that gojq accepts.
func gojqInputValue(v any) (out any, err error) {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, e := range v {
			if m[key], err = gojqInputValue(e); err != nil {
				return nil, err
			}
		}
		return m, nil
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			if list[i], err = gojqInputValue(e); err != nil {
				return nil, err
			}
		}
		return list, nil
	case jsontext.Value:
		if len(v) > maxNumberLength {
			return nil, errInputTooLarge
		}
		return json.Number(v), nil
	default:
		return v, nil
	}
}

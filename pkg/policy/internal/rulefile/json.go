package rulefile

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/yamlfile"
)

// maxEarlierActionsInExample is the maximum number of earlier actions in an example.
const maxEarlierActionsInExample = 100

// parseExample reads an action, or a list of actions of one session, whose last is the example.
func parseExample(n ast.Node) (e Example, err error) {
	e.Pos = yamlfile.PositionOf(n)
	nodes := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	if len(nodes) == 0 || len(nodes) > maxEarlierActionsInExample+1 {
		return e, e.Pos.Errorf("the list must have 1 to %d actions; split it", maxEarlierActionsInExample+1)
	}
	for i, n := range nodes {
		b, err := appendAction(nil, n)
		if err != nil {
			return e, err
		}
		if i < len(nodes)-1 {
			e.EarlierActions = append(e.EarlierActions, b)
		} else {
			e.Action = b
		}
	}
	return e, nil
}

// appendAction appends an action as JSON. A string is short for an execute_command action.
func appendAction(dst []byte, n ast.Node) ([]byte, error) {
	if s, ok := n.(*ast.StringNode); ok {
		dst = append(dst, `{"type":"execute_command","payload":{"command":`...)
		dst, err := jsontext.AppendQuote(dst, s.Value)
		return append(dst, "}}"...), err
	}
	if k := yamlfile.KindOf(n); k != "a mapping" {
		return nil, yamlfile.PositionOf(n).Errorf("expected an action, or a command as text, found %s", k)
	}
	return appendJSON(dst, n)
}

// appendJSON appends a YAML value as JSON.
func appendJSON(dst []byte, n ast.Node) ([]byte, error) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return append(dst, "null"...), nil
	case *ast.BoolNode:
		if n.Value {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v := jsontext.Value(n.GetToken().Value)
		if !v.IsValid() {
			return nil, yamlfile.PositionOf(n).Errorf("the number %s is not valid in JSON; put it in quotes", yamlfile.QuoteForMessage(string(v)))
		}
		return append(dst, v...), nil
	case *ast.SequenceNode:
		dst = append(dst, '[')
		for i, v := range n.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendJSON(dst, v); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case *ast.MappingNode, *ast.MappingValueNode:
		return appendObject(dst, n)
	default:
		s, err := yamlfile.Text(n)
		if err != nil {
			return nil, err
		}
		return jsontext.AppendQuote(dst, s)
	}
}

func appendObject(dst []byte, n ast.Node) ([]byte, error) {
	fs, err := yamlfile.Fields(n, nil)
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for i, f := range fs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = jsontext.AppendQuote(dst, f.Key); err != nil {
			return nil, f.KeyPos.Errorf("%v", err)
		}
		dst = append(dst, ':')
		if dst, err = appendJSON(dst, f.Value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

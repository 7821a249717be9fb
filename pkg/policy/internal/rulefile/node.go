package rulefile

import (
	"errors"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parseYAML returns the file's top node, nil if the file is empty.
func parseYAML(data []byte) (ast.Node, error) {
	tks, err := tokens(data)
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse(tks, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			at := syntax.GetToken().Position
			return nil, Pos{at.Line, at.Column}.errorf("%s", printable(syntax.GetMessage()))
		}
		return nil, Pos{}.errorf("not YAML: %s", printable(err.Error()))
	}
	var top ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if top != nil {
			return nil, pos(doc.Body).errorf("a policy is one document")
		}
		top = doc.Body
	}
	return top, nil
}

// pos returns where a node starts.
func pos(n ast.Node) Pos {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return pos(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return pos(n.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return Pos{}
	}
	at := n.GetToken().Position
	return Pos{at.Line, at.Column}
}

// kindOf names what a node is, for messages.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "a boolean"
	default:
		return "text"
	}
}

// A field is one key of a mapping and its value.
type field struct {
	key   string
	value ast.Node
	pos   Pos
}

// fields returns a mapping's keys in order. Keys that are not known or no text
// are errors; known nil takes every key. The parser refuses keys given twice.
func fields(n ast.Node, known []string) ([]field, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, pos(n).errorf("expected a mapping, found %s", kindOf(n))
	}
	out := make([]field, 0, len(values))
	for _, v := range values {
		key, err := text(v.Key)
		if err != nil {
			return nil, err
		}
		at := pos(v.Key)
		if known != nil && !contains(known, key) {
			return nil, at.errorf("unknown key %s%s", Quote(key), Suggest(key, known))
		}
		out = append(out, field{key, v.Value, at})
	}
	return out, nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// text returns the value of a text node. Numbers and booleans are not taken
// for text: "on" and "1.0" change their look when they are read as such.
func text(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return "", pos(n).errorf("expected text, found %s; put it in quotes", kindOf(n))
	default:
		return "", pos(n).errorf("expected text, found %s", kindOf(n))
	}
}

// elements returns the entries of a list.
func elements(n ast.Node) ([]ast.Node, error) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, pos(n).errorf("expected a list, found %s", kindOf(n))
	}
	return seq.Values, nil
}

// number returns the value of a node that is a whole number.
func number(n ast.Node) (int, error) {
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(i.GetToken().Value); err == nil {
			return v, nil
		}
	}
	return 0, pos(n).errorf("expected a whole number, found %s", kindOf(n))
}

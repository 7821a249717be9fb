// Package yamlfile parses YAML files that people write: policies, test cases and settings. It limits
// the input, accepts only the YAML features that such files need, and reports the position of each
// error.
package yamlfile

import (
	"errors"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/shieldcli/shield/internal/suggest"
)

// Parse returns a file's top node, nil if the file is empty. what names the
// kind of file in messages, as in "a policy". Errors are of type [*Error] or
// [Errors].
func Parse(data []byte, what string) (ast.Node, error) {
	top, err := parseSingleDocument(data, what)
	if err != nil || top == nil {
		if tab := tabIndentationError(data, false); tab != nil {
			return nil, tab
		}
	}
	return top, err
}

func parseSingleDocument(data []byte, what string) (ast.Node, error) {
	tks, err := tokenizeFile(data, what)
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse(tks, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			at := syntax.GetToken().Position
			return nil, Pos{at.Line, at.Column}.Errorf("%s", printableMessage(syntax.GetMessage()))
		}
		return nil, Pos{}.Errorf("not YAML: %s", printableMessage(err.Error()))
	}
	var top ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if top != nil {
			return nil, PositionOf(doc.Body).Errorf("%s must be one document; remove --- and the lines after it", what)
		}
		top = doc.Body
	}
	return top, nil
}

// PositionOf returns the position of a node.
func PositionOf(n ast.Node) Pos {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return PositionOf(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return PositionOf(n.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return Pos{}
	}
	at := n.GetToken().Position
	return Pos{at.Line, at.Column}
}

// KindOf returns the kind of a node, for messages.
func KindOf(n ast.Node) string {
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

// A Field is one key of a mapping and its value.
type Field struct {
	Key    string
	Value  ast.Node
	KeyPos Pos // position of the key
}

// Fields returns a mapping's keys in order. If keys are unknown or not text, it returns an error and
// the other keys; a nil known accepts every key. The parser rejects duplicate keys.
func Fields(n ast.Node, known []string) ([]Field, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, PositionOf(n).Errorf("expected a mapping, found %s; write KEY: VALUE", KindOf(n))
	}
	var errs Errors
	out := make([]Field, 0, len(values))
	for _, v := range values {
		key, err := Text(v.Key)
		switch {
		case err != nil:
			errs.Add(err)
		case known != nil && !containsString(known, key):
			errs.Add(PositionOf(v.Key).Errorf("unknown key %s%s", QuoteForMessage(key), suggest.DidYouMeanSuffix(key, known)))
		default:
			out = append(out, Field{key, v.Value, PositionOf(v.Key)})
		}
	}
	return out, errs.Err()
}

func containsString(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// Text returns the value of a text node. Numbers and booleans are errors, since parsing changes their spelling,
// as of "True" and "1.0".
func Text(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return "", PositionOf(n).Errorf("expected text, found %s; put it in quotes", KindOf(n))
	default:
		return "", PositionOf(n).Errorf("expected text, found %s; write one word or a quoted text", KindOf(n))
	}
}

// Elements returns the entries of a list.
func Elements(n ast.Node) ([]ast.Node, error) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, PositionOf(n).Errorf("expected a list, found %s; write [A, B]", KindOf(n))
	}
	return seq.Values, nil
}

// ConvertElements converts each entry of a list, and returns all errors.
func ConvertElements[T any](n ast.Node, convertElement func(ast.Node) (T, error)) ([]T, error) {
	nodes, err := Elements(n)
	if err != nil {
		return nil, err
	}
	var errs Errors
	out := make([]T, 0, len(nodes))
	for _, n := range nodes {
		v, err := convertElement(n)
		errs.Add(err)
		out = append(out, v)
	}
	return out, errs.Err()
}

// VisitMappingFields calls visitField for each entry of a mapping, whose keys must be in
// allowedKeys, and returns all errors.
func VisitMappingFields(n ast.Node, allowedKeys []string, visitField func(Field) error) error {
	fields, err := Fields(n, allowedKeys)
	var errs Errors
	errs.Add(err)
	for _, f := range fields {
		errs.Add(visitField(f))
	}
	return errs.Err()
}

// WholeNumber returns the value of a node that is a whole number, written in
// decimal digits.
func WholeNumber[T int | int64](n ast.Node) (T, error) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		text := n.GetToken().Value
		v, err := strconv.ParseInt(text, 10, 64)
		if err == nil && int64(T(v)) == v && strconv.FormatInt(v, 10) == text {
			return T(v), nil
		}
		return 0, PositionOf(n).Errorf("expected a whole number, found %s; write one such as 60", QuoteForMessage(text))
	case *ast.FloatNode:
		return 0, PositionOf(n).Errorf("expected a whole number, found %s; write one such as 60", QuoteForMessage(n.GetToken().Value))
	default:
		return 0, PositionOf(n).Errorf("expected a whole number, found %s; write one such as 60", KindOf(n))
	}
}

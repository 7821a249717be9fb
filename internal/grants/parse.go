package grants

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/tailscale/hujson"

	"github.com/shieldcli/shield/internal/yamlfile"
)

// parseConfigFileObjects returns the objects of a file. An empty one has none.
func parseConfigFileObjects(file, text string) ([]configFileObject, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	b := &configFileObjectBuilder{}
	var err error
	base := path.Base(file)
	switch ext := path.Ext(base); {
	case strings.HasPrefix(base, "Dockerfile"), strings.HasPrefix(base, "Containerfile"), strings.EqualFold(ext, ".dockerfile"):
		b.addDockerfileStages(text)
	case ext == ".tf", ext == ".tofu":
		err = b.addTerraform(text)
	case ext == ".json", ext == ".code-workspace":
		err = b.addJSON(text)
	default:
		err = b.addYAML(text)
	}
	if b.anyParseLimitReached {
		err = ErrLimit
	}
	return b.objects, err
}

// A configFileObjectBuilder collects the objects, with their texts, that a parser finds in a configuration file.
type configFileObjectBuilder struct {
	objects                 []configFileObject
	addedObjectAndTextCount int // number of objects and texts added so far
	visitedNodes            int // nodes of YAML, also those that aliases repeat
	anyParseLimitReached    bool
}

// A valuePosition is the position of a value in a file: the path of its keys, and the objects that
// contain it.
type valuePosition struct {
	keyPath         string
	enclosing       []enclosingObject
	depth           int
	cannotFailCIRun bool
}

// An enclosingObject is an object that contains a value, with the path of keys from the object to
// the value.
type enclosingObject struct {
	objectIndex int
	keyInObject string
}

// tryAddObject adds an object for a mapping, and returns the position of the values inside it. It
// returns false if [maxConfigFileObjects], [maxObjectNesting] or [maxKeyPathBytes] is exceeded.
func (b *configFileObjectBuilder) tryAddObject(p valuePosition) (valuePosition, bool) {
	if b.addedObjectAndTextCount++; b.addedObjectAndTextCount > maxConfigFileObjects || p.depth > maxObjectNesting || len(p.keyPath) > maxKeyPathBytes {
		b.anyParseLimitReached = true
		return p, false
	}
	b.objects = append(b.objects, configFileObject{keyPath: p.keyPath, fields: map[string][]string{}, cannotFailCIRun: p.cannotFailCIRun})
	p.enclosing = append(slices.Clone(p.enclosing), enclosingObject{len(b.objects) - 1, ""})
	p.depth++
	return p, true
}

// atKey returns the position of the value that a key has in the object at position p.
func (p valuePosition) atKey(key string) valuePosition {
	out := valuePosition{keyPath: joinKeyPath(p.keyPath, key), depth: p.depth + 1, cannotFailCIRun: p.cannotFailCIRun}
	for _, a := range p.enclosing[max(0, len(p.enclosing)-6):] {
		out.enclosing = append(out.enclosing, enclosingObject{a.objectIndex, joinKeyPath(a.keyInObject, key)})
	}
	return out
}

func joinKeyPath(a, b string) string {
	if a == "" {
		return b
	}
	return a + "/" + b
}

// addText adds a text value to each object that contains its position.
func (b *configFileObjectBuilder) addText(p valuePosition, text string) {
	if b.addedObjectAndTextCount++; b.addedObjectAndTextCount > 8*maxConfigFileObjects || len(p.keyPath) > maxKeyPathBytes {
		b.anyParseLimitReached = true
		return
	}
	for _, a := range p.enclosing {
		f := b.objects[a.objectIndex].fields
		f[a.keyInObject] = append(f[a.keyInObject], text)
	}
}

// isCISettingPreventingFailure reports whether a key and its value mean that a failure does not count or that
// nothing runs, such as continue-on-error: true. It calls value only for such keys.
func isCISettingPreventingFailure(key string, value func() string) bool {
	var soft []string
	switch key {
	case "continue-on-error", "allow_failure", "continueOnError", "soft_fail", "ignore_failure", "failure_ignore":
		soft = []string{"true", "yes"}
	case "if":
		soft = []string{"false", "${{ false }}", "0"}
	case "when":
		soft = []string{"never"}
	case "enabled":
		soft = []string{"false"}
	default:
		return false
	}
	return slices.Contains(soft, strings.ToLower(strings.TrimSpace(value())))
}

// addJSONValue adds a decoded JSON value, with all objects and texts in it.
func (b *configFileObjectBuilder) addJSONValue(p valuePosition, v any) {
	if b.anyParseLimitReached || p.depth > maxObjectNesting {
		b.anyParseLimitReached = true
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			p.cannotFailCIRun = p.cannotFailCIRun || isCISettingPreventingFailure(key, func() string { return fmt.Sprint(item) })
		}
		inner, ok := b.tryAddObject(p)
		if !ok {
			return
		}
		for key, item := range v {
			b.addJSONValue(inner.atKey(key), item)
		}
	case []any:
		p.depth++
		for _, item := range v {
			b.addJSONValue(p, item)
		}
	case nil:
		b.addText(p, "")
	case string:
		b.addText(p, v)
		b.addEmbeddedJSON(p, v)
	default:
		b.addText(p, fmt.Sprint(v))
	}
}

// addEmbeddedJSON adds the objects of a text value that is itself a JSON document, such as an
// access policy in a cloud template.
func (b *configFileObjectBuilder) addEmbeddedJSON(p valuePosition, text string) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") && strings.Contains(text, "tatement") {
		_ = b.addJSONAt(p, text)
	}
}

func (b *configFileObjectBuilder) addJSON(text string) error {
	return b.addJSONAt(valuePosition{}, text)
}

func (b *configFileObjectBuilder) addJSONAt(p valuePosition, text string) error {
	if exceedsMaxBracketNesting(text) {
		b.anyParseLimitReached = true
		return ErrLimit
	}
	data, err := hujson.Standardize([]byte(text))
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	b.addJSONValue(p, v)
	return nil
}

// exceedsMaxBracketNesting reports whether brackets are nested deeper than parsers should go.
func exceedsMaxBracketNesting(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			if depth++; depth > maxObjectNesting {
				return true
			}
		case '}', ']', ')':
			depth--
		}
	}
	return false
}

// Expressions for the parts of a file that a template engine replaces: whole lines with only a
// placeholder, and placeholders within a line.
var (
	templateOnlyLinePattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*\{\{-?[^{}]*-?\}\}\s*$`) })
	templateExpressionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{[^{}\n]*\}\}`) })
)

func (b *configFileObjectBuilder) addYAML(text string) error {
	if strings.Contains(text, "{{") && !strings.Contains(text, "${{") {
		text = templateExpressionPattern().ReplaceAllString(templateOnlyLinePattern().ReplaceAllString(text, ""), "TEMPLATE")
	}
	docs, err := yamlfile.Documents([]byte(text))
	if err != nil {
		b.anyParseLimitReached = b.anyParseLimitReached || errors.Is(err, yamlfile.ErrTooLarge)
		return err
	}
	for _, doc := range docs {
		b.addYAMLNode(valuePosition{}, doc, map[string]ast.Node{})
	}
	return nil
}

// addYAMLNode adds a YAML node. It follows aliases; the limits on visited nodes and on depth also
// apply to the nodes that aliases repeat.
func (b *configFileObjectBuilder) addYAMLNode(p valuePosition, n ast.Node, anchors map[string]ast.Node) {
	if b.visitedNodes++; b.visitedNodes > 8*maxConfigFileObjects || len(p.keyPath) > maxKeyPathBytes {
		b.anyParseLimitReached = true
	}
	if p.depth++; b.anyParseLimitReached || p.depth > 4*maxObjectNesting {
		b.anyParseLimitReached = true
		return
	}
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentNode, *ast.CommentGroupNode:
		b.addText(p, "")
	case *ast.AnchorNode:
		if n.Name != nil {
			anchors[n.Name.GetToken().Value] = n.Value
		}
		b.addYAMLNode(p, n.Value, anchors)
	case *ast.AliasNode:
		if n.Value != nil {
			b.addYAMLNode(p, anchors[n.Value.GetToken().Value], anchors)
		}
	case *ast.TagNode:
		b.addYAMLNode(p, n.Value, anchors)
	case *ast.MappingNode:
		b.addYAMLMapping(p, n.Values, anchors)
	case *ast.MappingValueNode:
		b.addYAMLMapping(p, []*ast.MappingValueNode{n}, anchors)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			b.addYAMLNode(p, item, anchors)
		}
	case *ast.LiteralNode:
		b.addText(p, n.Value.Value)
		b.addEmbeddedJSON(p, n.Value.Value)
	case *ast.StringNode:
		b.addText(p, n.Value)
		b.addEmbeddedJSON(p, n.Value)
	default:
		b.addText(p, strings.Trim(n.String(), ` "'`))
	}
}

func (b *configFileObjectBuilder) addYAMLMapping(p valuePosition, values []*ast.MappingValueNode, anchors map[string]ast.Node) {
	for _, v := range values {
		p.cannotFailCIRun = p.cannotFailCIRun || v.Value != nil && isCISettingPreventingFailure(yamlKey(v), func() string { return strings.Trim(v.Value.String(), ` "'`) })
	}
	inner, ok := b.tryAddObject(p)
	if !ok {
		return
	}
	for _, v := range values {
		key := yamlKey(v)
		to := inner.atKey(key)
		switch {
		case key == "<<":
			b.addMergedKeys(inner, v.Value, anchors, 0)
		case key == "on" && inner.keyPath == "":
			b.addWorkflowTriggers(to, v.Value, anchors)
		default:
			b.addYAMLNode(to, v.Value, anchors)
		}
	}
}

// addMergedKeys adds the values of a mapping that is the value of a YAML merge key (<<) to the
// mapping that contains this key.
func (b *configFileObjectBuilder) addMergedKeys(p valuePosition, n ast.Node, anchors map[string]ast.Node, depth int) {
	if b.visitedNodes++; b.anyParseLimitReached || depth > maxObjectNesting || b.visitedNodes > 8*maxConfigFileObjects {
		b.anyParseLimitReached = true
		return
	}
	switch n := n.(type) {
	case *ast.AliasNode:
		b.addMergedKeys(p, anchors[n.Value.GetToken().Value], anchors, depth+1)
	case *ast.AnchorNode:
		b.addMergedKeys(p, n.Value, anchors, depth+1)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			b.addMergedKeys(p, item, anchors, depth+1)
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			b.addYAMLNode(p.atKey(yamlKey(v)), v.Value, anchors)
		}
	case *ast.MappingValueNode:
		b.addYAMLNode(p.atKey(yamlKey(n)), n.Value, anchors)
	}
}

// addWorkflowTriggers adds what starts a workflow: a name, a list of names, or a mapping.
func (b *configFileObjectBuilder) addWorkflowTriggers(p valuePosition, n ast.Node, anchors map[string]ast.Node) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		for _, item := range n.Values {
			b.addWorkflowTriggers(p, item, anchors)
		}
	case *ast.StringNode:
		b.addText(p.atKey(n.Value), "")
	default:
		b.addYAMLNode(p, n, anchors)
	}
}

func yamlKey(v *ast.MappingValueNode) string {
	if v.Key == nil {
		return ""
	}
	key := ast.Node(v.Key)
	for range maxObjectNesting {
		var inner ast.Node
		switch n := key.(type) {
		case *ast.MappingKeyNode: // "? key"
			inner = n.Value
		case *ast.AnchorNode: // "&name key"
			inner = n.Value
		case *ast.TagNode: // "!!str key"
			inner = n.Value
		}
		if inner == nil {
			break
		}
		key = inner
	}
	return strings.Trim(key.String(), ` "'`)
}

// addTerraform adds the blocks of Terraform: TYPE/LABEL/LABEL, with what is in them.
func (b *configFileObjectBuilder) addTerraform(text string) error {
	if exceedsMaxBracketNesting(text) {
		b.anyParseLimitReached = true
		return ErrLimit
	}
	f, diags := hclsyntax.ParseConfig([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	if body, ok := f.Body.(*hclsyntax.Body); ok {
		b.addHCLBody(valuePosition{}, body, text)
	}
	return nil
}

func (b *configFileObjectBuilder) addHCLBody(p valuePosition, body *hclsyntax.Body, text string) {
	inner, ok := b.tryAddObject(p)
	if !ok {
		return
	}
	for name, a := range body.Attributes {
		b.addHCLExpression(inner.atKey(name), a.Expr, text)
	}
	for _, block := range body.Blocks {
		at := inner.atKey(block.Type)
		for _, label := range block.Labels {
			at = at.atKey(label)
		}
		b.addHCLBody(at, block.Body, text)
	}
}

func (b *configFileObjectBuilder) addHCLExpression(p valuePosition, e hclsyntax.Expression, text string) {
	if p.depth++; b.anyParseLimitReached || p.depth > 4*maxObjectNesting {
		b.anyParseLimitReached = true
		return
	}
	switch e := e.(type) {
	case *hclsyntax.TupleConsExpr:
		for _, item := range e.Exprs {
			b.addHCLExpression(p, item, text)
		}
	case *hclsyntax.ObjectConsExpr:
		inner, ok := b.tryAddObject(p)
		if !ok {
			return
		}
		for _, item := range e.Items {
			b.addHCLExpression(inner.atKey(strings.Trim(hclSourceText(item.KeyExpr.Range(), text), `"() `)), item.ValueExpr, text)
		}
	case *hclsyntax.FunctionCallExpr:
		for _, arg := range e.Args {
			b.addHCLExpression(p, arg, text)
		}
	case *hclsyntax.ConditionalExpr:
		b.addHCLExpression(p, e.TrueResult, text)
		b.addHCLExpression(p, e.FalseResult, text)
	case *hclsyntax.ParenthesesExpr:
		b.addHCLExpression(p, e.Expression, text)
	default:
		if v, diags := e.Value(nil); !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.Type().FriendlyName() == "string" {
			b.addText(p, v.AsString())
			b.addEmbeddedJSON(p, v.AsString())
			return
		}
		b.addText(p, strings.Trim(hclSourceText(e.Range(), text), `" `))
	}
}

func hclSourceText(r hcl.Range, text string) string {
	return text[min(r.Start.Byte, len(text)):min(r.End.Byte, len(text))]
}

// addDockerfileStages adds each build stage of a Dockerfile as an object "stage", and the last stage
// also as an object "final".
func (b *configFileObjectBuilder) addDockerfileStages(text string) {
	var stage *valuePosition
	var last valuePosition
	var continued strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if part, more := strings.CutSuffix(line, `\`); more {
			continued.WriteString(part + " ")
			continue
		}
		line = continued.String() + line
		continued.Reset()
		word := strings.Fields(line)[0]
		word, rest := strings.ToLower(word), strings.TrimSpace(line[len(word):])
		if word == "from" || stage == nil {
			in, ok := b.tryAddObject(valuePosition{keyPath: "stage"})
			if !ok {
				return
			}
			stage, last = &in, in
		}
		if word == "user" { // the last USER instruction of a stage counts
			b.objects[last.enclosing[0].objectIndex].fields["user"] = nil
		}
		b.addText(stage.atKey(word), rest)
	}
	if stage != nil {
		o := b.objects[last.enclosing[0].objectIndex]
		b.objects = append(b.objects, configFileObject{keyPath: "final", fields: o.fields})
	}
}

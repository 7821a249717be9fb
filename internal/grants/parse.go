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

// parse returns the objects of a file. An empty one has none.
func parse(file, text string) ([]object, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	b := &builder{}
	var err error
	base := path.Base(file)
	switch ext := path.Ext(base); {
	case strings.HasPrefix(base, "Dockerfile"), strings.HasPrefix(base, "Containerfile"), strings.EqualFold(ext, ".dockerfile"):
		b.image(text)
	case ext == ".tf", ext == ".tofu":
		err = b.terraform(text)
	case ext == ".json", ext == ".code-workspace":
		err = b.json(text)
	default:
		err = b.yaml(text)
	}
	if b.full {
		err = ErrLimit
	}
	return b.objects, err
}

// A builder makes objects of what a parser has found.
type builder struct {
	objects []object
	left    int // that were made
	visited int // nodes of YAML, also those that aliases repeat
	full    bool
}

// A place is where something stands: below some objects, and behind a path of keys.
type place struct {
	at    string
	above []above
	depth int
	soft  bool
}

// above is an object that holds what is below it, behind a path of keys.
type above struct {
	object int
	key    string
}

// objectPlace adds an object for a mapping, and returns the place in it; false above a limit.
func (b *builder) objectPlace(p place) (place, bool) {
	if b.left++; b.left > maxObjects || p.depth > maxDepth || len(p.at) > maxPlace {
		b.full = true
		return p, false
	}
	b.objects = append(b.objects, object{at: p.at, fields: map[string][]string{}, soft: p.soft})
	p.above = append(slices.Clone(p.above), above{len(b.objects) - 1, ""})
	p.depth++
	return p, true
}

// under returns the place behind a key.
func (p place) under(key string) place {
	out := place{at: join(p.at, key), depth: p.depth + 1, soft: p.soft}
	for _, a := range p.above[max(0, len(p.above)-6):] {
		out.above = append(out.above, above{a.object, join(a.key, key)})
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "/" + b
}

// addText adds a text to the objects that it stands in.
func (b *builder) addText(p place, text string) {
	if b.left++; b.left > 8*maxObjects || len(p.at) > maxPlace {
		b.full = true
		return
	}
	for _, a := range p.above {
		f := b.objects[a.object].fields
		f[a.key] = append(f[a.key], text)
	}
}

// ignoresFailure reports whether a key and its value, which is rendered only then, say that a failure
// does not count, or that nothing runs.
func ignoresFailure(key string, value func() string) bool {
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

// addJSONValue adds a value of JSON, or of what is like it.
func (b *builder) addJSONValue(p place, v any) {
	if b.full || p.depth > maxDepth {
		b.full = true
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			p.soft = p.soft || ignoresFailure(key, func() string { return fmt.Sprint(item) })
		}
		inner, ok := b.objectPlace(p)
		if !ok {
			return
		}
		for key, item := range v {
			b.addJSONValue(inner.under(key), item)
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

// addEmbeddedJSON adds what a text holds that is itself JSON, as policies in templates do.
func (b *builder) addEmbeddedJSON(p place, text string) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") && strings.Contains(text, "tatement") {
		_ = b.json0(p, text)
	}
}

func (b *builder) json(text string) error { return b.json0(place{}, text) }

func (b *builder) json0(p place, text string) error {
	if tooDeep(text) {
		b.full = true
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

// tooDeep reports whether brackets are nested deeper than parsers should go.
func tooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[', '(':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']', ')':
			depth--
		}
	}
	return false
}

// templates match what a template engine puts in: whole lines of its own, and parts of a line.
var (
	templateLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*\{\{-?[^{}]*-?\}\}\s*$`) })
	templateParts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{[^{}\n]*\}\}`) })
)

func (b *builder) yaml(text string) error {
	if strings.Contains(text, "{{") && !strings.Contains(text, "${{") {
		text = templateParts().ReplaceAllString(templateLines().ReplaceAllString(text, ""), "TEMPLATE")
	}
	docs, err := yamlfile.Documents([]byte(text))
	if err != nil {
		b.full = b.full || errors.Is(err, yamlfile.ErrTooLarge)
		return err
	}
	for _, doc := range docs {
		b.node(place{}, doc, map[string]ast.Node{})
	}
	return nil
}

// node adds a node of YAML. Aliases are followed, within the bounds of all that is made.
func (b *builder) node(p place, n ast.Node, anchors map[string]ast.Node) {
	if b.visited++; b.visited > 8*maxObjects || len(p.at) > maxPlace {
		b.full = true
	}
	if p.depth++; b.full || p.depth > 4*maxDepth {
		b.full = true
		return
	}
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentNode, *ast.CommentGroupNode:
		b.addText(p, "")
	case *ast.AnchorNode:
		if n.Name != nil {
			anchors[n.Name.GetToken().Value] = n.Value
		}
		b.node(p, n.Value, anchors)
	case *ast.AliasNode:
		if n.Value != nil {
			b.node(p, anchors[n.Value.GetToken().Value], anchors)
		}
	case *ast.TagNode:
		b.node(p, n.Value, anchors)
	case *ast.MappingNode:
		b.mapping(p, n.Values, anchors)
	case *ast.MappingValueNode:
		b.mapping(p, []*ast.MappingValueNode{n}, anchors)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			b.node(p, item, anchors)
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

func (b *builder) mapping(p place, values []*ast.MappingValueNode, anchors map[string]ast.Node) {
	for _, v := range values {
		p.soft = p.soft || v.Value != nil && ignoresFailure(keyOf(v), func() string { return strings.Trim(v.Value.String(), ` "'`) })
	}
	inner, ok := b.objectPlace(p)
	if !ok {
		return
	}
	for _, v := range values {
		key := keyOf(v)
		to := inner.under(key)
		switch {
		case key == "<<":
			b.merge(inner, v.Value, anchors, 0)
		case key == "on" && inner.at == "":
			b.triggers(to, v.Value, anchors)
		default:
			b.node(to, v.Value, anchors)
		}
	}
}

// merge adds the values of a mapping to another that takes them over.
func (b *builder) merge(p place, n ast.Node, anchors map[string]ast.Node, depth int) {
	if b.visited++; b.full || depth > maxDepth || b.visited > 8*maxObjects {
		b.full = true
		return
	}
	switch n := n.(type) {
	case *ast.AliasNode:
		b.merge(p, anchors[n.Value.GetToken().Value], anchors, depth+1)
	case *ast.AnchorNode:
		b.merge(p, n.Value, anchors, depth+1)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			b.merge(p, item, anchors, depth+1)
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			b.node(p.under(keyOf(v)), v.Value, anchors)
		}
	case *ast.MappingValueNode:
		b.node(p.under(keyOf(n)), n.Value, anchors)
	}
}

// triggers adds what starts a workflow: a name, a list of names, or a mapping.
func (b *builder) triggers(p place, n ast.Node, anchors map[string]ast.Node) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		for _, item := range n.Values {
			b.triggers(p, item, anchors)
		}
	case *ast.StringNode:
		b.addText(p.under(n.Value), "")
	default:
		b.node(p, n, anchors)
	}
}

func keyOf(v *ast.MappingValueNode) string {
	if v.Key == nil {
		return ""
	}
	key := ast.Node(v.Key)
	for range maxDepth {
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

// terraform adds the blocks of Terraform: TYPE/LABEL/LABEL, with what is in them.
func (b *builder) terraform(text string) error {
	if tooDeep(text) {
		b.full = true
		return ErrLimit
	}
	f, diags := hclsyntax.ParseConfig([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return diags
	}
	if body, ok := f.Body.(*hclsyntax.Body); ok {
		b.body(place{}, body, text)
	}
	return nil
}

func (b *builder) body(p place, body *hclsyntax.Body, text string) {
	inner, ok := b.objectPlace(p)
	if !ok {
		return
	}
	for name, a := range body.Attributes {
		b.expression(inner.under(name), a.Expr, text)
	}
	for _, block := range body.Blocks {
		at := inner.under(block.Type)
		for _, label := range block.Labels {
			at = at.under(label)
		}
		b.body(at, block.Body, text)
	}
}

func (b *builder) expression(p place, e hclsyntax.Expression, text string) {
	if p.depth++; b.full || p.depth > 4*maxDepth {
		b.full = true
		return
	}
	switch e := e.(type) {
	case *hclsyntax.TupleConsExpr:
		for _, item := range e.Exprs {
			b.expression(p, item, text)
		}
	case *hclsyntax.ObjectConsExpr:
		inner, ok := b.objectPlace(p)
		if !ok {
			return
		}
		for _, item := range e.Items {
			b.expression(inner.under(strings.Trim(source(item.KeyExpr.Range(), text), `"() `)), item.ValueExpr, text)
		}
	case *hclsyntax.FunctionCallExpr:
		for _, arg := range e.Args {
			b.expression(p, arg, text)
		}
	case *hclsyntax.ConditionalExpr:
		b.expression(p, e.TrueResult, text)
		b.expression(p, e.FalseResult, text)
	case *hclsyntax.ParenthesesExpr:
		b.expression(p, e.Expression, text)
	default:
		if v, diags := e.Value(nil); !diags.HasErrors() && v.IsKnown() && !v.IsNull() && v.Type().FriendlyName() == "string" {
			b.addText(p, v.AsString())
			b.addEmbeddedJSON(p, v.AsString())
			return
		}
		b.addText(p, strings.Trim(source(e.Range(), text), `" `))
	}
}

func source(r hcl.Range, text string) string {
	return text[min(r.Start.Byte, len(text)):min(r.End.Byte, len(text))]
}

// image adds the stages of an image, the last of them as final, too.
func (b *builder) image(text string) {
	var stage *place
	var last place
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
			in, ok := b.objectPlace(place{at: "stage"})
			if !ok {
				return
			}
			stage, last = &in, in
		}
		if word == "user" { // the last counts
			b.objects[last.above[0].object].fields["user"] = nil
		}
		b.addText(stage.under(word), rest)
	}
	if stage != nil {
		o := b.objects[last.above[0].object]
		b.objects = append(b.objects, object{at: "final", fields: o.fields})
	}
}

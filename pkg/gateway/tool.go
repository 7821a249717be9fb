package gateway

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/shieldcli/shield/internal/canonjson"
)

// Bounds of what a server may list.
const (
	maxTools = 1000
	maxTool  = 256 << 10 // bytes of one
)

// A tool is one that a server lists.
type tool struct {
	name       string
	hash       string // SHA-256 of definition, in hex
	definition []byte // canonical, without what says nothing of the tool
	raw        []byte // as it was listed
	value      object
	findings   Findings
}

// toolName is what a tool may be called: what a model can write and no terminal
// acts on.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.\-/]{1,128}$`) })

// instructionsName is the name under which what a server tells the model about
// itself is pinned. No tool can have it.
const instructionsName = "(instructions)"

func (g *Gateway) newTool(raw []byte) (*tool, error) {
	if len(raw) > maxTool {
		return nil, fmt.Errorf("its definition is longer than %d bytes", maxTool)
	}
	v, err := canonjson.Value(raw, maxDepth)
	if err != nil {
		return nil, err
	}
	value, ok := v.(object)
	if !ok {
		return nil, errors.New("its definition is not a JSON object")
	}
	t := &tool{name: text(value, "name"), raw: raw, value: value}
	if !toolName().MatchString(t.name) {
		return nil, fmt.Errorf("its name %q has characters other than letters, digits and _ - . /", canonjson.Quote(t.name))
	}
	t.definition = canonjson.AppendValue(nil, normal(value))
	t.hash = digest(t.definition)
	w := walk{examiner: toolExaminer{}}
	w.value("", "", nil, value)
	t.findings = w.findings
	if hint(value, "readOnlyHint") && changes(t, &g.opts.Server) {
		t.findings = append(t.findings, Finding{Kind: "the annotation readOnlyHint although its name says that it changes something"})
	}
	return t, nil
}

// volatile are members of _meta that may differ between two lists of the same
// tool.
var volatile = []string{"ttlMs", "cacheScope", "lastModified", "etag", "timestamp", "requestId", "progressToken"}

// normal returns a tool without what says nothing of it: defaults that one
// version of a library writes and another leaves out, and what is volatile.
func normal(value object) object {
	out := maps.Clone(value)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	if meta := inner(out, "_meta"); meta != nil {
		meta = maps.Clone(meta)
		maps.DeleteFunc(meta, func(name string, _ any) bool { return slices.Contains(volatile, name) })
		if out["_meta"] = meta; len(meta) == 0 {
			delete(out, "_meta")
		}
	}
	if notes := inner(out, "annotations"); notes != nil {
		notes = maps.Clone(notes)
		for name, usual := range hints {
			if notes[name] == usual {
				delete(notes, name)
			}
		}
		if out["annotations"] = notes; len(notes) == 0 {
			delete(out, "annotations")
		}
	}
	if e := inner(out, "execution"); e != nil && (len(e) == 0 || len(e) == 1 && e["taskSupport"] == "forbidden") {
		delete(out, "execution")
	}
	return out
}

// hints are the annotations that the protocol has, with their defaults.
var hints = map[string]any{"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true, "openWorldHint": true, "title": ""}

// hint reports whether a tool states an annotation itself.
func hint(value object, name string) bool { return inner(value, "annotations")[name] == true }

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

// Limits of the tools that a server can list.
const (
	maxToolsPerServer = 1000
	maxToolBytes      = 256 << 10 // bytes of one tool
)

// A tool is an entry of a server's tool list.
type tool struct {
	name                    string
	definitionSHA256Hex     string // SHA-256 of definition, in hex
	canonicalJSONDefinition []byte // the tool as canonical JSON, without the members that [normalizeTool] removes
	raw                     []byte // as the server sent it
	parsedDefinition        object
	findings                Findings
}

// validToolNamePattern matches valid tool names: characters that a model can write and a terminal does not
// interpret.
var validToolNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.\-/]{1,128}$`) })

// instructionsPinName is the pin name for the server's instructions to the model. No tool can have it.
const instructionsPinName = "(instructions)"

func (g *Gateway) newTool(raw []byte) (*tool, error) {
	if len(raw) > maxToolBytes {
		return nil, fmt.Errorf("its definition is longer than %d bytes", maxToolBytes)
	}
	v, err := canonjson.ParseValue(raw, maxFrameJSONDepth)
	if err != nil {
		return nil, err
	}
	value, ok := v.(object)
	if !ok {
		return nil, errors.New("its definition is not a JSON object")
	}
	t := &tool{name: stringMember(value, "name"), raw: raw, parsedDefinition: value}
	if !validToolNamePattern().MatchString(t.name) {
		return nil, fmt.Errorf("its name %q has characters other than letters, digits and _ - . /", canonjson.Quote(t.name))
	}
	t.canonicalJSONDefinition = canonjson.AppendValue(nil, normalizeTool(value))
	t.definitionSHA256Hex = hashParts(t.canonicalJSONDefinition)
	w := textWalker{examiner: toolDefinitionExaminer{}}
	w.examineValue("", "", nil, value)
	t.findings = w.findings
	if hasHint(value, "readOnlyHint") && isModifyingTool(t, &g.opts.Server) {
		t.findings = append(t.findings, TextFinding{Kind: "the annotation readOnlyHint, but the tool's name says that the tool changes data"})
	}
	return t, nil
}

// volatileMeta are members of _meta that can differ between two lists of the same tool.
var volatileMeta = []string{"ttlMs", "cacheScope", "lastModified", "etag", "timestamp", "requestId", "progressToken"}

// normalizeTool returns a tool definition without members that do not affect its meaning: defaults that only
// some library versions write, and volatile members.
func normalizeTool(value object) object {
	out := maps.Clone(value)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	if meta := objectMember(out, "_meta"); meta != nil {
		meta = maps.Clone(meta)
		maps.DeleteFunc(meta, func(name string, _ any) bool { return slices.Contains(volatileMeta, name) })
		if out["_meta"] = meta; len(meta) == 0 {
			delete(out, "_meta")
		}
	}
	if notes := objectMember(out, "annotations"); notes != nil {
		notes = maps.Clone(notes)
		for name, usual := range hintDefaults {
			if notes[name] == usual {
				delete(notes, name)
			}
		}
		if out["annotations"] = notes; len(notes) == 0 {
			delete(out, "annotations")
		}
	}
	if e := objectMember(out, "execution"); e != nil && (len(e) == 0 || len(e) == 1 && e["taskSupport"] == "forbidden") {
		delete(out, "execution")
	}
	return out
}

// hintDefaults are the tool annotations of the protocol, with their defaults.
var hintDefaults = map[string]any{"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true, "openWorldHint": true, "title": ""}

// hasHint reports whether a tool sets a boolean annotation to true.
func hasHint(value object, name string) bool { return objectMember(value, "annotations")[name] == true }

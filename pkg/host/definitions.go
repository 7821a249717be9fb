package host

import (
	"bytes"
	"encoding/json"

	"github.com/BurntSushi/toml"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
)

// An MCPServerDefinition is the definition of an MCP server in a client's settings.
type MCPServerDefinition struct {
	KeyPath       []string // keys that lead to the definition; the last is the server's name
	CanonicalJSON []byte   // the definition as canonical JSON
	Command       string
	Args          []string
	URL           string
}

// maxDefinitionDepth is the maximum nesting depth of the JSON definition of an MCP server.
const maxDefinitionDepth = 32

// MCPServerDefinitions returns the definitions of MCP servers in doc, the text of a client's
// settings file. Each of keyPaths leads to an object that contains servers by name; "*" matches
// every key.
func MCPServerDefinitions(doc []byte, isTOML bool, keyPaths [][]string) (all []MCPServerDefinition, err error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, nil
	}
	text, _ := toStrictJSON(doc)
	if isTOML {
		var v map[string]any
		if err := toml.Unmarshal(doc, &v); err != nil {
			return nil, err
		}
		if text, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	top, err := topLevelObject(text)
	if err != nil {
		return nil, err
	}
	for _, path := range keyPaths {
		if err := appendServerDefinitions(text, top, nil, path, &all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// appendServerDefinitions adds the definitions at a key path.
func appendServerDefinitions(text []byte, objectSpan span, parentKeys, remainingKeys []string, definitions *[]MCPServerDefinition) error {
	list, err := members(text, objectSpan)
	if err != nil {
		return err
	}
	for _, m := range list {
		here := append(parentKeys[:len(parentKeys):len(parentKeys)], m.name)
		switch {
		case len(remainingKeys) == 0:
			d := MCPServerDefinition{KeyPath: here}
			var said struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
				URL     string   `json:"url"`
				HTTPURL string   `json:"httpUrl"`
			}
			raw := text[m.start:m.end]
			if err := json.Unmarshal(raw, &said); err != nil {
				return err
			}
			if d.CanonicalJSON, err = canonjson.Append(nil, jsontext.Value(raw), maxDefinitionDepth); err != nil {
				return err
			}
			if d.Command, d.Args, d.URL = said.Command, said.Args, said.URL; said.HTTPURL != "" {
				d.URL = said.HTTPURL
			}
			*definitions = append(*definitions, d)
		case remainingKeys[0] == "*" || remainingKeys[0] == m.name:
			if text[m.start] != '{' {
				continue
			}
			if err := appendServerDefinitions(text, m.span, here, remainingKeys[1:], definitions); err != nil {
				return err
			}
		}
	}
	return nil
}

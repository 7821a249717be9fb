package host

import (
	"bytes"
	"encoding/json"

	"github.com/BurntSushi/toml"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
)

// A Definition is the definition of an MCP server in a client's settings.
type Definition struct {
	Path    []string // keys that lead to the definition; the last is the server's name
	Text    []byte   // the definition as canonical JSON
	Command string
	Args    []string
	URL     string
}

// maxDefinitionDepth is the maximum nesting of a definition.
const maxDefinitionDepth = 32

// Definitions returns the definitions of MCP servers in doc, the text of a client's settings file.
// Each of paths is a key path to an object that contains servers by name; "*" matches every key.
func Definitions(doc []byte, isTOML bool, paths [][]string) (all []Definition, err error) {
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
	for _, path := range paths {
		if err := addDefinitions(text, top, nil, path, &all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addDefinitions adds the definitions at a key path.
func addDefinitions(text []byte, at span, before, path []string, all *[]Definition) error {
	list, err := members(text, at)
	if err != nil {
		return err
	}
	for _, m := range list {
		here := append(before[:len(before):len(before)], m.name)
		switch {
		case len(path) == 0:
			d := Definition{Path: here}
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
			if d.Text, err = canonjson.Append(nil, jsontext.Value(raw), maxDefinitionDepth); err != nil {
				return err
			}
			if d.Command, d.Args, d.URL = said.Command, said.Args, said.URL; said.HTTPURL != "" {
				d.URL = said.HTTPURL
			}
			*all = append(*all, d)
		case path[0] == "*" || path[0] == m.name:
			if text[m.start] != '{' {
				continue
			}
			if err := addDefinitions(text, m.span, here, path[1:], all); err != nil {
				return err
			}
		}
	}
	return nil
}

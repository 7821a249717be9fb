package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/sorted"
)

// A ServerCommand is the command line with which a client starts an MCP server.
type ServerCommand struct {
	ServerName string
	Command    string
	Args       []string
}

// A textEdit replaces a part of a document with a text.
type textEdit struct {
	span
	replacementText string
}

// EditServers returns a client's settings (TOML, or JSON with or without comments) with changed
// commands of its MCP servers; all other bytes stay. paths are key paths to the objects that contain
// servers by name; "*" matches every key. change returns the new command, and false to keep the old
// one; it must return false for a server without a command. changed are the names of the changed
// servers.
func EditServers(doc []byte, isTOML bool, paths [][]string, change func(ServerCommand) (ServerCommand, bool)) (out []byte, changed []string, err error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return doc, nil, nil
	}
	if isTOML {
		return editTOMLServers(doc, paths[0][0], change)
	}
	text, _ := toStrictJSON(doc)
	top, err := topLevelObject(text)
	if err != nil {
		return nil, nil, err
	}
	var edits []textEdit
	for _, path := range paths {
		for _, at := range followKeyPath(text, top, path) {
			servers, err := members(text, at)
			if err != nil {
				return nil, nil, err
			}
			for _, s := range servers {
				more, did, err := editServer(text, s, change)
				if err != nil {
					return nil, nil, fmt.Errorf("the server %q: %w", s.name, err)
				}
				if did {
					edits, changed = append(edits, more...), append(changed, s.name)
				}
			}
		}
	}
	out = applyEdits(doc, edits)
	if strict, _ := toStrictJSON(out); !jsontext.Value(strict).IsValid() {
		return nil, nil, errors.New("cannot be edited without breaking it; edit it by hand")
	}
	return out, changed, nil
}

// followKeyPath returns the objects at a key path.
func followKeyPath(text []byte, at span, path []string) []span {
	if len(path) == 0 {
		return []span{at}
	}
	all, err := members(text, at)
	if err != nil {
		return nil
	}
	var out []span
	for _, m := range all {
		if path[0] == "*" || path[0] == m.name {
			out = append(out, followKeyPath(text, m.span, path[1:])...)
		}
	}
	return out
}

// A jsonMemberValueSpan is an object member: its name and the position of its value.
type jsonMemberValueSpan struct {
	span
	name       string
	nameOffset int // offset of the member's name
}

// members returns the members of an object.
func members(doc []byte, at span) (out []jsonMemberValueSpan, err error) {
	if doc[at.start] != '{' {
		return nil, errors.New("the list of MCP servers is not a JSON object; correct the file")
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc[at.start:at.end]))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		raw, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		key := at.start + int(d.InputOffset()) - len(raw)
		name, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, err
		}
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := at.start + int(d.InputOffset())
		out = append(out, jsonMemberValueSpan{span{end - len(v), end}, string(name), key})
	}
	return out, nil
}

// editServer returns the edits for a server's object.
func editServer(text []byte, s jsonMemberValueSpan, change func(ServerCommand) (ServerCommand, bool)) (edits []textEdit, did bool, err error) {
	if text[s.start] != '{' {
		return nil, false, nil
	}
	all, err := members(text, s.span)
	if err != nil {
		return nil, false, err
	}
	was := ServerCommand{ServerName: s.name}
	var command, args *span
	var words []span
	written := quotedFormByWord{}
	for i := range all {
		m := &all[i]
		raw := text[m.start:m.end]
		switch m.name {
		case "command":
			command, err = &m.span, json.Unmarshal(raw, &was.Command)
			written[was.Command] = string(raw)
		case "args":
			args, err = &m.span, json.Unmarshal(raw, &was.Args)
			words, _ = elementSpans(text, m.span) // none if the value is null
			for i, w := range words[:min(len(words), len(was.Args))] {
				written[was.Args[i]] = string(text[w.start:w.end])
			}
		}
		if err != nil {
			return nil, false, fmt.Errorf("the field %q of a server has the wrong type; correct the field", m.name)
		}
	}
	now, did := change(was)
	if !did || command == nil {
		return nil, false, nil
	}
	edits = []textEdit{{*command, written.quote(now.Command)}}
	switch {
	case args != nil && len(now.Args) == 0 && string(text[command.end:args.start]) == argsMemberPrefixJSON:
		edits[0].end = args.end
	case args != nil:
		edits = append(edits, argListEdit(*args, spanStarts(words), was.Args, now.Args, written))
	case len(now.Args) > 0:
		edits[0].replacementText += argsMemberPrefixJSON + written.quoteAsArray(now.Args)
	}
	return edits, true, nil
}

// argsMemberPrefixJSON is the text between a command and the arguments that are added to it.
const argsMemberPrefixJSON = `, "args": `

func spanStarts(all []span) (at []int) {
	for _, s := range all {
		at = append(at, s.start)
	}
	return at
}

// A quotedFormByWord maps the words of a server's command line to their quoted forms in the client's settings
// file.
type quotedFormByWord map[string]string

func (f quotedFormByWord) quote(s string) string {
	if as, ok := f[s]; ok {
		return as
	}
	return quoteJSON(s)
}

func (f quotedFormByWord) quoteAll(all []string) string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = f.quote(w)
	}
	return strings.Join(out, ", ")
}

func (f quotedFormByWord) quoteAsArray(words []string) string { return "[" + f.quoteAll(words) + "]" }

// argListEdit returns the edit that replaces a list of words, whose elements begin at the given offsets.
// If words are only added or removed at the front, the others keep their form and comments.
func argListEdit(oldArraySpan span, oldArgOffsets []int, oldArgs, newArgs []string, written quotedFormByWord) textEdit {
	more := len(newArgs) - len(oldArgs)
	switch {
	case len(oldArgOffsets) != len(oldArgs):
	case more > 0 && len(oldArgs) > 0 && slices.Equal(newArgs[more:], oldArgs):
		return textEdit{span{oldArgOffsets[0], oldArgOffsets[0]}, written.quoteAll(newArgs[:more]) + ", "}
	case more < 0 && len(newArgs) > 0 && slices.Equal(oldArgs[-more:], newArgs):
		return textEdit{span{oldArgOffsets[0], oldArgOffsets[-more]}, ""}
	}
	return textEdit{oldArraySpan, written.quoteAsArray(newArgs)}
}

// applyEdits returns a document with edits applied.
func applyEdits(doc []byte, edits []textEdit) []byte {
	sorted.SortStableBy(edits, func(a, b textEdit) int { return b.start - a.start })
	out := bytes.Clone(doc)
	for _, e := range edits {
		out = slices.Concat(out[:e.start], []byte(e.replacementText), out[e.end:])
	}
	return out
}

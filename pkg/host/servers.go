package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A ServerCommand is how a client starts an MCP server.
type ServerCommand struct {
	Name    string
	Command string
	Args    []string
}

// An edit replaces a part of a document by a text.
type edit struct {
	span
	text string
}

// EditServers returns a client's settings, in JSON, with or without comments, or
// TOML, with other commands for its MCP servers; all other bytes stay. paths are
// keys that lead to the objects that hold servers by their names, of which "*" is
// every key. change returns the new command, and false for one that is to stay, as a
// server without a command must. changed are the names.
func EditServers(doc []byte, isTOML bool, paths [][]string, change func(ServerCommand) (ServerCommand, bool)) (out []byte, changed []string, err error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return doc, nil, nil
	}
	if isTOML {
		return editTOML(doc, paths[0][0], change)
	}
	text, _ := plain(doc)
	top, err := whole(text)
	if err != nil {
		return nil, nil, err
	}
	var edits []edit
	for _, path := range paths {
		for _, at := range follow(text, top, path) {
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
	out = apply(doc, edits)
	if strict, _ := plain(out); !jsontext.Value(strict).IsValid() {
		return nil, nil, errors.New("cannot be edited without breaking it; edit it by hand")
	}
	return out, changed, nil
}

// follow returns the objects that a path leads to.
func follow(text []byte, at span, path []string) []span {
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
			out = append(out, follow(text, m.span, path[1:])...)
		}
	}
	return out
}

// A namedSpan is the value of a member of an object.
type namedSpan struct {
	span
	name string
	key  int // where the member begins, with its name
}

// members returns the members of an object.
func members(doc []byte, at span) (out []namedSpan, err error) {
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
		out = append(out, namedSpan{span{end - len(v), end}, string(name), key})
	}
	return out, nil
}

// editServer returns what changes in a server's object.
func editServer(text []byte, s namedSpan, change func(ServerCommand) (ServerCommand, bool)) (edits []edit, did bool, err error) {
	if text[s.start] != '{' {
		return nil, false, nil
	}
	all, err := members(text, s.span)
	if err != nil {
		return nil, false, err
	}
	was := ServerCommand{Name: s.name}
	var command, args *span
	var words []span
	written := forms{}
	for i := range all {
		m := &all[i]
		raw := text[m.start:m.end]
		switch m.name {
		case "command":
			command, err = &m.span, json.Unmarshal(raw, &was.Command)
			written[was.Command] = string(raw)
		case "args":
			args, err = &m.span, json.Unmarshal(raw, &was.Args)
			words, _ = elements(text, m.span) // none, if it is null
			for i, w := range words[:min(len(words), len(was.Args))] {
				written[was.Args[i]] = string(text[w.start:w.end])
			}
		}
		if err != nil {
			return nil, false, fmt.Errorf("its %s has a type that the client does not read; correct it", m.name)
		}
	}
	now, did := change(was)
	if !did || command == nil {
		return nil, false, nil
	}
	edits = []edit{{*command, written.word(now.Command)}}
	switch {
	case args != nil && len(now.Args) == 0 && string(text[command.end:args.start]) == addedArgs:
		edits[0].end = args.end
	case args != nil:
		edits = append(edits, editList(*args, startsOf(words), was.Args, now.Args, written))
	case len(now.Args) > 0:
		edits[0].text += addedArgs + written.list(now.Args)
	}
	return edits, true, nil
}

// addedArgs is what is between a command and arguments that it did not have.
const addedArgs = `, "args": `

func startsOf(all []span) (at []int) {
	for _, s := range all {
		at = append(at, s.start)
	}
	return at
}

// forms are words as they are written in a file.
type forms map[string]string

func (f forms) word(s string) string {
	if as, ok := f[s]; ok {
		return as
	}
	return quoteKey(s)
}

func (f forms) words(all []string) string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = f.word(w)
	}
	return strings.Join(out, ", ")
}

func (f forms) list(words []string) string { return "[" + f.words(words) + "]" }

// editList returns what changes in a list of words whose elements begin at some
// places. Words that are only put before others, or taken from there, leave those as
// they are written, with their comments.
func editList(list span, at []int, was, now []string, written forms) edit {
	more := len(now) - len(was)
	switch {
	case len(at) != len(was):
	case more > 0 && len(was) > 0 && slices.Equal(now[more:], was):
		return edit{span{at[0], at[0]}, written.words(now[:more]) + ", "}
	case more < 0 && len(now) > 0 && slices.Equal(was[-more:], now):
		return edit{span{at[0], at[-more]}, ""}
	}
	return edit{list, written.list(now)}
}

// apply returns a document with its parts replaced.
func apply(doc []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return b.start - a.start })
	out := bytes.Clone(doc)
	for _, e := range edits {
		out = slices.Concat(out[:e.start], []byte(e.text), out[e.end:])
	}
	return out
}

package host

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
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
// every key. change returns the new command, and false for one that is to stay;
// servers without a command are left out. changed are the names.
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
		return nil, nil, errors.New("cannot be changed without breaking it; change it by hand")
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
		return nil, errors.New("the list of servers is not an object")
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
	for i := range all {
		m := &all[i]
		raw := text[m.start:m.end]
		switch m.name {
		case "command":
			command, err = &m.span, json.Unmarshal(raw, &was.Command)
		case "args":
			args, err = &m.span, json.Unmarshal(raw, &was.Args)
		}
		if err != nil {
			return nil, false, fmt.Errorf("its %s is not what a client reads", m.name)
		}
	}
	if command == nil || was.Command == "" {
		return nil, false, nil
	}
	now, did := change(was)
	if !did {
		return nil, false, nil
	}
	edits = []edit{{*command, quoteKey(now.Command)}}
	switch list := quotedList(now.Args); {
	case args != nil:
		edits = append(edits, edit{*args, list})
	case len(now.Args) > 0:
		edits[0].text += `, "args": ` + list
	}
	return edits, true, nil
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteKey(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
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

// editTOML is [EditServers] for a table of tables. Its lines are found by their
// form, so what comes out is read again: it must be what was meant.
func editTOML(doc []byte, table string, change func(ServerCommand) (ServerCommand, bool)) (out []byte, changed []string, err error) {
	broken := errors.New("is not valid TOML")
	var want map[string]any
	if toml.Unmarshal(doc, &want) != nil {
		return nil, nil, broken
	}
	servers, _ := want[table].(map[string]any)
	commands := map[string]ServerCommand{}
	for name, v := range servers {
		server, _ := v.(map[string]any)
		was := ServerCommand{Name: name}
		was.Command, _ = server["command"].(string)
		list, _ := server["args"].([]any)
		for _, arg := range list {
			text, ok := arg.(string)
			if !ok {
				return nil, nil, fmt.Errorf("the server %q: its args are not what a client reads", name)
			}
			was.Args = append(was.Args, text)
		}
		now, did := change(was)
		if was.Command == "" || !did {
			continue
		}
		commands[name], changed = now, append(changed, name)
		server["command"] = now.Command
		if delete(server, "args"); len(now.Args) > 0 || list != nil {
			words := []any{}
			for _, arg := range now.Args {
				words = append(words, arg)
			}
			server["args"] = words
		}
	}
	slices.Sort(changed)
	out = []byte(editLines(string(doc), table, commands))
	var got map[string]any
	if toml.Unmarshal(out, &got) != nil || !reflect.DeepEqual(want, got) {
		return nil, nil, errors.New("is written in a way that shield cannot change; change it by hand")
	}
	return out, changed, nil
}

var tableHead = regexp.MustCompile(`^\s*\[\s*([A-Za-z0-9_-]+)\s*(?:\.\s*("[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+))?\s*(.*)\]`)

// editLines replaces the lines of command and args below the heads of tables.
func editLines(doc, table string, commands map[string]ServerCommand) string {
	var b strings.Builder
	lines := strings.SplitAfter(doc, "\n")
	var now *ServerCommand
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := tableHead.FindStringSubmatch(line); m != nil {
			now = nil
			if c, ok := commands[strings.Trim(m[2], `"'`)]; ok && m[1] == table && m[3] == "" {
				now = &c
			}
		}
		key, _, _ := strings.Cut(line, "=")
		if now == nil || strings.TrimSpace(key) != "command" && strings.TrimSpace(key) != "args" {
			b.WriteString(line)
			continue
		}
		end := strings.TrimLeft(line, "\r\n")
		for toml.Unmarshal([]byte(end), new(map[string]any)) != nil && i+1 < len(lines) {
			i++
			end += lines[i]
		}
		if strings.TrimSpace(key) == "args" {
			continue // it stands behind the command
		}
		eol := "\n"
		if strings.HasSuffix(end, "\r\n") {
			eol = "\r\n"
		}
		b.WriteString(key + "= " + quoteKey(now.Command) + eol)
		if len(now.Args) > 0 {
			b.WriteString(strings.Replace(key, "command", "args", 1) + "= " + quotedList(now.Args) + eol)
		}
	}
	return b.String()
}

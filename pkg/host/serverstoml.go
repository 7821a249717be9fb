package host

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
)

// editTOMLServers is [EditServers] for a TOML table of tables. It edits the text line by line with regular
// expressions, so it parses the output again and returns an error if that is not the intended
// change.
func editTOMLServers(doc []byte, table string, change func(ServerCommand) (ServerCommand, bool)) (out []byte, changed []string, err error) {
	broken := errors.New("is not valid TOML; correct it")
	var want map[string]any
	if toml.Unmarshal(doc, &want) != nil {
		return nil, nil, broken
	}
	servers, _ := want[table].(map[string]any)
	commands := map[string]serverCommandReplacement{}
	for name, v := range servers {
		server, _ := v.(map[string]any)
		was := ServerCommand{ServerName: name}
		was.Command, _ = server["command"].(string)
		list, _ := server["args"].([]any)
		for _, arg := range list {
			text, ok := arg.(string)
			if !ok {
				return nil, nil, fmt.Errorf("the server %q: its args have a type that the client does not read; correct them", name)
			}
			was.Args = append(was.Args, text)
		}
		now, did := change(was)
		if was.Command == "" || !did {
			continue
		}
		commands[name], changed = serverCommandReplacement{was, now}, append(changed, name)
		server["command"] = now.Command
		words := []any{}
		for _, arg := range now.Args {
			words = append(words, arg)
		}
		server["args"] = words
	}
	sorted.SortStrings(changed)
	out = []byte(replaceServerCommandLines(string(doc), table, commands))
	var got map[string]any
	if toml.Unmarshal(out, &got) != nil || !reflect.DeepEqual(withoutEmptyServerArgs(want, table), withoutEmptyServerArgs(got, table)) {
		return nil, nil, errors.New("has a form that shield cannot edit; edit it by hand")
	}
	return out, changed, nil
}

// withoutEmptyServerArgs removes empty argument lists from a document, since they are equivalent to none.
func withoutEmptyServerArgs(doc map[string]any, table string) map[string]any {
	servers, _ := doc[table].(map[string]any)
	for _, v := range servers {
		server, _ := v.(map[string]any)
		if list, ok := server["args"].([]any); ok && len(list) == 0 {
			delete(server, "args")
		}
	}
	return doc
}

var tableHeaderPattern = prefilter.LazyRegexp(`^\s*\[\s*([A-Za-z0-9_-]+)\s*(?:\.\s*("[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+))?\s*(.*)\]`)

// serverCommandReplacement is an old and a new command.
type serverCommandReplacement struct{ oldCommand, newCommand ServerCommand }

// replaceServerCommandLines replaces the commands and arguments below table headers.
func replaceServerCommandLines(doc, table string, commands map[string]serverCommandReplacement) string {
	var b strings.Builder
	lines := strings.SplitAfter(doc, "\n")
	var c *serverCommandReplacement
	var written quotedFormByWord
	added := "" // the args line that shield writes if a command has no args line; an equal line was written by shield
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := tableHeaderPattern().FindStringSubmatch(line); m != nil {
			c, added = nil, ""
			if of, ok := commands[strings.Trim(m[2], `"'`)]; ok && m[1] == table && m[3] == "" {
				c, written = &of, readQuotedWords(lines[i+1:])
			}
		}
		key, _, _ := strings.Cut(line, "=")
		name := strings.TrimSpace(key)
		if c == nil || name != "command" && name != "args" {
			b.WriteString(line)
			continue
		}
		for toml.Unmarshal([]byte(strings.TrimLeft(line, "\r\n")), new(map[string]any)) != nil && i+1 < len(lines) {
			i++
			line += lines[i]
		}
		switch {
		case name == "command":
			b.WriteString(replaceTOMLCommandValue(line, len(key)+1, written.quote(c.newCommand.Command)))
			args := strings.Replace(key, "command", "args", 1) + "= "
			if added = args + written.quoteAsArray(c.oldCommand.Args) + lineEnding(line); len(c.oldCommand.Args) == 0 && len(c.newCommand.Args) > 0 {
				b.WriteString(args + written.quoteAsArray(c.newCommand.Args) + lineEnding(line))
			}
		case len(c.oldCommand.Args) == 0, len(c.newCommand.Args) == 0 && line == added: // drop the args line: it was empty, or shield had added it
		default:
			list, at := findArgsArray([]byte(line), len(key)+1)
			b.Write(applyEdits([]byte(line), []textEdit{argListEdit(list, at, c.oldCommand.Args, c.newCommand.Args, written)}))
		}
	}
	return b.String()
}

// readQuotedWords returns the quoted strings in the lines of a TOML table, by the words for which they stand. It
// stops at the header of the next table.
func readQuotedWords(lines []string) quotedFormByWord {
	out := quotedFormByWord{}
	for _, line := range lines {
		if tableHeaderPattern().MatchString(line) {
			break
		}
		for rest := []byte(line); len(rest) > 0; {
			end := quotedWordEndOffset(rest, 0)
			if end < 0 {
				rest = rest[1:]
				continue
			}
			var v struct{ V string }
			if toml.Unmarshal(append([]byte("V = "), rest[:end]...), &v) == nil {
				out[v.V] = string(rest[:end])
			}
			rest = rest[end:]
		}
	}
	return out
}

func lineEnding(line string) string {
	if strings.HasSuffix(line, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// replaceTOMLCommandValue replaces the value in the line of a TOML file that sets the command of an MCP server.
// The old value begins at the offset from.
func replaceTOMLCommandValue(line string, from int, command string) string {
	from += len(line[from:]) - len(strings.TrimLeft(line[from:], " \t"))
	if end := quotedWordEndOffset([]byte(line), from); end > 0 {
		return line[:from] + command + line[end:]
	}
	return line[:from] + command + lineEnding(line)
}

// findArgsArray returns the position of the list of words at or after from, and the offset of each word; no
// offsets if the list has an unknown form.
func findArgsArray(text []byte, from int) (list span, elementOffsets []int) {
	list = span{from, len(text)}
	for i, open := from, false; i < len(text); {
		switch c := text[i]; {
		case c == '[' && !open:
			list.start, open = i, true
			i++
		case c == ']' && open:
			list.end = i + 1
			return list, elementOffsets
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case strings.IndexByte(" \t\r\n,", c) >= 0:
			i++
		default:
			elementOffsets = append(elementOffsets, i)
			if i = quotedWordEndOffset(text, i); i < 0 {
				return span{list.start, len(bytes.TrimRight(text, "\r\n"))}, nil
			}
		}
	}
	return list, nil
}

// quotedWordEndOffset returns the offset after the quoted word that starts at from; -1 if no
// single-line quoted word starts there.
func quotedWordEndOffset(text []byte, from int) int {
	m := quotedWordPattern().Find(text[from:])
	if m == nil || bytes.HasPrefix(text[from:], []byte(`"""`)) || bytes.HasPrefix(text[from:], []byte("'''")) {
		return -1
	}
	return from + len(m)
}

var quotedWordPattern = prefilter.LazyRegexp(`^(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')`)

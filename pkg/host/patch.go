package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// patched is the jq filter that returns the actions of a patch in the form of
// apply_patch, as an array of {type, payload}. The models of several hosts write
// patches in it. What is not surely of that form is an error.
func patched(v any, _ []any) any {
	text, ok := v.(string)
	if !ok {
		return errors.New("the patch is not a string; send it as text")
	}
	actions, err := readPatch(text)
	if err != nil {
		return fmt.Errorf("the patch cannot be read: %w", err)
	}
	return actions
}

// headers are the lines that begin the part of a file in a patch.
var headers = []string{"*** Add File", "*** Update File", "*** Delete File", "*** Move to"}

func readPatch(text string) ([]any, error) {
	body, begins := strings.CutPrefix(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "*** Begin Patch\n")
	body, ends := strings.CutSuffix("\n"+body, "\n*** End Patch")
	if !begins || !ends {
		return nil, errors.New(`it does not begin with "*** Begin Patch" and end with "*** End Patch"`)
	}
	added := map[string]bool{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "+") {
			added[strings.TrimSpace(line[1:])] = true
		}
	}
	var actions []any
	var content map[string]any // the payload that the lines belong to; nil before the first file
	add := func(typ string, payload map[string]any) {
		content = payload
		actions = append(actions, map[string]any{"type": typ, "payload": payload})
	}
	for _, line := range strings.Split(body, "\n") {
		// Some hosts read a header behind spaces, too.
		head, name, _ := strings.Cut(strings.TrimSpace(line), ": ")
		name = strings.TrimSpace(name)
		isHead := slices.Contains(headers, head)
		if isHead && name == "" {
			return nil, errors.New("a file of the patch has no name; write it")
		}
		switch {
		case isHead && head == "*** Delete File":
			add("delete_file", map[string]any{"path": name})
		case isHead && head == "*** Move to":
			if content["content"] == nil {
				return nil, errors.New("a move of the patch names no target; write it")
			}
			add("move_file", map[string]any{"source": content["path"], "destination": name})
			add("write_file", map[string]any{"path": name, "content": ""})
		case isHead:
			add("write_file", map[string]any{"path": name, "content": ""})
		case strings.HasPrefix(line, "***") && strings.TrimSpace(line) != "*** End of File":
			return nil, errors.New("the patch has an unknown line that begins with ***; correct it")
		case content == nil && strings.TrimSpace(line) != "":
			return nil, errors.New("the patch has a line before its first file; remove it")
		case strings.HasPrefix(line, "+") && content["content"] != nil:
			content["content"] = content["content"].(string) + line[1:] + "\n"
		case strings.HasPrefix(line, "-") && content["content"] != nil && !added[strings.TrimSpace(line[1:])]: // a moved file is not deleted
			gone, _ := content["old_string"].(string)
			content["old_string"] = gone + line[1:] + "\n"
		}
	}
	if len(actions) == 0 {
		return nil, errors.New("the patch changes no file; name one")
	}
	return actions, nil
}

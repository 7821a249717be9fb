package recipe

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
)

// packageScriptCodeBlocks returns the scripts and tasks of package.json, composer.json or deno.json
// that goals name, with their pre and post scripts. If goals is nil, it returns all commands in the
// file.
func packageScriptCodeBlocks(text string, goals []string) []CodeBlock {
	var file map[string]any
	if json.Unmarshal([]byte(stripJSONComments(text)), &file) != nil {
		if goals != nil {
			return nil
		}
		return jsonFragmentCodeBlocks(text)
	}
	if goals == nil {
		var out []string
		collectJSONCommands(file, "", 0, &out)
		return shellCodeBlocks(out...)
	}
	scripts := map[string]any{}
	for _, key := range [...]string{"scripts", "tasks"} {
		if m, ok := file[key].(map[string]any); ok {
			maps.Copy(scripts, m)
		}
	}
	var out []string
	for _, goal := range goals {
		for _, name := range [...]string{"pre" + goal, goal, "post" + goal} {
			collectJSONCommands(scripts[name], "scripts", 0, &out)
		}
	}
	return shellCodeBlocks(out...)
}

// collectJSONCommands finds commands in JSON: the texts of scripts and tasks, and objects with a command and arguments.
func collectJSONCommands(v any, parentKey string, depth int, out *[]string) {
	if depth > 32 || len(*out) >= maxCodeBlocks {
		return
	}
	switch v := v.(type) {
	case string:
		if parentKey == "scripts" {
			*out = append(*out, v)
		}
	case []any:
		for _, e := range v {
			collectJSONCommands(e, parentKey, depth+1, out)
		}
	case map[string]any:
		text, taken := v["command"].(string)
		if taken {
			if args, ok := v["args"].([]any); ok {
				words := []string{}
				for _, a := range args {
					if s, ok := a.(string); ok {
						words = append(words, s)
					}
				}
				text += " " + quoteWords(words)
			}
			*out = append(*out, text)
		}
		for _, key := range sorted.Keys(v) {
			if taken && (key == "command" || key == "args") {
				continue
			}
			down := parentKey
			switch key {
			case "scripts", "husky", "hooks", "lint-staged", "simple-git-hooks", "postCreateCommand", "postStartCommand", "initializeCommand", "onCreateCommand", "postAttachCommand", "updateContentCommand":
				down = "scripts"
			case "tasks":
				if _, ok := v[key].(map[string]any); ok {
					down = "scripts"
				}
			}
			collectJSONCommands(v[key], down, depth+1, out)
		}
	}
}

var jsonFragmentStringMemberPattern = prefilter.LazyRegexp(`"[\w:.@/-]+"\s*:\s*("(?:[^"\\\n]|\\.)*")`)

// jsonFragmentCodeBlocks returns, as shell steps, the string values in a fragment of a JSON file with
// scripts, such as package.json, that contain a space, | or a semicolon.
func jsonFragmentCodeBlocks(text string) []CodeBlock {
	var out []string
	for _, m := range jsonFragmentStringMemberPattern().FindAllStringSubmatch(text, -1) {
		var value string
		if json.Unmarshal([]byte(m[1]), &value) == nil && strings.ContainsAny(value, " |;") {
			out = append(out, value)
		}
	}
	return shellCodeBlocks(out...)
}

// stripJSONComments removes comments and trailing commas, which editors allow in JSON. Strings stay unchanged.
func stripJSONComments(text string) string {
	out := make([]byte, 0, len(text))
	comma := -1 // index of the last comma in out, if only white space follows
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case c == '"':
			end := i + len(jsonStringPattern().FindString(rest))
			out = append(out, text[i:end]...)
			i, comma = end-1, -1
			continue
		case strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			i += len(line) - 1
			continue
		case strings.HasPrefix(rest, "/*"):
			note, _, _ := strings.Cut(rest, "*/")
			i += len(note) + 1
			continue
		case c == ',':
			comma = len(out)
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case strings.IndexByte(" \t\r\n", c) < 0:
			comma = -1
		}
		out = append(out, text[i])
	}
	return string(out)
}

// jsonStringPattern matches a JSON string, or the start of one.
var jsonStringPattern = prefilter.LazyRegexp(`^"(?:[^"\\]|\\.)*"?`)

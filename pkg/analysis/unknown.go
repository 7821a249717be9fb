package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// unknown adds the effects that the texts of an unknown tool's payload suggest,
// and always a dynamic effect.
func (c *Case) unknown() {
	left := maxLeaves
	c.leaves("", c.Action.Payload, &left)
	if left < 0 {
		c.unexamined("the payload has more than 256 texts")
	}
	c.dynamic(effect.CauseTool, "the action type is unknown")
}

// leaves examines each text of a payload, in the order of field names.
func (c *Case) leaves(field string, v any, left *int) {
	if *left < 0 {
		return
	}
	switch v := v.(type) {
	case string:
		if *left--; *left >= 0 && v != "" {
			c.leaf(field, v)
		}
	case []any:
		if isCommand(field) && len(v) > 0 && !slices.ContainsFunc(v, func(x any) bool { _, isText := x.(string); return !isText }) {
			*left--
			c.run(argv(v), &c.place, false)
			return
		}
		for _, item := range v {
			c.leaves(field, item, left)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			c.leaves(name, v[name], left)
		}
	}
}

// leaf adds the effects that one text suggests by its field's name and its
// content.
func (c *Case) leaf(field, text string) {
	switch {
	case isCommand(field):
		c.run(text, &c.place, false)
	case isURL(text) || named(field, "url", "uri", "endpoint", "webhook", "href"):
		c.url(text)
	case named(field, "host", "hostname", "server", "domain"):
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.Connect, Host: effect.Host(text)})
	case looksLikePath(text) || len(text) <= 4096 && strings.IndexByte(text, '\n') < 0 &&
		named(field, "path", "file", "dir", "folder", "directory", "filename", "source", "destination", "src", "dst", "dest", "target", "output", "cwd", "root"):
		c.path(effect.ReadFile, text, false)
		c.path(effect.WriteFile, text, false)
	}
}

// isCommand reports whether a field of an unknown tool contains a command or code.
func isCommand(field string) bool {
	return named(field, "command", "cmd", "commands", "script", "code", "shell", "argv", "exec", "run", "bash", "powershell", "program", "entrypoint")
}

// named reports whether a field is one of some names, or ends in one of them like
// "outputPath" and "log_file".
func named(field string, names ...string) bool {
	field = strings.ToLower(field)
	for _, name := range names {
		if strings.HasSuffix(strings.TrimSuffix(field, "s"), strings.TrimSuffix(name, "s")) && (len(name) > 3 || field == name || strings.HasSuffix(field, "_"+name) || strings.HasSuffix(field, "-"+name) || name == "url" || name == "uri" || name == "dir") {
			return true
		}
	}
	return false
}

func isURL(text string) bool {
	i := strings.Index(text, "://")
	return i > 0 && i < 16 && strings.IndexByte(text, ' ') < 0
}

// looksLikePath reports whether a text can only be a path.
func looksLikePath(text string) bool {
	if len(text) > 4096 || strings.IndexByte(text, '\n') >= 0 {
		return false
	}
	for _, head := range [...]string{"/", "~/", "./", "../", `\\`, `.\`, `..\`, `~\`, "$HOME", "${HOME}", "%USERPROFILE%", "$env:", "file:"} {
		if len(text) >= len(head) && strings.EqualFold(text[:len(head)], head) {
			return true
		}
	}
	return text == "~" || len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') && 'a' <= text[0]|0x20 && text[0]|0x20 <= 'z'
}

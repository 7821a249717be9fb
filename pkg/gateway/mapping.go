package gateway

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A Server describes the MCP server behind a gateway.
type Server struct {
	Name                   string   // for notices, the log and action types
	KnownServerTableKey    string   // key in the table of known servers; "" if not there
	ToolArgPathBaseFolders []string // absolute folders that relative paths are resolved against, if the server is given any
}

// A knownServer is an MCP server in the table knownServers, which has the action types of the server's tools.
type knownServer struct {
	name                   string
	packages               []string // package names that identify the server on a command line
	argvOperandsAreFolders bool     // the operands on the server's command line are the folders that the server gives access to
	tools                  []knownTool
}

// A knownTool is the name of an MCP tool and the action that a call of it performs. actionType is an action
// type, for example "write_file". After a space, a template for an HTTP request or a command can follow, for
// example "execute_command psql -c {sql}".
type knownTool struct{ name, actionType string }

// A toolParameterShape is a set of tool parameters with a known meaning. The tool must require one
// name of each list in requiredNameAlternatives; all its other parameters must be in optionalNames.
type toolParameterShape struct {
	actionType               string
	requiredNameAlternatives [][]string
	optionalNames            []string
}

// methodHandling returns how requests of a method are handled: "pass", "list" or "judge"; "" if the
// method is unknown.
func methodHandling(method string) string {
	for _, c := range methodClasses {
		if slices.Contains(c.methods, method) {
			return c.class
		}
	}
	return ""
}

// toolActionType returns the action type of a tool, from the type that a person gave it, the server's
// package, or the tool's parameters; "" if unknown. sure is false if only the parameters show it.
func toolActionType(t *tool, s *Server, acceptedActionType string) (actionType string, sure bool) {
	if acceptedActionType != "" {
		return acceptedActionType, true
	}
	for _, k := range knownServers {
		if k.name != s.KnownServerTableKey {
			continue
		}
		if i := slices.IndexFunc(k.tools, func(kt knownTool) bool { return kt.name == t.name }); i >= 0 {
			return k.tools[i].actionType, true
		}
	}
	schema := objectMember(t.parsedDefinition, "inputSchema")
	properties := objectMember(schema, "properties")
	required, _ := schema["required"].([]any)
	for _, sh := range shapes {
		if sh.matches(properties, required) {
			return sh.actionType, false
		}
	}
	return "", false
}

// matches reports whether parameters are those of the shape and no others.
func (sh *toolParameterShape) matches(properties object, required []any) bool {
	used := map[string]bool{}
	for _, names := range sh.requiredNameAlternatives {
		i := slices.IndexFunc(names, func(name string) bool {
			return stringMember(objectMember(properties, name), "type") == "string" && slices.Contains(required, any(name))
		})
		if i < 0 {
			return false
		}
		used[names[i]] = true
	}
	for name := range properties {
		if !used[name] && !slices.Contains(sh.optionalNames, strings.ToLower(name)) {
			return false
		}
	}
	return true
}

// isModifyingTool reports whether a tool is known to modify something.
func isModifyingTool(t *tool, s *Server) bool {
	action, _ := toolActionType(t, s, "")
	kind, _, _ := strings.Cut(action, " ")
	for _, prefix := range []string{"write_", "delete_", "move_", "copy_", "create_", "send_", "execute_", "git_add", "git_commit", "git_checkout", "git_reset", "memory_write", "memory_delete"} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// fillActionFromToolCall fills in the action of a tool call. acceptedActionType is the action type
// that a person chose for the tool, or "".
func (g *Gateway) fillActionFromToolCall(p *proposedAction, t *tool, acceptedActionType string, arguments object) error {
	action, sure := toolActionType(t, &g.opts.Server, acceptedActionType)
	kind, template, _ := strings.Cut(action, " ")
	p.actionType, p.payload = kind, arguments
	properties := objectMember(objectMember(t.parsedDefinition, "inputSchema"), "properties")
	stray := !sure && slices.ContainsFunc(slices.Collect(maps.Keys(arguments)), func(name string) bool { return properties[name] == nil })
	if template != "" {
		if p.payload = fillPayloadTemplate(template, arguments); p.payload == nil {
			kind = ""
		}
	}
	if kind == "" || stray {
		p.actionType, p.payload = g.serverSpecificActionType(t.name), arguments
	}
	if !sure && hasHint(t.parsedDefinition, "destructiveHint") {
		p.minJudgementTier = 2
	}
	return g.setWorkingDir(p)
}

// setWorkingDir sets the folder that the relative paths of a proposal are resolved against.
func (g *Gateway) setWorkingDir(p *proposedAction) error {
	if dir := stringMember(p.payload, "repo_path"); strings.HasPrefix(p.actionType, "git_") && filepath.IsAbs(dir) {
		p.cwd = dir
	}
	switch folders := g.opts.Server.ToolArgPathBaseFolders; len(folders) {
	case 0:
	case 1:
		p.cwd = folders[0]
	default:
		for _, name := range []string{"path", "source", "destination"} {
			if path := stringMember(p.payload, name); path != "" && !filepath.IsAbs(path) && path[0] != '~' {
				return fmt.Errorf("the argument %s is a relative path, and the MCP server works in %d folders; write an absolute path", name, len(folders))
			}
		}
		paths, _ := p.payload["paths"].([]any)
		for _, path := range paths {
			if s, _ := path.(string); !filepath.IsAbs(s) {
				return fmt.Errorf("the argument paths has relative paths, and the MCP server works in %d folders; write absolute paths", len(folders))
			}
		}
	}
	return nil
}

// fillPayloadTemplate returns the payload for a template filled with arguments: a request ("METHOD URL"; other
// arguments become the body or, for GET, the query) or the words of a command. It returns nil if an
// argument is missing.
func fillPayloadTemplate(template string, arguments object) object {
	rest := maps.Clone(arguments)
	verb, address, isURL := strings.Cut(template, " ")
	isURL = isURL && strings.HasPrefix(address, "https://")
	if !isURL {
		address = template
	}
	out, complete := replacePlaceholders(address, func(name string) (string, bool) {
		v, ok := arguments[name]
		delete(rest, name)
		if !ok {
			return "", false
		}
		if isURL {
			return escapeURLPath(argumentText(v)), true
		}
		return command.Quote(argumentText(v)), true
	})
	switch {
	case !complete:
		return nil
	case !isURL:
		rest["command"] = out
		return rest
	case verb == "GET":
		values := url.Values{}
		for name, v := range rest {
			values.Set(name, argumentText(v))
		}
		if len(values) > 0 {
			out += "?" + values.Encode()
		}
		return object{"url": out, "method": verb}
	case len(rest) == 0:
		return object{"url": out, "method": verb}
	}
	return object{"url": out, "method": verb, "body": rest}
}

// replacePlaceholders replaces {name} in a text.
func replacePlaceholders(template string, value func(name string) (string, bool)) (out string, complete bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, after, _ := strings.Cut(rest, "}")
		v, ok := value(name)
		if !ok {
			return "", false
		}
		b.WriteString(v)
		template = after
	}
}

// escapeURLPath escapes the characters that would end a URL's path; slashes stay.
func escapeURLPath(s string) string {
	parts := strings.Split(s, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// argumentText returns an argument as text.
func argumentText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case jsontext.Value:
		return string(v)
	}
	return string(canonjson.AppendValue(nil, v))
}

// NewServer returns the server that a command line starts in folder dir; name is the user's name for
// it, "" to derive it from the command line.
func NewServer(argv []string, dir, name string) Server {
	s := Server{Name: name}
	at := -1
	for _, k := range knownServers {
		for i, arg := range argv {
			if slices.Contains(k.packages, packageName(arg)) {
				s.KnownServerTableKey, at = k.name, i
				if k.argvOperandsAreFolders {
					s.ToolArgPathBaseFolders = absoluteOperandPaths(argv[i+1:], dir)
				}
				break
			}
		}
		if at >= 0 {
			break
		}
	}
	if s.Name == "" {
		s.Name = s.KnownServerTableKey
	}
	if s.Name == "" {
		s.Name = likelyServerName(argv)
	}
	s.Name = toActionTypeName(s.Name)
	return s
}

// packageName returns the package in an argument without version, registry and folders.
func packageName(arg string) string {
	arg = filepath.ToSlash(arg)
	if _, after, ok := strings.Cut(arg, "node_modules/"); ok {
		parts := strings.SplitN(strings.TrimPrefix(after, ".bin/"), "/", 3)
		if arg = parts[0]; strings.HasPrefix(arg, "@") && len(parts) > 1 {
			arg += "/" + parts[1]
		}
	}
	if strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") {
		arg = path.Base(arg)
	}
	at := strings.LastIndexByte(arg, '/') + 1
	if i := strings.IndexAny(arg[at:], "@:="); i > 0 { // a version
		arg = arg[:at+i]
	}
	return strings.TrimPrefix(arg, "ghcr.io/")
}

// absoluteOperandPaths returns the arguments that are not options, as absolute paths: the folders that the server
// is given.
func absoluteOperandPaths(args []string, baseFolder string) (out []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(baseFolder, arg)
		}
		out = append(out, arg)
	}
	return out
}

// likelyServerName returns the likely name of the server: the first operand of a package runner or interpreter,
// else the program.
func likelyServerName(argv []string) string {
	for i, arg := range argv {
		name := packageName(arg)
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		if i == 0 && slices.Contains(starters, base) || strings.HasPrefix(arg, "-") || i > 0 && slices.Contains([]string{"run", "exec", "tool", "x", "dlx"}, arg) {
			continue
		}
		return base
	}
	return "server"
}

// toActionTypeName returns a name fit for an action type.
func toActionTypeName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', 'A' <= r && r <= 'Z', r == '-', r == '_':
			return r
		}
		return '-'
	}, s)
	for strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "__", "_")
	}
	if s = strings.Trim(s, "-_"); s == "" {
		return "server"
	}
	return s[:min(len(s), 64)]
}

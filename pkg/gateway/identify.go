package gateway

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/analysis"
)

// packagedServerToolClasses is an entry of the table of tool classes that shield ships: the packages that contain one
// MCP server, and the class of each of its tools.
type packagedServerToolClasses struct {
	packageNames []string
	classByTool  map[string]string // tool classes, by the tool's name
}

// PackagedServerToolClass returns the class that shield ships for a tool of the server that a command line starts; ""
// if it ships none, or if the command line can start anything but a published package (a folder, a URL
// or a shell).
func PackagedServerToolClass(argv []string, toolName string) analysis.ToolClass {
	argv, _ = UnwrapServerCommand(argv)
	at := packageIndex(argv)
	if at < 0 {
		return ""
	}
	name := packageName(argv[at])
	for i := range shippedClasses {
		if s := &shippedClasses[i]; slices.Contains(s.packageNames, name) {
			return analysis.ToolClass(s.classByTool[toolName])
		}
	}
	return ""
}

// packageRunners are programs that run a package by its name (such as npx), with the words that
// precede the name.
var packageRunners = map[string][]string{
	"npx": {}, "bunx": {}, "uvx": {}, "pipx": {"run"}, "uv": {"tool", "run"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "npm": {"exec"},
}

// packageIndex returns the index of the package name in the command line of a package runner; -1 if the
// command line can run something else.
func packageIndex(argv []string) int {
	if len(argv) < 2 {
		return -1
	}
	runner := strings.TrimSuffix(path.Base(filepath.ToSlash(argv[0])), ".exe")
	words, ok := packageRunners[runner]
	if !ok {
		return -1
	}
	for i, arg := range argv[1:] {
		switch {
		case arg == "-y" || arg == "--yes" || arg == "-q" || arg == "--quiet" || arg == "--":
		case len(words) > 0 && arg == words[0]:
			words = words[1:]
		case strings.HasPrefix(arg, "-") || len(words) > 0 || isPathOrURL(arg):
			return -1
		case runner == "npm" && hasOptionBeforeDoubleDash(argv[i+2:]):
			return -1 // npm exec takes options, such as --package, also behind the name
		default:
			return i + 1
		}
	}
	return -1
}

// hasOptionBeforeDoubleDash reports whether one of the words before "--" is an option.
func hasOptionBeforeDoubleDash(words []string) bool {
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
}

// isPathOrURL reports whether a package name can be a folder, a file or a URL.
func isPathOrURL(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.ContainsAny(name, `\: `) || strings.HasSuffix(name, ".tgz") ||
		strings.Contains(name, "node_modules") || strings.Count(name, "/") > 1 || strings.Contains(name, "/") && !strings.HasPrefix(name, "@")
}

// An AcceptedTool is the stored information about an accepted tool of a server.
type AcceptedTool struct {
	CombinedServerAndToolHash string // identifies the server's command line, the tool and its definition
	Description               string // the server's description of the tool
}

// LoadAcceptedTool returns a tool that a person has accepted, or that was on the server's first list, from the
// server's pins; ok is false if there is none, or if the server no longer lists it.
func LoadAcceptedTool(stateDir string, argv []string, name string) (k AcceptedTool, ok bool) {
	parts := []any{}
	for _, arg := range argv {
		parts = append(parts, arg)
	}
	id := hashParts(parts...)[:32]
	f, err := readPins(filepath.Join(PinFolder(stateDir), id+".json"))
	if err != nil || f.PinFileID != id {
		return AcceptedTool{}, false
	}
	pin, pinned := f.Tools[name]
	if !pinned || pin.Gone {
		return AcceptedTool{}, false
	}
	if v, err := canonjson.ParseValue(pin.Definition, maxFrameJSONDepth); err == nil {
		definition, _ := v.(object)
		k.Description = strings.Join(strings.Fields(stringMember(definition, "description")), " ")
	}
	k.CombinedServerAndToolHash = hashParts(id, name, pin.DefinitionHash)
	return k, true
}

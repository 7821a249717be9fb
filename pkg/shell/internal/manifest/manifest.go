// Package manifest reads from package manifests which programs an installation of the package adds. It parses only
// as much of each format as needed, and reports if code or other files decide the names.
package manifest

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"sync"
)

// NPMProgramNames returns the names of the programs that a package.json declares.
func NPMProgramNames(packageJSON string) (names []string, isComplete bool) {
	var p struct {
		Name        string          `json:"name"`
		Bin         json.RawMessage `json:"bin"`
		Directories struct {
			Bin string `json:"bin"`
		} `json:"directories"`
	}
	if json.Unmarshal([]byte(packageJSON), &p) != nil || p.Directories.Bin != "" {
		return nil, false
	}
	var one string
	var many map[string]json.RawMessage
	switch {
	case len(p.Bin) == 0 || string(p.Bin) == "null":
		return nil, true
	case json.Unmarshal(p.Bin, &one) == nil:
		return []string{path.Base(p.Name)}, true
	case json.Unmarshal(p.Bin, &many) == nil:
		for name := range many {
			names = append(names, path.Base(name))
		}
		return names, true
	}
	return nil, false
}

// PythonProgramNames returns the names of the programs that a pyproject.toml and a setup.cfg
// declare. isComplete is false if the build decides them.
func PythonProgramNames(pyprojectTOML, setupCFG string) (names []string, isComplete bool) {
	isComplete = pyprojectTOML != "" || setupCFG != ""
	eachKey(pyprojectTOML, func(table, key, value string) {
		whole := strings.Trim(table+"."+key, ".")
		for _, scripts := range [...]string{"project.scripts", "project.gui-scripts", "tool.poetry.scripts", "project.entry-points.console_scripts", "tool.flit.scripts", "tool.pdm.scripts"} {
			switch {
			case strings.HasPrefix(whole, scripts+"."):
				names = append(names, strings.TrimPrefix(whole, scripts+"."))
			case whole == scripts: // an inline table
				for _, m := range inlineKeyPattern().FindAllStringSubmatch(value, -1) {
					names = append(names, m[1])
				}
			}
		}
		switch {
		case whole == "build-system.backend-path", strings.Contains(whole, "script-files"), strings.Contains(whole, "shared-scripts"),
			strings.HasSuffix(whole, "dynamic") && (strings.Contains(value, "scripts") || strings.Contains(value, "entry-points")):
			isComplete = false
		}
	})
	section := false
	for line := range strings.Lines(setupCFG) {
		trimmed := strings.TrimSpace(line)
		switch name, _, ok := strings.Cut(trimmed, "="); {
		case strings.HasPrefix(trimmed, "console_scripts"), strings.HasPrefix(trimmed, "gui_scripts"):
			section = true
		case strings.HasPrefix(trimmed, "scripts"):
			isComplete = false
		case section && ok && line != strings.TrimLeft(line, " \t"):
			names = append(names, strings.TrimSpace(name))
		case trimmed != "" && line == strings.TrimLeft(line, " \t"):
			section = false
		}
	}
	return names, isComplete
}

// CargoProgramNames returns the names of the programs that a Cargo.toml declares; files in src/bin add more.
func CargoProgramNames(cargoTOML string) (names []string, hasNames bool) {
	eachKey(cargoTOML, func(table, key, value string) {
		if key == "name" && (table == "package" || table == "bin") {
			names, hasNames = append(names, strings.Trim(value, `"'`)), true
		}
	})
	return names, hasNames
}

// eachKey calls a function for each key of a TOML text that is on its own line.
func eachKey(text string, f func(table, key, value string)) {
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			if name, _, ok := strings.Cut(strings.TrimLeft(line, "["), "]"); ok {
				table = unquoteKey(name)
				continue
			}
		}
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			f(table, unquoteKey(key), strings.TrimSpace(value))
		}
	}
}

// unquoteKey returns a dotted key without quotes and spaces.
func unquoteKey(key string) string {
	return strings.NewReplacer(`"`, "", "'", "", " ", "", "\t", "").Replace(key)
}

// inlineKeyPattern matches a key of an inline table.
var inlineKeyPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`["']?([\w.-]+)["']?\s*=`) })

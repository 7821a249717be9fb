package policy

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shell"
)

// testPlace is where the examples of the presets are judged.
var testPlace = effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}}

// testAnalyzer analyses actions in testPlace.
var testAnalyzer = &analysis.Analyzer{ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, ReplaySession: session.ReplayAndAnalyzeLastAction, DefaultExecutionContext: testPlace}

// testOptions go with testPlace.
func testOptions() Options {
	return Options{FoldersByGlobVariable: map[string][]string{
		"HOME":                {"/home/me"},
		"WORKSPACE":           {"/work/app"},
		"SHIELD":              {"/home/me/.config/shield", "/home/me/.local/state/shield"},
		"SHIELD_PROGRAM":      {"/opt/shield/bin/shield"},
		"SHIELD_POLICY":       {"/work/app/guard/site.yaml"},
		"SHIELD_ABOVE":        {"/home/me/.config"},
		"SHIELD_WAY":          {"/opt/guard/current"},
		"SHIELD_CACHE":        {"/home/me/.cache/shield"},
		"SHIELD_CACHE_PARENT": {"/home/me/.cache"},
	}}
}

// numberText returns a number as payloads hold it.
func numberText(s string) jsontext.Value { return jsontext.Value(s) }

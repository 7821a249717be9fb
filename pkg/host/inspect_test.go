package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// scope returns the first place of a scope.
func (s *HookSettings) scope(name string) *HostSettingsFile {
	return &s.SettingsFiles[slices.IndexFunc(s.SettingsFiles, func(p HostSettingsFile) bool { return p.Scope == name })]
}

// TestInspect holds what a person is told about a settings file who wants to know whether
// the host asks shield before every tool call. What is installed has no fault; each
// change that keeps the host from asking is named.
func TestInspect(t *testing.T) {
	t.Parallel()
	all := settings(t)
	s := all.userPlace()
	installed, err := s.Install(t.Context(), []byte(`{"model":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	const hook = `{"type":"command","command":"/bin/shield hook claude-code"}`
	entry := func(text string) string { return `{"hooks":{"PreToolUse":[` + text + `]}}` }
	for name, c := range map[string]struct {
		scope, doc string
		hooks      int
		want       []string // parts of what is said; none if all is well
	}{
		"installed":                    {"user", string(installed), 1, nil},
		"installed, with a mark":       {"user", "\ufeff" + string(installed), 1, nil},
		"none":                         {"user", `{}`, 0, nil},
		"of another program":           {"user", entry(`{"hooks":[{"type":"command","command":"lint hook claude-code"}]}`), 0, nil},
		"for another host":             {"user", entry(`{"hooks":[{"type":"command","command":"shield hook other"}]}`), 0, nil},
		"at another event":             {"user", `{"hooks":{"PostToolUse":[{"hooks":[` + hook + `]}]}}`, 0, nil},
		"twice":                        {"user", entry(`{"hooks":[` + hook + `]},{"matcher":"*","hooks":[` + hook + `]}`), 2, nil},
		"with settings of its own":     {"user", entry(`{"hooks":[{"type":"command","command":"SHIELD_CONFIG=/x s hook claude-code"}]}`), 1, nil},
		"every tool, said otherwise":   {"user", entry(`{"matcher":".*","hooks":[` + hook + `]}`), 1, nil},
		"some tools":                   {"user", entry(`{"matcher":"Bash","hooks":[` + hook + `]}`), 1, []string{"matcher Bash does not cover all tools"}},
		"a prompt":                     {"user", entry(`{"hooks":[{"type":"prompt","command":"shield hook claude-code"}]}`), 1, []string{"type is not command"}},
		"not waited for":               {"user", entry(`{"hooks":[{"type":"command","command":"shield hook claude-code","async":true}]}`), 1, []string{"it has async"}},
		"on a condition":               {"user", entry(`{"if":"x","hooks":[` + hook + `]}`), 1, []string{"it has if"}},
		"all off":                      {"user", `{"disableAllHooks":true}`, 0, []string{"disableAllHooks switches all hooks off"}},
		"not off":                      {"user", `{"disableAllHooks":false}`, 0, nil},
		"only managed, in managed":     {"managed", `{"allowManagedHooksOnly":true}`, 0, []string{"allowManagedHooksOnly"}},
		"only managed, elsewhere":      {"user", `{"allowManagedHooksOnly":true}`, 0, nil},
		"loads a library":              {"user", `{"env":{"LD_PRELOAD":"/x","HOME":"/y"}}`, 0, []string{"env sets LD_PRELOAD"}},
		"another PATH, of the project": {"project", `{"env":{"PATH":"/x"}}`, 0, []string{"env sets PATH"}},
		"another PATH, of the user":    {"user", `{"env":{"PATH":"/x"}}`, 0, nil},
		"no timeout":                   {"user", entry(`{"hooks":[{"type":"command","command":"shield hook claude-code","timeout":0}]}`), 0, []string{"entry of hooks.PreToolUse is malformed"}},
		"a broken neighbour":           {"user", entry(`{"hooks":[` + hook + `]},{"matcher":7,"hooks":[]}`), 0, []string{"is malformed"}},
		"no list":                      {"user", `{"hooks":{"PreToolUse":{}}}`, 0, []string{"is malformed"}},
		"a wrong type":                 {"user", `{"model":7,"hooks":{"PreToolUse":[{"hooks":[` + hook + `]}]}}`, 0, []string{"model is not of type string"}},
		"wrong permissions":            {"user", `{"permissions":{"allow":"Bash"}}`, 0, []string{"permissions are malformed"}},
		"an unknown mode":              {"user", `{"permissions":{"defaultMode":"yolo"}}`, 0, []string{"permissions are malformed"}},
		"a comment":                    {"user", "// why\n" + string(installed), 0, []string{"comments or trailing commas"}},
		"a comma too many":             {"user", strings.Replace(string(installed), "}", ",}", 1), 0, []string{"comments or trailing commas"}},
	} {
		in := all.scope(c.scope).Inspect(t.Context(), "", []byte(c.doc), nil)
		said := append(in.HostIgnoresFileReasons, in.HookDisablingSettings...)
		for _, h := range in.BeforeToolHooks {
			said = append(said, h.Problems...)
			if !strings.Contains(h.Command, "hook claude-code") || h.TimeoutSeconds <= 0 {
				t.Errorf("%s: hook %+v", name, h)
			}
		}
		if len(in.BeforeToolHooks) != c.hooks || len(said) != len(c.want) {
			t.Errorf("%s: %d hooks, said %q; want %d, %q", name, len(in.BeforeToolHooks), said, c.hooks, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(said[i], want) {
				t.Errorf("%s: said %q, want %q", name, said[i], want)
			}
		}
	}
	for _, doc := range []string{"", "{", "[1", "{}{}", `{"a":1,"a":2}`, "\xff", strings.Repeat("[", 100000), "[]", "null", `"x"`, "7"} {
		if in := s.Inspect(t.Context(), "", []byte(doc), nil); len(in.HostIgnoresFileReasons) == 0 || len(in.BeforeToolHooks) > 0 {
			t.Errorf("%.20q is read as %s", doc, fmt.Sprint(in))
		}
	}
}

// TestInspectMalformedResults holds what a malformed hook for results does to the one
// before a tool: Codex and Droid were seen to ignore the whole file then, and Claude
// Code, Gemini CLI and Qwen Code to run the hook all the same.
func TestInspectMalformedResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		within        bool // hooks
		ignored       bool
	}{
		"claude-code": {"PreToolUse", "PostToolUse", true, false},
		"gemini-cli":  {"BeforeTool", "AfterTool", true, false},
		"qwen-code":   {"PreToolUse", "PostToolUse", true, false},
		"codex":       {"PreToolUse", "PostToolUse", true, true},
		"droid":       {"PreToolUse", "PostToolUse", false, true},
	} {
		s, err := named(t, name).HookSettings(t.Context(), HookCommands{BeforeTool: "shield hook " + name, AfterTool: "shield hook " + name + " # after"}, 60, "/w", "linux")
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{`{}`, `[7]`, `[{"matcher":"*"}]`, `[{"matcher":7,"hooks":[]}]`, `[{"hooks":[{"type":"command","command":5}]}]`} {
			doc := fmt.Sprintf(`{%q:[{"hooks":[{"type":"command","command":"shield hook %s"}]}],%q:%s}`, c.before, name, c.after, bad)
			if c.within {
				doc = `{"hooks":` + doc + `}`
			}
			in := s.userPlace().Inspect(t.Context(), "", []byte(doc), nil)
			if c.ignored != (len(in.HostIgnoresFileReasons) > 0) || c.ignored == (len(in.BeforeToolHooks) == 1 && len(in.BeforeToolHooks[0].Problems) == 0) {
				t.Errorf("%s: %s is read as %+v", name, doc, in)
			}
			if !c.ignored && (len(in.ResultHooks) != 1 || len(in.ResultHooks[0].Problems) != 1) {
				t.Errorf("%s: %s: nothing is said of results: %+v", name, doc, in)
			}
		}
	}
}

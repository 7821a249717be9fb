package host

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const line = `o=$(SHIELD_CONFIG= '/opt/it'\''s/shield' hook NAME --timeout 50s); printf '%s\n' "$o"`

// every calls f with each place that can be edited of each host.
func every(t *testing.T, f func(t *testing.T, s *HookSettings, p *HostSettingsFile)) {
	t.Helper()
	for _, name := range Names() {
		for _, system := range []string{"linux", "darwin", "windows"} {
			s, err := named(t, name).HookSettings(t.Context(), HookCommands{BeforeTool: strings.ReplaceAll(line, "NAME", name), AfterTool: strings.ReplaceAll(line, "NAME", name) + " # after"}, 60, "/w", system)
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.SettingsFiles {
				if p := &s.SettingsFiles[i]; p.CanHaveShieldHookInstalled() && (system == "linux" || p.OnlyOnGOOS == system) {
					t.Run(name+" "+system+" "+p.Scope+" "+p.File, func(t *testing.T) { f(t, s, p) })
				}
			}
		}
	}
}

// TestEveryPlace installs shield for every host in files as people have them: once,
// however often, seen by the inspection, and gone byte for byte.
func TestEveryPlace(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, s *HookSettings, p *HostSettingsFile) {
		ctx := context.Background()
		befores := []string{""}
		switch {
		case len(p.ListEntries) > 0:
			befores = append(befores, "{}", "{\n  // mine\n  \"model\": \"x\"\n}\n", "{\r\n\t\"hooks\": {}\r\n}\r\n", `{"hooks": {"Other": [{"command": "lint"}]}, "version": 1}`, `{"lint": {"PreToolUse": []}, "hooks": {}}`)
		case p.AppendedLines != "":
			befores = append(befores, "a = 1", "a = 1\n[b]\nc = \"x\"\n# end\n")
		}
		for _, before := range befores {
			after, err := p.Install(ctx, []byte(before))
			if err != nil {
				t.Errorf("%q: %v", before, err)
				continue
			}
			if again, err := p.Install(ctx, after); err != nil || string(again) != string(after) {
				t.Errorf("%q: a second installation gives %q, %v; want %q", before, again, err, after)
			}
			if !p.ContainsShieldHook(ctx, after) || p.ContainsShieldHook(ctx, []byte(before)) {
				t.Errorf("%q: not told from %q", before, after)
			}
			if back, err := p.Uninstall(ctx, after, []byte(before)); err != nil || string(back) != before {
				t.Errorf("%q came back as %q, %v", before, back, err)
			}
			if _, err := p.Uninstall(ctx, []byte(before), nil); err == nil {
				t.Errorf("%q: uninstalled what is not there", before)
			}
			if strings.Contains(before, "//") && !p.host.description.AllowsJSONComments {
				continue // the host would not read it
			}
			if p.InitialJSON != "" && before != "" && !strings.Contains(before, "version") {
				continue // nor this
			}
			if p.host.Name == "antigravity" && strings.Contains(before, `"version"`) || p.host.Name != "antigravity" && strings.Contains(before, `"lint": {`) {
				continue // another host's form
			}
			in := p.Inspect(ctx, "/f", after, nil)
			if len(in.HostIgnoresFileReasons)+len(in.HookDisablingSettings) > 0 || p.HasToolHook() != (len(in.BeforeToolHooks) > 0) || p.HasResultHook() != (len(in.ResultHooks) > 0) {
				t.Errorf("%q: %+v", after, in)
			}
			for _, h := range in.BeforeToolHooks {
				if h.Command != strings.ReplaceAll(line, "NAME", p.host.Name) || h.TimeoutSeconds != 60 && h.TimeoutSeconds != 0 || len(h.Problems) > 0 {
					t.Errorf("%q: %+v", after, h)
				}
			}
			for _, h := range in.ResultHooks {
				if h.Command != strings.ReplaceAll(line, "NAME", p.host.Name)+" # after" || h.TimeoutSeconds != 60 && h.TimeoutSeconds != 0 || len(h.Problems) > 0 {
					t.Errorf("%q: %+v", after, h)
				}
			}
		}
	})
}

// TestOlderInstallations holds that an installation of a version that had no hook for
// results is seen as one, is made whole by another, and is gone byte for byte.
func TestOlderInstallations(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, s *HookSettings, p *HostSettingsFile) {
		ctx := context.Background()
		if !p.HasResultHook() || !p.HasToolHook() {
			return
		}
		old := *p
		old.listElements = slices.DeleteFunc(slices.Clone(p.listElements), func(e settingsListElement) bool {
			value, err := encodeCompactJSON(e.value)
			return err != nil || strings.Contains(string(value), "# after")
		})
		optional := regexp.MustCompile(`(?s)@\[.*?@\]`)
		befores := []string{""}
		if text := optional.ReplaceAllString(p.ShieldOwnedFileTemplate, "") + strings.Join(p.ObsoleteLines, ""); text != "" {
			var err error
			if old.filledTemplateText, err = newTemplate(text).fillPlaceholders(strings.ReplaceAll(line, "NAME", p.host.Name), "", 60*p.host.timeoutUnitsPerSecond()); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case p.AppendedLines != "":
			befores = append(befores, "a = 1\n[b]\n")
		case p.ShieldOwnedFileTemplate == "":
			befores = append(befores, "{}", "{\n  \"hooks\": {\n    \"Other\": [1]\n  },\n  \"version\": 1\n}\n")
		}
		for _, before := range befores {
			doc, err := old.Install(ctx, []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			if in := p.Inspect(ctx, "/f", doc, nil); before != "{}" && (len(in.BeforeToolHooks) == 0 || len(in.BeforeToolHooks[0].Problems) > 0 || len(in.ResultHooks) > 0) {
				t.Errorf("%s is read as %+v", doc, in)
			}
			if back, err := p.Uninstall(ctx, doc, []byte(before)); err != nil || string(back) != before {
				t.Errorf("%q came back as %q, %v", before, back, err)
			}
			whole, err := p.Install(ctx, doc)
			if fresh, freshErr := p.Install(ctx, []byte(before)); err != nil || freshErr != nil || string(whole) != string(fresh) {
				t.Errorf("%s became %s, %v; want %s, %v", doc, whole, err, fresh, freshErr)
			}
			if back, err := p.Uninstall(ctx, whole, []byte(before)); err != nil || string(back) != before {
				t.Errorf("%q, installed twice, came back as %q, %v", before, back, err)
			}
			if p.AppendedLines == "" {
				continue
			}
			// An installation that did not know the older one left both.
			both := p.appendBlock(doc, p.filledTemplateText)
			if got, err := p.Install(ctx, both); err != nil || string(got) != string(whole) {
				t.Errorf("%q became %q, %v; want %q", both, got, err, whole)
			}
			if back, err := p.Uninstall(ctx, both, []byte(before)); err != nil || string(back) != before {
				t.Errorf("%q came back as %q, %v", both, back, err)
			}
			changed := []byte(strings.Replace(string(doc), "matcher", "# matcher", 1))
			if got, err := p.Install(ctx, changed); err == nil {
				t.Errorf("%q, which a person has changed, became %q", changed, got)
			}
		}
	})
}

// TestForeignFiles checks that files of others are neither replaced nor read as
// shield's.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, s *HookSettings, p *HostSettingsFile) {
		ctx := context.Background()
		for _, doc := range []string{"#!/bin/sh\nexit 0\n", "export default function () {}\n", `{"hooks": 7}`, "[]", "\x00"} {
			foreign := p.AppendedLines == "" && (len(p.ListEntries) == 0 || p.ListEntries[0].ListKeyPath[0] == "hooks" || doc[0] != '{')
			if got, err := p.Install(ctx, []byte(doc)); err == nil && foreign {
				t.Errorf("%q became %q", doc, got)
			}
			if in := p.Inspect(ctx, "/f", []byte(doc), nil); len(in.BeforeToolHooks) > 0 {
				t.Errorf("%q has hooks: %+v", doc, in)
			}
		}
		if p.ShieldOwnedFileTemplate == "" || p.IsFileWithoutHookCommand() {
			return
		}
		changed := strings.Replace(p.filledTemplateText, "shield", "shield ", 1)
		if p.ShieldOwnedFileTemplate != "" && strings.Contains(p.filledTemplateText, "ask(") {
			changed = strings.Replace(p.filledTemplateText, "await ask(", "void ask(", 1)
		}
		if in := p.Inspect(ctx, "/f", []byte(changed+"\nexit 0\n"), nil); len(in.BeforeToolHooks) > 0 || p.HasToolHook() && len(in.HostIgnoresFileReasons) == 0 || p.HasOnlyResultHook() && len(in.ResultHooks[0].Problems) == 0 {
			t.Errorf("a file that was changed is read as %+v", in)
		}
		if got, err := p.Uninstall(ctx, []byte(changed+"\nexit 0\n"), nil); err == nil {
			t.Errorf("a file that was changed became %q", got)
		}
	})
}

// TestEveryHostFails checks what each host is told where its event cannot be read.
func TestEveryHostFails(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		h := named(t, name)
		for _, in := range []string{"", "null", "[]", "7", `{}`, `{"hook_event_name":"Stop"}`, `{"hook_event_name":"PreToolUse"}`,
			`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":"rm -rf /"}`, `{"event":"tool"}`, `{"event":"tool","tool":"bash","input":[],"id":"1"}`,
			`{"toolName":"bash","toolArgs":7}`, `{"tool_call":{"name":"run_commands","input":7},"hookName":"tool_call"}`} {
			if e, err := h.Event(t.Context(), []byte(in)); err == nil {
				t.Errorf("%s: %s is %+v", name, in, e)
			}
		}
	}
}

// TestDocumented checks that docs/hosts.md names each host and its limits, and has
// a row for each whose program was tested.
func TestDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		h := named(t, name)
		for _, limit := range h.HookLimitationTexts() {
			if !strings.Contains(string(doc), "- **"+h.Title()+"**: "+limit+"\n") {
				t.Errorf("docs/hosts.md lacks a limit of %s: %s", name, limit)
			}
		}
		if row := "| " + h.Title() + " | " + h.EventFormatCitationText() + " |\n"; h.EventFormatCitationText() != "" && !strings.Contains(string(doc), row) {
			t.Errorf("docs/hosts.md lacks %q", row)
		}
		version := h.VerifiedVersion()[strings.LastIndex(h.VerifiedVersion(), " ")+1:]
		if row := "| " + h.Title() + " | " + version + " |"; strings.Contains(string(doc), row) != (version != "") {
			t.Errorf("docs/hosts.md and %s.yaml disagree on the row %q", name, row)
		}
	}
}

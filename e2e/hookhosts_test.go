//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// hosted installs shield for a host, and says for Codex that a person trusts it.
func hosted(t *testing.T, name string) *hooked {
	t.Helper()
	h := newHookedFor(t, name)
	if name == "codex" {
		h.trust(codexBefore, codexAfter)
	}
	return h
}

// trust writes what Codex writes when a person trusts the hooks of events, each given
// as hooks.json and the state name it.
func (h *hooked) trust(events ...[2]string) {
	h.t.Helper()
	doc, err := os.ReadFile(h.settings)
	if err != nil {
		h.t.Fatal(err)
	}
	var s struct {
		Hooks map[string][]struct {
			Matcher string
			Hooks   []struct {
				Command string
				Timeout int
			}
		}
	}
	if err := json.Unmarshal(doc, &s); err != nil {
		h.t.Fatal(err)
	}
	var state strings.Builder
	for _, event := range events {
		entry := s.Hooks[event[0]][0]
		var identity bytes.Buffer
		enc := json.NewEncoder(&identity)
		enc.SetEscapeHTML(false)
		err = enc.Encode(map[string]any{"event_name": event[1], "matcher": entry.Matcher,
			"hooks": []any{map[string]any{"async": false, "command": entry.Hooks[0].Command, "timeout": entry.Hooks[0].Timeout, "type": "command"}}})
		if err != nil {
			h.t.Fatal(err)
		}
		fmt.Fprintf(&state, "[hooks.state.%q]\ntrusted_hash = \"sha256:%x\"\n", h.settings+":"+event[1]+":0:0", sha256.Sum256(bytes.TrimSpace(identity.Bytes())))
	}
	h.write(filepath.Join(filepath.Dir(h.settings), "config.toml"), state.String())
}

// works returns what status says about an installation in which nothing is broken.
func works(t *testing.T, name string, h *hooked) string {
	t.Helper()
	of, err := host.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	if of.VerifiedVersion() == "" {
		return ": installed in " + h.settings + ". Unverified: "
	}
	return ": active in " + h.settings + " (test denial worked). Questions"
}

// warned returns what status says beside the limits that the host has anyway.
func warned(errs string) string {
	return regexp.MustCompile(`(?m)^shield: gap in the protection of .*\n`).ReplaceAllString(errs, "")
}

var codexBefore, codexAfter = [2]string{"PreToolUse", "pre_tool_use"}, [2]string{"PostToolUse", "post_tool_use"}

// TestHookStatusOfEveryHost breaks an installation of each host, and checks that
// status calls a denial enforced only where nothing is broken.
func TestHookStatusOfEveryHost(t *testing.T) {
	t.Parallel()
	for _, name := range host.Names() {
		for _, c := range []struct {
			name  string
			says  string // "" if nothing is broken
			spoil func(*hooked)
		}{
			{"as installed", "", func(*hooked) {}},
			{"missing settings", "no hook of shield is installed", func(h *hooked) { _ = os.Remove(h.settings) }},
			{"missing program", "the program of the hook is missing:", func(h *hooked) { _ = os.Remove(h.bin) }},
			{"not executable", "is not executable; install shield again", func(h *hooked) { h.copy(h.bin); h.mode(h.bin, 0o644) }},
			{"others may write the program", "gives other users access", func(h *hooked) { h.copy(h.bin); h.mode(h.bin, 0o757) }},
			{"others may write the settings", "gives other users access", func(h *hooked) { h.mode(h.settings, 0o757) }},
			{"no wrapper", "", func(h *hooked) { h.edit(`n() {`, `m() {`) }},
			{"a wrapper that takes every answer", "", func(h *hooked) { h.edit(`case ${s%} in [02]`, `case ${s%} in *`) }},
			{"a wrapper that lets pass", "", func(h *hooked) { h.edit(`exit 2`, `exit 0`) }},
			{"another host's command", "", func(h *hooked) { h.edit("hook "+name, "hook nobody") }},
			{"ended before it answers", "", func(h *hooked) { h.edit(`sleep 25`, `sleep 5`) }},
			{"it allows", "gives no verdict", func(h *hooked) { h.script("exit 0") }},
			{"it allows everything", "did not deny", func(h *hooked) { h.script("echo '0{}'") }},
			{"it dies", "gives no verdict", func(h *hooked) { h.script("kill -9 $$") }},
			{"it prints more", "gives no verdict", func(h *hooked) { h.script("echo log; echo '2{}'") }},
			{"shield cannot judge", "denies everything", func(h *hooked) {
				h.write(filepath.Join(h.home, ".config", "shield", "shield.yaml"), "policy: /nowhere.yaml\n")
			}},
		} {
			// The command line is of one of three forms; what breaks it is tried on each.
			if !slices.Contains([]string{"as installed", "missing settings", "it allows everything", "it dies"}, c.name) && !slices.Contains([]string{"codex", "cline", "windsurf"}, name) {
				continue
			}
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				h := hosted(t, name)
				c.spoil(h)
				out, errs, status := h.run("", builtShield, "hook", "status", name)
				if c.name == "as installed" {
					if status != 0 || warned(errs) != "" || !strings.Contains(out, works(t, name, h)) {
						t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
					}
					return
				}
				if status != 1 || out != "" || !strings.Contains(errs, c.says) {
					t.Errorf("status %d, stdout %q, stderr %q; want %q", status, out, errs, c.says)
				}
			})
		}
	}
}

// TestHookStatusOfSwitches checks what else each host has that keeps a hook from
// being run.
func TestHookStatusOfSwitches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, name, says, file, text string }{
		{"codex", "not trusted", "no person has trusted it", "HOME/.codex/config.toml", ""},
		{"codex", "trusted before it was changed", "no person has trusted it", "HOME/.codex/config.toml", "[hooks.state.\"HOME/.codex/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:00\"\n"},
		{"codex", "switched off", "switched off", "HOME/.codex/config.toml", "[hooks.state.\"HOME/.codex/hooks.json:pre_tool_use:0:0\"]\nenabled = false\n"},
		{"codex", "hooks are off", "features.hooks", "HOME/.codex/config.toml", "[features]\nhooks = false\n"},
		{"gemini-cli", "hooks are off", "hooksConfig.enabled", "WORK/.gemini/settings.json", `{"hooksConfig": {"enabled": false}}`},
		{"gemini-cli", "the hook is off", "hooksConfig.disabled", "WORK/.gemini/settings.json", `{"hooksConfig": {"disabled": ["shield"]}}`},
		{"qwen-code", "hooks are off", "disableAllHooks", "WORK/.qwen/settings.json", `{"disableAllHooks": true}`},
		{"droid", "hooks are off", "hooksDisabled", "HOME/.factory/settings.json", `{"hooks": {"hooksDisabled": true}}`},
		{"droid", "hooks are off in the project", "hooksDisabled", "WORK/.factory/settings.json", `{"hooks": {"hooksDisabled": true}}`},
		{"droid", "hooks are off for this project", "hooksDisabled", "WORK/.factory/settings.local.json", `{"hooks": {"hooksDisabled": true}}`},
		{"copilot", "hooks are off in another file of hooks", "disableAllHooks", "HOME/.copilot/hooks/other.json", `{"version": 1, "disableAllHooks": true, "hooks": {}}`},
		{"copilot", "hooks are off in the project", "disableAllHooks", "WORK/.github/copilot/settings.json", `{"disableAllHooks": true}`},
		{"copilot", "hooks are off in the settings", "disableAllHooks", "HOME/.copilot/settings.json", `{"disableAllHooks": true}`},
		{"openclaw", "plugins are off", "plugins.enabled = false", "HOME/.openclaw/openclaw.json", `{"plugins": {"enabled": false,},} // mine`},
		{"openclaw", "the extension is off", "plugins.entries.shield.enabled", "HOME/.openclaw/openclaw.json", `{"plugins": {"entries": {"shield": {"enabled": false}}}}`},
		{"openclaw", "the extension is left out", "plugins.allow", "HOME/.openclaw/openclaw.json", `{"plugins": {"allow": ["other"]}}`},
		{"openclaw", "the extension is denied", "plugins.deny", "HOME/.openclaw/openclaw.json", `{"plugins": {"allow": ["shield"], "deny": ["shield"]}}`},
		{"openclaw", "settings that are not understood", "is not JSON with comments, so shield cannot check whether it disables hooks; write it as JSON", "HOME/.openclaw/openclaw.json", `{plugins: {enabled: false}}`},
		{"goose", "a file beside it is missing", "is missing or was changed", "HOME/.agents/plugins/shield/plugin.json", "{}"},
		{"openclaw", "a file beside it is missing", "is missing or was changed", "HOME/.openclaw/extensions/shield/package.json", "{}"},
	} {
		t.Run(c.host+", "+c.name, func(t *testing.T) {
			t.Parallel()
			h := hosted(t, c.host)
			fill := strings.NewReplacer("HOME", h.home, "WORK", h.work)
			h.write(fill.Replace(c.file), fill.Replace(c.text))
			out, errs, status := h.run("", builtShield, "hook", "status", c.host)
			if status != 1 || out != "" || !strings.Contains(errs, c.says) {
				t.Errorf("status %d, stdout %q, stderr %q; want %q", status, out, errs, c.says)
			}
		})
	}
}

// edited replaces text behind the head of the list of an event.
func edited(head, old, text string) func(*hooked) {
	return func(h *hooked) {
		h.t.Helper()
		doc, err := os.ReadFile(h.settings)
		if err != nil {
			h.t.Fatal(err)
		}
		before, after, found := strings.Cut(string(doc), head)
		if !found || !strings.Contains(after, old) {
			h.t.Fatalf("no %q behind %q in %s", old, head, doc)
		}
		h.write(h.settings, before+head+strings.Replace(after, old, text, 1))
	}
}

// TestHookStatusOfResults breaks what hands results to shield, and checks that status
// says so, and that a denial is enforced all the same.
func TestHookStatusOfResults(t *testing.T) {
	t.Parallel()
	claude := func(old, text string) func(*hooked) { return edited(`"PostToolUse"`, old, text) }
	for _, c := range []struct {
		host, name, says string
		spoil            func(*hooked)
	}{
		{"claude-code", "of an older version", "run 'shield hook install claude-code' again", func(h *hooked) { h.edit(`"PostToolUse"`, `"SubagentStop"`) }},
		{"claude-code", "of a version that asked about what succeeds", "hooks.PostToolUseFailure does not ask shield; run 'shield hook install claude-code' again", func(h *hooked) {
			h.edit(`"PostToolUseFailure"`, `"SubagentStop"`)
		}},
		{"claude-code", "one tool only", "matcher Write", claude(`"*"`, `"Write"`)},
		{"claude-code", "not waited for", "async", claude(`"type"`, `"async": true, "type"`)},
		{"claude-code", "the host waits too short", "and shield needs", claude(`"timeout": 30`, `"timeout": 3`)},
		{"claude-code", "another shape", "missing, killed or gives no clear", claude(`exit 0; }; {`, `exit 1; }; {`)},
		{"claude-code", "more than the command", "the hook command is not one that shield installs", claude(`|| c; `, `|| c; true; `)},
		{"claude-code", "a malformed neighbour", "is malformed", claude(`[`, `[{"matcher": 7, "hooks": []},`)},
		{"claude-code", "another program", "does not notice that", claude("it's", "its")},
		{"gemini-cli", "one tool only", "matcher Write", edited(`"AfterTool"`, `"*"`, `"Write"`)},
		{"qwen-code", "of an older version", "run 'shield hook install qwen-code' again", claude(`hook qwen-code`, `hook nobody`)},
		{"droid", "one tool only", "matcher Write", claude(`"*"`, `"Write"`)},
		{"codex", "not trusted", "no person has trusted it", func(h *hooked) { h.trust(codexBefore) }},
		{"cursor", "of an older version", "run 'shield hook install cursor' again", edited(`"hooks"`, `postToolUse`, `stop`)},
		{"windsurf", "another shape", "missing, killed or gives no clear", edited(`"post_mcp_tool_use"`, `exit 0; }; {`, `exit 1; }; {`)},
		{"cline", "of an older version", "run 'shield hook install cline' again", func(h *hooked) { _ = os.Remove(filepath.Join(filepath.Dir(h.settings), "PostToolUse")) }},
		{"cline", "another program's", "run 'shield hook install cline' again", func(h *hooked) {
			h.write(filepath.Join(filepath.Dir(h.settings), "PostToolUse"), "#!/bin/sh\nexit 0\n")
		}},
		{"cline", "another shape", "differs from the one that shield installs", func(h *hooked) {
			h.settings = filepath.Join(filepath.Dir(h.settings), "PostToolUse")
			h.edit("#!/bin/sh\n", "#!/bin/sh\nexit 0\n")
			h.settings = filepath.Join(filepath.Dir(h.settings), "PreToolUse")
		}},
		{"goose", "of an older version", "run 'shield hook install goose' again", func(h *hooked) {
			doc, _ := os.ReadFile(h.settings)
			before, _, _ := strings.Cut(string(doc), `, "PostToolUse"`)
			h.write(h.settings, before+"}}\n")
		}},
	} {
		t.Run(c.host+", "+c.name, func(t *testing.T) {
			t.Parallel()
			h := hosted(t, c.host)
			c.spoil(h)
			out, errs, status := h.run("", h.bin, "hook", "status", c.host)
			if status != 0 || !strings.Contains(out, works(t, c.host, h)) || !strings.Contains(errs, "tool results are") || !strings.Contains(errs, c.says) {
				t.Errorf("status %d, stdout %q, stderr %q; want %q", status, out, errs, c.says)
			}
		})
	}
}

// TestHookStatusOfPermission breaks what has the host ask shield before it asks a
// person, and checks that status says so, and that a denial is enforced all the same.
func TestHookStatusOfPermission(t *testing.T) {
	t.Parallel()
	const head = `"PermissionRequest"`
	on := func(h *hooked) {
		h.write(filepath.Join(h.home, ".config", "shield", "shield.yaml"), "classifier: {model: none}\napproval: {channels: []}\nhook: {permission_request: \"on\"}\n")
	}
	for _, c := range []struct {
		host, name, says string // says nothing where nothing is broken
		spoil            func(*hooked)
	}{
		{"claude-code", "as installed", "", func(*hooked) {}},
		{"claude-code", "as installed and switched on", "", on},
		{"claude-code", "gone", "run 'shield hook install --permission-request claude-code'", func(h *hooked) { on(h); h.edit(head, `"SubagentStart"`) }},
		{"claude-code", "gone, and not wanted", "", func(h *hooked) { h.edit(head, `"SubagentStart"`) }},
		{"claude-code", "one tool only", "matcher Write", edited(head, `"*"`, `"Write"`)},
		{"claude-code", "not waited for", "async", edited(head, `"type"`, `"async": true, "type"`)},
		{"claude-code", "the host waits too short", "and shield needs", edited(head, `"timeout": 30`, `"timeout": 3`)},
		{"claude-code", "another shape", "missing, killed or gives no clear", edited(head, `exit 2; }; {`, `exit 0; }; {`)},
		{"claude-code", "the denial of another event", "missing, killed or gives no clear", edited(head, `behavior`, `permission`)},
		{"claude-code", "the command of another event", "the hook's output is not a denial with a reason", edited(head, ` --permission-request`, ``)},
		{"claude-code", "more than the command", "the hook command is not one that shield installs", edited(head, `|| c; `, `|| c; true; `)},
		{"claude-code", "a malformed neighbour", "is malformed", edited(head, `[`, `[{"matcher": 7, "hooks": []},`)},
		{"claude-code", "a malformed entry of another program", "", func(h *hooked) { h.edit(head, `"PermissionRequest": [7], "SubagentStart"`) }},
		{"claude-code", "another program", "does not notice that", edited(head, "it's", "its")},
		{"codex", "as installed", "", func(*hooked) {}},
		{"codex", "not trusted", "no person has trusted it", func(h *hooked) { h.trust(codexBefore, codexAfter) }},
		{"codex", "one tool only", "matcher Write", edited(head, `"*"`, `"Write"`)},
		{"gemini-cli", "a host without the event", "", on},
	} {
		t.Run(c.host+", "+c.name, func(t *testing.T) {
			t.Parallel()
			h := newHookedFor(t, c.host)
			if c.host != "gemini-cli" {
				if _, errs, status := h.run("", h.bin, "hook", "install", c.host, "--timeout", "20s", "--permission-request"); status != 0 {
					t.Fatalf("install: status %d, %s", status, errs)
				}
			}
			if c.host == "codex" {
				h.trust(codexBefore, codexAfter, [2]string{"PermissionRequest", "permission_request"})
			}
			c.spoil(h)
			out, errs, status := h.run("", h.bin, "hook", "status", c.host)
			if status != 0 || !strings.Contains(out, works(t, c.host, h)) {
				t.Errorf("status %d, stdout %q, stderr %q; want a denial that is enforced", status, out, errs)
			}
			if c.says == "" && warned(errs) != "" || c.says != "" && (!strings.Contains(errs, "shield does not answer all permission prompts of the host") || !strings.Contains(errs, c.says)) {
				t.Errorf("it says %q, want %q", errs, c.says)
			}
		})
	}
}

// TestHookBesideAnotherProgram holds that a hook of another program for results keeps
// neither an installation nor its end from being whole.
func TestHookBesideAnotherProgram(t *testing.T) {
	t.Parallel()
	h := newHookedFor(t, "cline")
	after := filepath.Join(filepath.Dir(h.settings), "PostToolUse")
	if _, errs, status := h.run("", h.bin, "hook", "uninstall", "cline"); status != 0 {
		t.Fatalf("uninstall: status %d, %s", status, errs)
	}
	const mine = "#!/bin/sh\necho '{}'\n"
	h.write(after, mine)
	if _, errs, status := h.run("", h.bin, "hook", "install", "--timeout", "20s", "cline"); status != 0 || !strings.Contains(errs, "belongs to another program") {
		t.Errorf("install: status %d, %s", status, errs)
	}
	if out, errs, status := h.run("", h.bin, "hook", "status", "cline"); status != 0 || !strings.Contains(errs, "tool results are") {
		t.Errorf("status: %d, %q, %s", status, out, errs)
	}
	if _, errs, status := h.run("", h.bin, "hook", "uninstall", "cline"); status != 0 {
		t.Errorf("uninstall: status %d, %s", status, errs)
	}
	left, err := os.ReadFile(after)
	if _, gone := os.Lstat(h.settings); err != nil || string(left) != mine || gone == nil {
		t.Errorf("left are %q, %v, and the hook itself: %v", left, err, gone)
	}
}

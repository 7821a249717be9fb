//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// shout is a program that denies in the host's own form whatever it is asked,
// as a shield does that cannot judge.
const shout = `echo '!REASON'; echo 'STATUS{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"REASON"}}'`

// TestHookStatusOfBrokenInstallations breaks an installation in the ways in
// which hosts, tools and people do, and checks that status does not call a
// denial enforced, and says why.
func TestHookStatusOfBrokenInstallations(t *testing.T) {
	t.Parallel()
	project := func(h *hooked, name string) string { return filepath.Join(h.work, ".claude", name) }
	says := func(reason, status string) func(*hooked) {
		return func(h *hooked) { h.script(strings.NewReplacer("REASON", reason, "STATUS", status).Replace(shout)) }
	}
	for _, c := range []struct {
		name  string
		says  string
		spoil func(*hooked)
	}{
		{"no settings file", "settings.json is missing", func(h *hooked) { _ = os.Remove(h.settings) }},
		{"another hook only", "no hook of shield is installed", func(h *hooked) { h.write(h.settings, `{"hooks":{"PreToolUse":[]}}`) }},
		{"another event", "no hook of shield is installed", func(h *hooked) { h.edit("PreToolUse", "SubagentStart") }},
		{"hooks are off", "disableAllHooks", func(h *hooked) { h.edit("{", `{"disableAllHooks": true,`) }},
		{"hooks are off in the project", "disableAllHooks", func(h *hooked) { h.write(project(h, "settings.json"), `{"disableAllHooks":true}`) }},
		{"hooks are off for this project", "disableAllHooks", func(h *hooked) { h.write(project(h, "settings.local.json"), `{"disableAllHooks":true}`) }},
		{"hooks are off by a text", "disableAllHooks", func(h *hooked) { h.edit("{", `{"disableAllHooks": "true",`) }},
		{"hooks are off by the environment", "CLAUDE_CODE_SIMPLE", func(h *hooked) { h.env = append(h.env, "CLAUDE_CODE_SIMPLE=1") }},
		{"hooks are off by the settings' environment", "CLAUDE_CODE_SIMPLE", func(h *hooked) { h.edit("{", `{"env": {"CLAUDE_CODE_SIMPLE": "1"},`) }},
		{"a library is loaded into the hook", "LD_PRELOAD", func(h *hooked) { h.write(project(h, "settings.json"), `{"env":{"LD_PRELOAD":"/x.so"}}`) }},
		{"settings are elsewhere", "no hook of shield is installed", func(h *hooked) { h.env = append(h.env, "CLAUDE_CONFIG_DIR="+h.work) }},
		{"one tool only", "matcher Write", func(h *hooked) { h.edit(`"*"`, `"Write"`) }},
		{"a pattern that matches nothing", "matcher ^$", func(h *hooked) { h.edit(`"*"`, `"^$"`) }},
		{"a matcher that is not a text", "malformed", func(h *hooked) { h.edit(`"*"`, `7`) }},
		{"the host waits too short", "and shield needs", func(h *hooked) { h.edit(`"timeout": 30`, `"timeout": 3`) }},
		{"the host waits as long", "and shield needs", func(h *hooked) { h.edit(`"timeout": 30`, `"timeout": 20`) }},
		{"the host waits no time", "malformed", func(h *hooked) { h.edit(`"timeout": 30`, `"timeout": 0`) }},
		{"a time that is a text", "malformed", func(h *hooked) { h.edit(`"timeout": 30`, `"timeout": "30"`) }},
		{"shield waits longer", ", before shield can answer", func(h *hooked) { h.edit(`--timeout 20s`, `--timeout 10m`) }},
		{"shield waits for ever", "not a duration", func(h *hooked) { h.edit(`--timeout 20s`, `--timeout -1s`) }},
		{"not waited for", "async", func(h *hooked) { h.edit(`"type"`, `"async": true, "type"`) }},
		{"only for some calls", "if", func(h *hooked) { h.edit(`"type"`, `"if": "Bash(git *)", "type"`) }},
		{"without a shell", "args", func(h *hooked) { h.edit(`"type"`, `"args": [], "type"`) }},
		{"another kind of hook", "type is not command", func(h *hooked) { h.edit(`"type": "command"`, `"type": "prompt"`) }},
		{"no wrapper", "missing, killed or gives no clear", func(h *hooked) { h.edit(`"n() {`, `"m() {`) }},
		{"a wrapper on another line", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, `\n --line`) }},
		{"a wrapper behind a comment", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, ` # --line`) }},
		{"a wrapper for something else", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, `; true --line`) }},
		{"a wrapper that lets pass", "missing, killed or gives no clear", func(h *hooked) { h.edit(`exit 2; }; {`, `exit 0; }; {`) }},
		{"a wrapper that ends with 1", "missing, killed or gives no clear", func(h *hooked) { h.edit(`exit 2; }; {`, `exit 1; }; {`) }},
		{"a wrapper that takes every answer", "missing, killed or gives no clear", func(h *hooked) { h.edit(`case ${s%} in [02]`, `case ${s%} in *`) }},
		{"more than the command", "the hook command is not one that shield installs", func(h *hooked) { h.edit(`|| c; `, `|| c; true; `) }},
		{"in the background", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, ` & --line`) }},
		{"not heard", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, ` >/dev/null --line`) }},
		{"denies before it answers", ", before shield can answer", func(h *hooked) { h.edit(`sleep 25`, `sleep 5`) }},
		{"denies after the host has gone on", "and shield needs", func(h *hooked) { h.edit(`sleep 25`, `sleep 600`) }},
		{"waits with another program", "the hook command is not one that shield installs", func(h *hooked) { h.edit(`/usr/bin/sleep 25`, `/usr/bin/true 25`) }},
		{"waits with a program of PATH", "the hook command is not one that shield installs", func(h *hooked) { h.edit(`/usr/bin/sleep 25`, `sleep 25`) }},
		{"the process that asks is another", "missing, killed or gives no clear", func(h *hooked) { h.edit(`--line $$`, `--line 1`) }},
		{"an older version installed it", "an older version", func(h *hooked) {
			h.write(h.settings, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","timeout":30,"command":`+strconv.Quote(h.older("--timeout 20s"))+`}]}]}}`)
		}},
		{"the program is not checked", "does not notice that", func(h *hooked) {
			line := h.line()
			h.editJSON(line, line[:strings.Index(line, "c() {")]+line[strings.Index(line, "|| c; ")+len("|| c; "):])
		}},
		{"the check lets every program pass", "does not notice that", func(h *hooked) { h.edit(`*) echo changed; exit;;`, `*) ;;`) }},
		{"the program was replaced", "differs from the program that was installed as a hook, so", func(h *hooked) { h.copy(h.bin); h.append(h.bin, "x") }},
		{"what it should be is not recorded", "is not recorded", func(h *hooked) { _ = os.Remove(h.recordFile()) }},
		{"its answer goes into a file, too", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, ` | tee hook.log --line`) }},
		{"the line goes into a file, too", "missing, killed or gives no clear", func(h *hooked) { h.edit(`n \"status ${s%}\""`, `n \"status ${s%}\" | tee hook.log"`) }},
		{"never fails", "missing, killed or gives no clear", func(h *hooked) { h.edit(`n \"status ${s%}\""`, `n \"status ${s%}\" || true"`) }},
		{"says nothing to people", "the hook command is not one that shield installs", func(h *hooked) { h.edit(` --line`, ` 2>/dev/null --line`) }},
		{"nice", "ABSOLUTE-PATH", func(h *hooked) { h.edit(h.quoted()+" hook", "nice -n 19 "+h.quoted()+" hook") }},
		{"a path that only a shell knows", "the hook command contains a variable or a wildcard", func(h *hooked) { h.edit(h.quoted()+" hook", "~/bin/shield hook") }},
		{"some tools only", "matcher Bash|Write", func(h *hooked) { h.edit(`"*"`, `"Bash|Write"`) }},
		{"the list of hooks of an entry is left out", "malformed", func(h *hooked) {
			h.write(h.settings, `{"hooks":{"PreToolUse":[{"type":"command","command":"/x/shield hook claude-code"}]}}`)
		}},
		{"in the settings and not under hooks", "no hook of shield is installed", func(h *hooked) { h.edit(`"hooks": {`, `"hook": {`) }},
		{"renamed by an editor", "settings.json is missing", func(h *hooked) { _ = os.Rename(h.settings, h.settings+"~") }},
		{"for another host", "no hook of shield is installed", func(h *hooked) { h.edit(`hook claude-code`, `hook codex`) }},
		{"settings that are not there", "denies everything", func(h *hooked) { h.edit(`--timeout 20s`, `--timeout 20s --config /nowhere.yaml`) }},
		{"a misspelt setting", "unknown key", func(h *hooked) {
			h.write(filepath.Join(h.home, ".config", "shield", "shield.yaml"), "polcy: offline\n")
		}},
		{"a state that cannot be written", "not a directory", func(h *hooked) {
			_ = os.RemoveAll(filepath.Join(h.home, ".local"))
			h.write(filepath.Join(h.home, ".local"), "")
		}},
		{"through another program", "ABSOLUTE-PATH", func(h *hooked) { h.edit(h.quoted()+" hook", "/tmp/timeout "+h.quoted()+" hook") }},
		{"an expansion", "the hook command contains a variable or a wildcard", func(h *hooked) { h.edit(`hook claude-code`, `hook claude-code $X`) }},
		{"settings from the environment", "does not set the variable SHIELD_CONFIG", func(h *hooked) { h.edit(`SHIELD_CONFIG= `, ``) }},
		{"settings by a variable", "sets the variable SHIELD_CONFIG", func(h *hooked) { h.edit(`SHIELD_CONFIG= `, `SHIELD_CONFIG=$X `) }},
		{"a home from the environment", "does not set the variable HOME", func(h *hooked) { h.edit(` HOME=`+h.home, ``) }},
		{"a library for the program", "sets the variable LD_PRELOAD", func(h *hooked) { h.edit(`SHIELD_CONFIG= `, `LD_PRELOAD=/x.so SHIELD_CONFIG= `) }},
		{"found by PATH", "ABSOLUTE-PATH", func(h *hooked) { h.edit(h.quoted()+" hook", "shield hook") }},
		{"the program of the hook is missing:", "the program of the hook is missing:", func(h *hooked) { _ = os.Remove(h.bin) }},
		{"the program was moved", "the program of the hook is missing:", func(h *hooked) { _ = os.Rename(h.bin, h.bin+".old") }},
		{"the program is a folder", "is not executable; install shield again", func(h *hooked) { _ = os.Remove(h.bin); _ = os.Mkdir(h.bin, 0o755) }},
		{"not executable", "is not executable; install shield again", func(h *hooked) { h.copy(h.bin); h.mode(h.bin, 0o644) }},
		{"others may write the program", "gives other users access", func(h *hooked) { h.copy(h.bin); h.mode(h.bin, 0o757) }},
		{"others may replace the program", "gives other users access", func(h *hooked) { h.mode(filepath.Dir(h.bin), 0o777) }},
		{"others may write the settings", "gives other users access", func(h *hooked) { h.mode(h.settings, 0o646) }},
		{"not JSON", "not valid JSON", func(h *hooked) { h.edit("{", "{,") }},
		{"a comment", "comments", func(h *hooked) { h.edit("{", "{ // mine\n") }},
		{"a trailing comma", "comments", func(h *hooked) { h.edit(`"type": "command"`, `"type": "command",`) }},
		{"a key twice", "not valid JSON", func(h *hooked) { h.edit("{", `{"hooks": {},`) }},
		{"another setting is malformed", "model is not of type", func(h *hooked) { h.edit("{", `{"model": 5,`) }},
		{"a permission is malformed", "permissions are malformed", func(h *hooked) { h.edit("{", `{"permissions": {"allow": "x"},`) }},
		{"another hook is malformed", "malformed", func(h *hooked) { h.edit(`"PreToolUse": [`, `"PreToolUse": [{"matcher": 5, "hooks": []},`) }},
		{"a second hook that is broken", "missing, killed or gives no clear", func(h *hooked) {
			h.write(project(h, "settings.json"), `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"/x/shield hook claude-code"}]}]}}`)
		}},
		{"the program is a link to nothing", "the program of the hook is missing:", func(h *hooked) { _ = os.Remove(h.bin); _ = os.Symlink("/nowhere/shield", h.bin) }},
		{"the program is a link to itself", "the program of the hook is missing:", func(h *hooked) { _ = os.Remove(h.bin); _ = os.Symlink(h.bin, h.bin) }},
		{"the program is a link to what others may replace", "gives other users access", func(h *hooked) {
			open := filepath.Join(h.work, "open")
			_ = errors.Join(os.Mkdir(open, 0o777), os.Chmod(open, 0o777), os.Rename(h.bin, filepath.Join(open, "shield")), os.Symlink(filepath.Join(open, "shield"), h.bin))
		}},
		{"the program is another user's", "belongs to another user", func(h *hooked) { h.copy(h.bin); h.give(h.bin) }},
		{"the folder of the program is another user's", "belongs to another user", func(h *hooked) { h.give(filepath.Dir(h.bin)) }},
		{"the settings are another user's", "belongs to another user", func(h *hooked) { h.give(h.settings) }},
		{"the settings are a link to themselves", "symbolic links", func(h *hooked) { _ = os.Remove(h.settings); _ = os.Symlink(h.settings, h.settings) }},
		{"the settings are a link to nothing", "no hook of shield is installed", func(h *hooked) { _ = os.Remove(h.settings); _ = os.Symlink("/nowhere/settings.json", h.settings) }},
		{"the settings are a folder", "not a regular file", func(h *hooked) { _ = os.Remove(h.settings); _ = os.Mkdir(h.settings, 0o755) }},
		{"the settings are a pipe", "not a regular file", func(h *hooked) { _ = os.Remove(h.settings); _ = syscall.Mkfifo(h.settings, 0o600) }},
		{"the settings are empty", "no hook of shield is installed", func(h *hooked) { h.write(h.settings, "") }},
		{"the settings are a list", "no hook of shield is installed", func(h *hooked) { h.write(h.settings, "[]") }},
		{"the settings are too large", "larger than", func(h *hooked) { h.edit("{", "{"+strings.Repeat(" ", 5<<20)) }},
		{"the settings are cut off", "no hook of shield is installed", func(h *hooked) { _ = os.Truncate(h.settings, 100) }},
		{"the hooks are a text", "hooks is not of type object", func(h *hooked) { h.edit(`"hooks": {`, `"hooks": "none", "x": {`) }},
		{"the hook is in a key of another spelling", "no hook of shield is installed", func(h *hooked) { h.edit(`"PreToolUse"`, `"preToolUse"`) }},
		{"it is a hook of another shield", "gives no verdict", func(h *hooked) { h.script("echo shield version 0.0.1") }},
		{"it allows", "gives no verdict", func(h *hooked) { h.script("exit 0") }},
		{"it fails", "gives no verdict", func(h *hooked) { h.script("exit 2") }},
		{"it dies", "gives no verdict", func(h *hooked) { h.script("kill -9 $$") }},
		{"it denies and ends with 0", "did not deny", says("shield: tier 0", "0")},
		{"it denies without a reason", "did not deny", says("", "2")},
		{"it denies on standard output alone", "did not deny", func(h *hooked) {
			h.script(strings.NewReplacer("echo '!REASON';", "", "REASON", "shield: tier 0", "STATUS", "2").Replace(shout))
		}},
		{"it says more", "gives no verdict", func(h *hooked) {
			h.script("echo log; " + strings.NewReplacer("REASON", "shield: tier 0", "STATUS", "2").Replace(shout))
		}},
		{"it floods", "gives no verdict", func(h *hooked) { h.script("yes | head -c 10000000; exit 2") }},
		{"shield cannot judge", "denies everything", func(h *hooked) {
			h.write(filepath.Join(h.home, ".config", "shield", "shield.yaml"), "policy: /nowhere.yaml\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			c.spoil(h)
			out, errs, status := h.run("", builtShield, "hook", "status", "claude-code")
			if status != 1 || out != "" || !strings.Contains(errs, c.says) {
				t.Errorf("status %d, stdout %q, stderr %q; want %q", status, out, errs, c.says)
			}
		})
	}
}

// give makes a file another user's.
func (h *hooked) give(path string) {
	h.t.Helper()
	const nobody = 65534
	if err := os.Chown(path, nobody, nobody); err != nil {
		h.t.Skipf("a file cannot be given away here: %v", err)
	}
}

// editJSON replaces a text that the settings file holds as a JSON string.
func (h *hooked) editJSON(old, text string) {
	h.t.Helper()
	var quoted [2]string
	for i, s := range []string{old, text} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			h.t.Fatal(err)
		}
		quoted[i] = strings.TrimSpace(b.String())
	}
	h.edit(quoted[0], quoted[1])
}

// append adds text to a file.
func (h *hooked) append(path, text string) {
	h.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// quoted returns how the settings file holds the path of shield.
func (h *hooked) quoted() string {
	raw, _ := json.Marshal(`"` + h.bin + `"`)
	return string(raw[1 : len(raw)-1])
}

// TestHookStatusOfGoodInstallations changes what changes nothing.
func TestHookStatusOfGoodInstallations(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*hooked){
		"as installed":            func(*hooked) {},
		"a byte order mark":       func(h *hooked) { h.edit("{", "\ufeff{") },
		"every tool by a pattern": func(h *hooked) { h.edit(`"*"`, `".*"`) },
		"every tool by default":   func(h *hooked) { h.edit(`"matcher": "*"`, `"matcher": ""`) },
		"a longer wait":           func(h *hooked) { h.edit(`"timeout": 30`, `"timeout": 600`) },
		"a flag":                  func(h *hooked) { h.edit("claude-code", "claude-code --policy strict") },
		"other settings": func(h *hooked) {
			h.edit("{", `{"model": "opus", "nonsense": 1, "permissions": {"defaultMode": "plan"},`)
		},
		"hooks are not off": func(h *hooked) { h.edit("{", `{"disableAllHooks": false,`) },
		"other hooks": func(h *hooked) {
			h.edit(`"PreToolUse": [`, `"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "x"}]},`)
		},
		"a project that is ignored": func(h *hooked) {
			h.write(filepath.Join(h.work, ".claude", "settings.json"), `{"disableAllHooks": true`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			change(h)
			if out, errs, status := h.run("", h.bin, "hook", "status", "claude-code"); status != 0 || !strings.HasPrefix(out, "Claude Code: active in "+h.settings+" (test denial worked). Questions") {
				t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
			}
		})
	}
}

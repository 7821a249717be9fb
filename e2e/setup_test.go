//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A machine is a home folder on which shield is set up.
type machine struct {
	t    *testing.T
	home string
	env  []string
}

// newMachine returns a home folder with some files, whose names end in a slash for folders.
func newMachine(t *testing.T, files map[string]string) *machine {
	t.Helper()
	m := &machine{t: t, home: filepath.Join(t.TempDir(), "a home")}
	if err := os.Mkdir(m.home, 0o700); err != nil {
		t.Fatal(err)
	}
	m.env = []string{"HOME=" + m.home, "PATH=/usr/bin:/bin"}
	for name, text := range files {
		m.write(name, text)
	}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.home, name) }

func (m *machine) write(name, text string) {
	m.t.Helper()
	dir := m.path(name)
	if !strings.HasSuffix(name, "/") {
		dir = filepath.Dir(dir)
	}
	err := os.MkdirAll(dir, 0o700)
	if dir != m.path(name) && !strings.HasSuffix(name, "/") {
		err = errors.Join(err, os.WriteFile(m.path(name), []byte(text), 0o600))
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// shield runs shield without a terminal.
func (m *machine) shield(args ...string) (status int, out string) {
	m.t.Helper()
	cmd := exec.Command(builtShield, args...)
	cmd.Dir, cmd.Env = m.home, m.env
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	if strings.Contains(string(text), "setup: only a person can do this: ") {
		m.t.Skip("an agent runs the tests")
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// files returns all files and links but those of shield's state, by name.
func (m *machine) files() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(m.home, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, m.home+"/")
		switch {
		case err != nil:
			return err
		case name == ".local" || name == ".cache":
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		case !d.IsDir():
			text, err := os.ReadFile(path)
			info, statErr := d.Info()
			all[name] = fmt.Sprintf("%s %s", info.Mode(), text)
			return errors.Join(err, statErr)
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// TestSetup goes from nothing to a denial in each host with one command, and back.
func TestSetup(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{
		".claude/settings.json": "{\n\t\"model\": \"opus\"\n}", ".codex/": "", ".gemini/settings.json": `{"ui": {"theme": "x"}}`, ".qwen/": "",
		".copilot/": "", ".config/opencode/": "", ".cline/": "", ".factory/": "", ".pi/": "",
	})
	before := m.files()
	if status, out := m.shield("setup", "--dry-run"); status != 0 || !strings.HasSuffix(out, "Nothing was changed.\n") || cmp.Diff(before, m.files()) != "" {
		t.Errorf("a dry run: status %d, %s%s", status, out, cmp.Diff(before, m.files()))
	}
	status, out := m.shield("setup", "--yes")
	if status != 0 || strings.Count(out, "\n") > 12 {
		t.Fatalf("status %d, %d lines:\n%s", status, strings.Count(out, "\n"), out)
	}
	for _, want := range []string{"Protected: Claude Code, ", "Gemini CLI", "Codex is not protected yet; next step: start Codex and trust", "\nQuestions of ", "A question without an answer is denied", "shield allow", "shield setup --undo"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	after := m.files()
	if _, there := after[".config/shield/shield.yaml"]; there {
		t.Error("a settings file was written although the defaults apply")
	}
	if status, again := m.shield("setup", "--yes"); status != 0 || cmp.Diff(after, m.files()) != "" || strings.Contains(again, "Restart") {
		t.Errorf("a second run: status %d, %s%s", status, again, cmp.Diff(after, m.files()))
	}
	if status, out := m.shield("setup", "--undo", "--yes"); status != 0 || cmp.Diff(before, m.files()) != "" || !strings.Contains(out, "What stays: ") {
		t.Errorf("undone: status %d, %s%s", status, out, cmp.Diff(before, m.files()))
	}
	if status, out := m.shield("setup", "--undo", "--yes"); status != 0 || !strings.HasPrefix(out, "shield is in the settings of no agent.") {
		t.Errorf("undone twice: status %d, %s", status, out)
	}
}

// TestSetupOfWhatIsThere runs setup where files are not as it would like them.
func TestSetupOfWhatIsThere(t *testing.T) {
	t.Parallel()
	claude := map[string]string{".claude/settings.json": `{"model": "opus"}`}
	for name, c := range map[string]struct {
		prepare func(*machine)
		args    []string
		status  int
		says    string
		changes bool // of any file
		lasting bool // what undo does not take back
	}{
		"no terminal":                      {args: []string{"setup"}, status: 1, says: "run it with --yes"},
		"a host that shield does not know": {args: []string{"setup", "--yes", "--host", "claude"}, status: 1, says: "claude-code"},
		"an unknown way to ask":            {args: []string{"setup", "--yes", "--ask", "mail"}, status: 1, says: "host, page, terminal, auto"},
		"an unknown preset":                {args: []string{"setup", "--yes", "--preset", "lax"}, status: 1, says: "offline"},
		"undo with a preset":               {args: []string{"setup", "--undo", "--yes", "--preset", "strict"}, status: 1, says: "--undo can be combined only with"},
		"questions that reach no user":     {args: []string{"setup", "--yes", "--ask", "terminal"}, status: 1, says: "reach no user", changes: true, lasting: true},
		"an operand":                       {args: []string{"setup", "claude-code"}, status: 1, says: "unexpected operand"},
		"no host":                          {prepare: func(m *machine) { _ = os.RemoveAll(m.path(".claude")) }, status: 1, says: "no agent host"},
		"an untested host":                 {prepare: func(m *machine) { _ = os.Rename(m.path(".claude"), m.path(".cursor")) }, status: 1, says: "cursor is installed, but was not tested"},
		"a home that is missing":           {prepare: func(m *machine) { m.env[0] = "HOME=/nonexistent/me" }, status: 1, says: "does not exist; set HOME"},
		"no home":                          {prepare: func(m *machine) { m.env = m.env[1:] }, status: 1, says: "set HOME"},
		"invalid settings":                 {prepare: func(m *machine) { m.write(".config/shield/shield.yaml", "aproval: 1\n") }, status: 1, says: `shield.yaml:1:1: unknown key "aproval"`},
		"settings of a later one":          {prepare: func(m *machine) { m.write(".config/shield/shield.yaml", "approval: {channels: [smoke]}\n") }, status: 1, says: "approval.channels"},
		"read-only settings": {prepare: func(m *machine) {
			m.write(".config/shield/shield.yaml", "rate_limit: 5\n")
			_ = os.Chmod(m.path(".config/shield/shield.yaml"), 0o400)
		}, args: []string{"setup", "--yes", "--preset", "strict"}, status: 1, says: "shield.yaml: the file is read-only"},
		"settings that say it": {prepare: func(m *machine) { m.write(".config/shield/shield.yaml", "policy: strict # mine\n") },
			args: []string{"setup", "--yes", "--preset", "strict"}, says: "Protected: Claude Code", changes: true},
		"settings that say otherwise": {prepare: func(m *machine) { m.write(".config/shield/shield.yaml", "policy: strict # mine\n") },
			args: []string{"setup", "--yes", "--preset", "offline", "--ask", "page"}, says: "Changed settings: ~/.config/shield/shield.yaml", changes: true, lasting: true},
		"a read-only host": {prepare: func(m *machine) { _ = os.Chmod(m.path(".claude/settings.json"), 0o400) }, status: 1, says: "Claude Code is not protected: "},
		"a host's settings that are invalid, and another host": {prepare: func(m *machine) {
			m.write(".claude/settings.json", "{")
			m.write(".factory/", "")
		}, status: 1, says: "Protected: Factory Droid.", changes: true},
		"settings that are a link": {prepare: func(m *machine) {
			m.write("dotfiles/claude.json", `{"model": "opus"}`)
			_ = os.Remove(m.path(".claude/settings.json"))
			_ = os.Symlink("../dotfiles/claude.json", m.path(".claude/settings.json"))
		}, says: "Protected: Claude Code", changes: true},
		"a link that leads nowhere": {prepare: func(m *machine) {
			_ = os.Remove(m.path(".claude/settings.json"))
			_ = os.Symlink("../dotfiles/none.json", m.path(".claude/settings.json"))
			m.write("dotfiles/", "")
		}, says: "Protected: Claude Code", changes: true},
		"a hook of a shield that is gone": {prepare: func(m *machine) {
			m.write(".claude/settings.json", `{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "/old/shield hook claude-code"}]}]}}`)
		}, says: "Protected: Claude Code", changes: true, lasting: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, claude)
			if c.prepare != nil {
				c.prepare(m)
			}
			args := c.args
			if args == nil {
				args = []string{"setup", "--yes"}
			}
			before := m.files()
			status, out := m.shield(args...)
			if status != c.status || !strings.Contains(out, c.says) {
				t.Errorf("status %d, not %d, or %q is not in\n%s", status, c.status, c.says, out)
			}
			if changes := cmp.Diff(before, m.files()); (changes != "") != c.changes {
				t.Errorf("changes: %s", changes)
			}
			if !c.changes {
				return
			}
			if status, out := m.shield("setup", "--undo", "--yes"); status != 0 || !c.lasting && cmp.Diff(before, m.files()) != "" {
				t.Errorf("undone: status %d, %s%s", status, out, cmp.Diff(before, m.files()))
			}
			if c.lasting {
				for name, text := range m.files() {
					if strings.Contains(text, "shield hook") || strings.HasSuffix(name, ".before-shield") {
						t.Errorf("%s still has %s", name, text)
					}
				}
			}
		})
	}
}

// TestSetupKeepsEdits checks that undo keeps what the user has changed since.
func TestSetupKeepsEdits(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/settings.json": `{"model": "opus"}`})
	if status, out := m.shield("setup", "--yes"); status != 0 {
		t.Fatal(out)
	}
	text, err := os.ReadFile(m.path(".claude/settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	m.write(".claude/settings.json", strings.Replace(string(text), `"opus"`, `"sonnet"`, 1))
	if status, out := m.shield("setup", "--undo", "--yes"); status != 0 || !strings.Contains(out, "changes made to its settings after shield was installed are kept") {
		t.Errorf("status %d, %s", status, out)
	}
	if text, err := os.ReadFile(m.path(".claude/settings.json")); err != nil || !strings.Contains(string(text), "sonnet") || strings.Contains(string(text), "hook") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestSetupAtOnce runs setups side by side: each succeeds, the hook is there once, and
// undo restores what was there before all of them.
func TestSetupAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{".claude/settings.json": `{"model": "opus"}`, ".factory/": ""})
	before := m.files()
	done := make(chan string)
	for range 4 {
		go func() {
			cmd := exec.Command(builtShield, "setup", "--yes", "--preset", "strict")
			cmd.Dir, cmd.Env = m.home, m.env
			if out, err := cmd.CombinedOutput(); err != nil {
				done <- fmt.Sprintf("%v: %s", err, out)
			}
			done <- ""
		}()
	}
	for range 4 {
		if failure := <-done; failure != "" {
			t.Error(failure)
		}
	}
	after := m.files()
	if status, out := m.shield("setup", "--yes"); status != 0 || cmp.Diff(after, m.files()) != "" { // it would take out a second hook
		t.Errorf("status %d, %s%s", status, out, cmp.Diff(after, m.files()))
	}
	if text := m.files()[".config/shield/shield.yaml"]; !strings.HasSuffix(text, " policy: strict\n") {
		t.Errorf("settings: %q", text)
	}
	if status, out := m.shield("setup", "--undo", "--yes"); status != 0 {
		t.Error(out)
	}
	before[".config/shield/shield.yaml"] = m.files()[".config/shield/shield.yaml"]
	if d := cmp.Diff(before, m.files()); d != "" {
		t.Error(d)
	}
}

// TestReadmeSetup checks that setup says what the README shows, but for how questions
// arrive, which depends on the desktop.
func TestReadmeSetup(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, ok := strings.Cut(string(text), "    $ shield setup\n")
	shown, _, cut := strings.Cut(shown, "\n\n")
	if !ok || !cut {
		t.Fatal("README.md does not show setup")
	}
	m := newMachine(t, map[string]string{".claude/": "", ".gemini/": ""})
	_, said := m.shield("setup", "--yes")
	fixed := func(text string) (lines []string) {
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "Questions of ") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if d := cmp.Diff(fixed(shown), fixed(said)); d != "" {
		t.Errorf("README.md (-), setup (+):\n%s", d)
	}
}

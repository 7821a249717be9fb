package cmd

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/host"
)

// An upgraded is the home folder that an older build left behind, and the present one.
type upgraded struct {
	Environment
	from string // the folder in testdata/upgrade
	exe  string // a process of the present build
	kept string // what undo has kept; "" if the build had none

	pinned bool // the lines of hosts know their program
}

// upgradedFrom copies the home folder of an older build. The time is a minute after it
// was left.
func upgradedFrom(t *testing.T, from string) upgraded {
	t.Helper()
	exe, err := exec.LookPath("process") // see TestMain
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	pinned := pinnedIn(t, from)
	pin := filepath.Base(hookProgramRecordInStateDir(filepath.Join(home, ".local/state/shield"), exe).recordPath)
	err = filepath.WalkDir(filepath.Join(from, "home"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.Join(from, "home"), path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(home, rel), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if rel := filepath.ToSlash(rel); !strings.HasPrefix(rel, ".local/state/") {
			data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("@HOME@"), []byte(home)), []byte("@SHIELD@"), []byte(exe))
			if pinned != "" {
				data = bytes.ReplaceAll(data, []byte(pinned), []byte(pin))
			}
		} else if filepath.Base(rel) == pinned {
			return os.WriteFile(filepath.Join(home, filepath.Dir(rel), pin), data, 0o600)
		}
		mode := os.FileMode(0o600)
		if strings.Contains(rel, "/.cline/hooks/") {
			mode = 0o700
		}
		return os.WriteFile(filepath.Join(home, rel), data, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(filepath.Join(from, "made"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(made)))
	if err != nil {
		t.Fatal(err)
	}
	kept := ""
	if _, err := os.Stat(filepath.Join(from, "home/.local/state/shield/undo")); err == nil {
		kept = "rm scratch/notes.txt"
	}
	getenv := func(name string) string { return map[string]string{"HOME": home, "XDG_CACHE_HOME": testCache()}[name] }
	return upgraded{Environment{
		Now: func() time.Time { return at.Add(time.Minute) }, Home: home, WorkingDir: filepath.Join(home, "app"), Getenv: getenv,
		ShieldExecutablePath: exe, User: "me", OS: runtime.GOOS, checkPersonStartedThisProcess: func(int) error { return nil },
	}, from, exe, kept, pinned != ""}
}

// pinnedIn returns the name of the record of the program, which is made of the program's path;
// "" for a build that had none.
func pinnedIn(t *testing.T, from string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(from, "home/.local/state/shield/programs/*"))
	if err != nil || len(list) > 1 {
		t.Fatal(list, err)
	}
	if len(list) == 0 {
		return ""
	}
	return filepath.Base(list[0])
}

// upgrades calls test for each older build.
func upgrades(t *testing.T, test func(t *testing.T, u upgraded)) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the folders are of a unix")
	}
	folders, err := filepath.Glob("../testdata/upgrade/*/made")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no older build: %v", err)
	}
	for _, made := range folders {
		from := filepath.Dir(made)
		t.Run(filepath.Base(from), func(t *testing.T) { test(t, upgradedFrom(t, from)) })
	}
}

const plainRead = `{"type":"read_file","payload":{"path":"main.go"}}` + "\n"

// TestUpgrade holds that this build reads what older ones have left behind: settings,
// policies, state and log, with at most one warning, and never as a block of everything.
func TestUpgrade(t *testing.T) {
	upgrades(t, func(t *testing.T, u upgraded) {
		status, out, errs := run(t, u.Environment, plainRead, "run", "--no-action")
		if status != 0 || strings.Count(errs, "\n") > 1 {
			t.Fatalf("a read: status %d, %s%s", status, out, errs)
		}
		for name, c := range map[string]struct {
			action, want string
		}{
			"a rule of the file":  {`{"type":"read_file","payload":{"path":"~/notes/a.txt"}}`, `"decision":"ALLOW"`},
			"an exception":        {`{"type":"read_file","payload":{"path":"private/a.txt"}}`, `"tier":1`},
			"a rule of the layer": {`{"type":"execute_command","payload":{"command":"ls prod-cluster"}}`, `"rule":"team/no_prod"`},
			"the core":            {`{"type":"execute_command","payload":{"command":"rm -rf /"}}`, `"decision":"BLOCK"`},
			"the approval":        {`{"type":"execute_command","payload":{"command":"make publish"}}`, `approved once by kim`},
		} {
			if _, out, errs := run(t, u.Environment, c.action+"\n", "run", "--no-action"); !strings.Contains(out, c.want) {
				t.Errorf("%s: %s%s, want %s", name, out, errs, c.want)
			}
		}
		for _, c := range []struct{ want, args string }{
			{"", "audit verify"}, {`wipe`, "audit query .id"}, {"kim", "approvals list"}, {"secret", "session list"}, {"label   secret", "session show " + u.session(t)}, {"", "status"},
			{u.kept, "undo list"},
		} {
			if status, out, errs := run(t, u.Environment, "", strings.Fields(c.args)...); status != 0 || !strings.Contains(out, c.want) {
				t.Errorf("%s: status %d, %s%s", c.args, status, out, errs)
			}
		}
	})
}

// session returns the first session that the older build remembers.
func (u *upgraded) session(t *testing.T) string {
	t.Helper()
	_, out, errs := run(t, u.Environment, "", "session", "list")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "secret") {
			return strings.Fields(line)[0]
		}
	}
	t.Fatalf("no session has read a secret: %s%s", out, errs)
	return ""
}

// TestUpgradeNames holds that a policy may go on to name every rule, action and effect
// of older builds, but for those of gone.txt.
func TestUpgradeNames(t *testing.T) {
	text, err := os.ReadFile("../testdata/upgrade/gone.txt")
	if err != nil {
		t.Fatal(err)
	}
	gone := strings.Fields(regexp.MustCompile(`(?m)^#.*`).ReplaceAllString(string(text), ""))
	finding := regexp.MustCompile(`(?m)^.*:\d+:\d+: (?:error|warning|note): (.*)$`)
	quoted := regexp.MustCompile(`"([a-z0-9_-]+)"`)
	upgrades(t, func(t *testing.T, u upgraded) {
		files, err := filepath.Glob(filepath.Join(u.from, "policies", "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			file, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			_, out, _ := run(t, u.Environment, "", "policy", "check", file)
			for _, m := range finding.FindAllStringSubmatch(out, -1) {
				lost := strings.Contains(m[1], "they have no effect") || strings.Contains(m[1], "is not a type that shield knows") || strings.Contains(m[1], "unknown action type")
				if name := quoted.FindStringSubmatch(m[1]); lost && (name == nil || !slices.Contains(gone, name[1])) {
					t.Errorf("%s: %s", filepath.Base(file), m[1])
				}
			}
			if status, out, errs := run(t, u.Environment, plainRead, "run", "--no-action", "--until", "classify", "--policy", file); strings.Contains(out, "BLOCK") || strings.Count(errs, "\n") > 1 {
				t.Errorf("%s: status %d, %s%s", filepath.Base(file), status, out, errs)
			}
		}
	})
}

// TestUpgradeGoneRule holds the same of a rule that is gone.
func TestUpgradeGoneRule(t *testing.T) {
	upgrades(t, func(t *testing.T, u upgraded) {
		file := filepath.Join(u.Home, ".config", "shield", "policy.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("ask_before_deleting"), []byte("rule_of_last_year"))
		text = bytes.ReplaceAll(text, []byte("workspace_reads"), []byte("reads_of_last_year"))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, errs := run(t, u.Environment, plainRead, "run", "--no-action")
		if status != 0 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "rule_of_last_year") {
			t.Errorf("status %d, %s%s", status, out, errs)
		}
	})
}

var oldLine = regexp.MustCompile(`hook (\S+) `)

// TestUpgradeHooks holds that the lines in hosts' settings go on to judge, and that they
// can be reinstalled and uninstalled.
func TestUpgradeHooks(t *testing.T) {
	upgrades(t, func(t *testing.T, u upgraded) {
		read := `{"session_id":"h1","cwd":"` + u.WorkingDir + `","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"` + u.WorkingDir + `/main.go"}}`
		wipe := `{"session_id":"h1","cwd":"` + u.WorkingDir + `","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf /"}}`
		lines := oldLines(t, filepath.Join(u.Home, ".claude", "settings.json"))
		// Lines that know their program judge once a person has accepted the new one.
		for _, line := range lines {
			_, answer := runLine(t, u, line, read)
			if strings.Contains(answer, "deny") != u.pinned {
				t.Errorf("before the new program is accepted: %s", answer)
			}
			if !u.pinned {
				continue
			}
			if status, out, errs := run(t, u.Environment, "", "hook", "status", "claude-code", "--accept"); status != 0 || !strings.Contains(answer, "shield hook status --accept") {
				t.Errorf("%s, and accept: status %d, %s%s", answer, status, out, errs)
			}
			break
		}
		for _, line := range lines {
			if _, answer := runLine(t, u, line, read); strings.Contains(answer, "deny") {
				t.Errorf("a read: %s", answer)
			}
			if _, answer := runLine(t, u, line, wipe); !strings.Contains(answer, "deny") {
				t.Errorf("rm -rf /: %s", answer)
			}
		}
		// A host that keeps its hooks in a file is one that a build may have installed.
		for _, name := range host.Names() {
			if status, _, errs := run(t, u.Environment, "", "hook", "install", name, "--timeout", "20s"); status != 0 {
				t.Errorf("install %s: status %d, %s", name, status, errs)
				continue
			}
			if status, _, errs := run(t, u.Environment, "", "hook", "uninstall", name); status != 0 {
				t.Errorf("uninstall %s: status %d, %s", name, status, errs)
			}
		}
		left := 0
		err := filepath.WalkDir(u.Home, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(path, "/.local/state/") {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), u.exe+" hook ") {
				t.Errorf("%s still runs the hook", path)
				left++
			}
			return err
		})
		if err != nil || left > 0 {
			t.Error(left, err)
		}
	})
}

// oldLines returns the command lines before tools in a settings file of Claude Code.
func oldLines(t *testing.T, path string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Hooks struct {
			PreToolUse []struct{ Hooks []struct{ Command string } }
		}
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	for _, m := range settings.Hooks.PreToolUse {
		for _, h := range m.Hooks {
			if oldLine.MatchString(h.Command) {
				lines = append(lines, h.Command)
			}
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s has no hook", path)
	}
	return lines
}

// runLine runs an installed command line as a host does.
func runLine(t *testing.T, u upgraded, line, event string) (status int, answer string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
	cmd.Dir, cmd.Stdin = u.WorkingDir, strings.NewReader(event)
	cmd.Env = []string{"HOME=" + u.Home, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

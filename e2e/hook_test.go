//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/flock"
)

const (
	hookRead = `{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"notes.md"}}`
	hookWipe = `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"sudo rm -rf /"}}`
)

// A hooked is a home folder with shield installed as a hook of a host, by a
// copy of shield that a test may break.
type hooked struct {
	t        *testing.T
	home     string
	work     string
	bin      string // the copy
	settings string
	command  string // runs instead of the installed line; "" for that
	env      []string
}

func newHooked(t *testing.T) *hooked { return newHookedFor(t, "claude-code") }

func newHookedFor(t *testing.T, host string) *hooked {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &hooked{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), bin: filepath.Join(dir, "it's", "shield")}
	h.env = append(os.Environ(), "HOME="+h.home)
	for _, name := range []string{"SHIELD_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SIMPLE",
		"CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME", "COPILOT_HOME", "PI_CODING_AGENT_DIR", "FACTORY_HOME_OVERRIDE", "CLINE_DIR", "CLINE_HOOKS_DIR", "OPENCODE_PURE"} {
		h.env = append(h.env, name+"=")
	}
	for _, d := range []string{h.work, filepath.Dir(h.bin), filepath.Join(h.home, ".config", "shield")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write(filepath.Join(h.home, ".config", "shield", "shield.yaml"), "classifier: {model: none}\napproval: {channels: []}\n")
	if err := os.Link(builtShield, h.bin); err != nil { // on another file system
		h.copy(builtShield)
	}
	_, errs, status := h.run("", h.bin, "hook", "install", host, "--timeout", "20s")
	m := regexp.MustCompile(`\+\+\+ (.*)`).FindStringSubmatch(errs)
	if status != 0 || m == nil {
		t.Fatalf("install: status %d, %s", status, errs)
	}
	h.settings = m[1]
	return h
}

func (h *hooked) write(path, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	// Removed first: a program that runs cannot be written to.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	// A process that another test starts meanwhile would hold the file open, and what is
	// open for writing cannot be run.
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o644)
	syscall.ForkLock.RUnlock()
	if err != nil {
		h.t.Fatal(err)
	}
}

// copy makes the program a file of its own, which may be changed.
func (h *hooked) copy(from string) {
	h.t.Helper()
	program, err := os.ReadFile(from)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(h.bin, string(program))
	h.mode(h.bin, 0o755)
}

func (h *hooked) mode(path string, mode os.FileMode) {
	h.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		h.t.Fatal(err)
	}
}

// run runs a program in the work folder.
func (h *hooked) run(in, name string, args ...string) (out, errs string, status int) {
	h.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, strings.NewReader(in)
	return h.finish(cmd)
}

func (h *hooked) finish(cmd *exec.Cmd) (out, errs string, status int) {
	h.t.Helper()
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.WaitDelay = 20 * time.Second // for what it has left behind on its streams
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// line returns the installed command line.
func (h *hooked) line() string {
	h.t.Helper()
	if h.command != "" {
		return h.command
	}
	text, err := os.ReadFile(h.settings)
	if err != nil {
		h.t.Fatal(err)
	}
	var doc struct {
		Hooks struct {
			PreToolUse []struct{ Hooks []struct{ Command string } }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		h.t.Fatal(err)
	}
	return doc.Hooks.PreToolUse[0].Hooks[0].Command
}

// edit replaces text in the settings.
func (h *hooked) edit(old, text string) {
	h.t.Helper()
	doc, err := os.ReadFile(h.settings)
	if err != nil {
		h.t.Fatal(err)
	}
	if !bytes.Contains(doc, []byte(old)) {
		h.t.Fatalf("%q is not in the settings:\n%s", old, doc)
	}
	h.write(h.settings, strings.Replace(string(doc), old, text, 1))
}

// script puts a shell script in the place of shield.
func (h *hooked) script(text string) {
	h.write(h.bin, "#!/bin/sh\n"+text+"\n")
	h.mode(h.bin, 0o755)
	h.record()
}

// recordFile returns the file that says which program the hook runs.
func (h *hooked) recordFile() string {
	sum := sha256.Sum256([]byte(h.bin))
	return filepath.Join(h.home, ".local", "state", "shield", "programs", hex.EncodeToString(sum[:8]))
}

// record has the hook run the program as it is now.
func (h *hooked) record() {
	h.t.Helper()
	program, err := os.ReadFile(h.bin)
	if err != nil {
		h.t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	h.write(h.recordFile(), "0:0:0:0:0 "+hex.EncodeToString(sum[:])+"\n")
}

// older returns the command line that older versions installed, with two processes.
func (h *hooked) older(words string) string {
	deny := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"shield: blocked, because it gave no verdict; reinstall shield"}}`
	return `o=$(SHIELD_CONFIG= XDG_CONFIG_HOME=` + h.home + `/.config XDG_STATE_HOME=` + h.home + `/.local/state XDG_DATA_HOME=` + h.home + `/.local/share XDG_CACHE_HOME=` + h.home + `/.cache "` +
		h.bin + `" hook claude-code ` + words + `); s=$?; case $s$o in [02]"{"*"}") printf '%s\n' "$o"; exit $s;; esac; printf '%s\n' '` + deny + `'; echo "shield: blocked, because it gave no verdict; reinstall shield (status $s)" >&2; exit 2`
}

// lock holds the lock of the state until the test ends.
func (h *hooked) lock() {
	h.t.Helper()
	dir := filepath.Join(h.home, ".local", "state", "shield")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	lock, err := flock.New(filepath.Join(dir, "state.lock"))
	if err != nil {
		h.t.Fatal(err)
	}
	if err := lock.Lock(h.t.Context(), time.Minute); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { lock.Close() })
}

// signalled returns a script that runs shield and sends a signal to its judge or
// its watchdog before that has read its standard input, so that nothing was
// judged yet.
func signalled(bin, signal, to string) string {
	return `cat >in
mkfifo go
"` + bin + `.real" "$@" <go &
watchdog=$!
exec 3>go
until judge=$(pgrep -P $watchdog -f -- --judge); do kill -0 $watchdog || exit; sleep 0.01; done
kill -` + signal + ` ` + to + `
cat in >&3 2>/dev/null
exec 3>&-
wait $watchdog`
}

// TestHookFails breaks an installed hook in every way that hosts take for
// permission, and checks that the command line they run still denies.
func TestHookFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		in    string
		spoil func(*hooked)
	}{
		{"nothing is broken, and the action is denied", hookWipe, func(*hooked) {}},
		{"missing", hookRead, func(h *hooked) { _ = os.Remove(h.bin) }},
		{"its folder is missing", hookRead, func(h *hooked) { _ = os.RemoveAll(filepath.Dir(h.bin)) }},
		{"not executable", hookRead, func(h *hooked) { h.copy(h.bin); h.mode(h.bin, 0o644) }},
		{"not a program", hookRead, func(h *hooked) { h.write(h.bin, "\x7fELF"); h.mode(h.bin, 0o755) }},
		{"cut off", hookRead, func(h *hooked) {
			h.copy(h.bin)
			if err := os.Truncate(h.bin, 100_000); err != nil {
				h.t.Fatal(err)
			}
		}},
		{"fails", hookRead, func(h *hooked) { h.script("exit 1") }},
		{"fails as an escalation", hookRead, func(h *hooked) { h.script("exit 3") }},
		{"says nothing", hookRead, func(h *hooked) { h.script("exit 0") }},
		{"answers in the form of an older line", hookRead, func(h *hooked) { h.script("echo {}") }},
		{"answers with another status", hookRead, func(h *hooked) { h.script("echo '3{}'") }},
		{"answers half a line", hookRead, func(h *hooked) { h.script("printf '0{}'") }},
		{"says more before it answers", hookRead, func(h *hooked) { h.script("echo log; echo '0{}'") }},
		{"was replaced", hookRead, func(h *hooked) { h.write(h.bin, "#!/bin/sh\necho '0{}'\n"); h.mode(h.bin, 0o755) }},
		{"is not recorded", hookRead, func(h *hooked) {
			for _, name := range []string{h.recordFile(), h.recordFile() + ".program"} {
				_ = os.Remove(name)
			}
		}},
		{"kills itself", hookRead, func(h *hooked) { h.script("kill -9 $$") }},
		{"aborts", hookRead, func(h *hooked) { h.script("kill -ABRT $$") }},
		{"the judge is killed", hookRead, func(h *hooked) { h.signal("KILL", "$judge") }},
		{"the judge is stopped", hookRead, func(h *hooked) { h.signal("STOP", "$judge") }},
		{"the judge is ended", hookWipe, func(h *hooked) { h.signal("TERM", "$judge") }}, // one that is asked to end early can still judge
		{"the judge crashes", hookRead, func(h *hooked) { h.signal("QUIT", "$judge") }},
		{"the watchdog is killed", hookRead, func(h *hooked) { h.signal("KILL", "$watchdog") }},
		{"the watchdog is stopped", hookRead, func(h *hooked) { h.signal("STOP", "$watchdog") }},
		{"the watchdog is ended", hookRead, func(h *hooked) { h.signal("TERM", "$watchdog") }},
		{"nothing on standard input", "", func(*hooked) {}},
		{"garbage", "\x00\xff{]", func(*hooked) {}},
		{"bad JSON", hookRead[:40], func(*hooked) {}},
		{"two documents", hookRead + hookRead, func(*hooked) {}},
		{"an unknown event", `{"hook_event_name":"Stop"}`, func(*hooked) {}},
		{"too large", `{"x":"` + strings.Repeat("x", 5<<20) + `"}`, func(*hooked) {}},
		{"an unknown flag", hookRead, func(h *hooked) { h.edit("--timeout 20s", "--timeout 20s --bogus") }},
		{"a bad value", hookRead, func(h *hooked) { h.edit("--timeout 20s", "--timeout 20") }},
		{"no host", hookRead, func(h *hooked) { h.edit("hook claude-code --timeout 20s", "hook") }},
		{"a host that shield does not know", hookRead, func(h *hooked) { h.edit("hook claude-code", "hook nobody") }},
		{"broken settings", hookRead, func(h *hooked) { h.write(filepath.Join(h.home, ".config/shield/shield.yaml"), "a: b: c") }},
		{"unknown settings", hookRead, func(h *hooked) { h.write(filepath.Join(h.home, ".config/shield/shield.yaml"), "hok: {}\n") }},
		{"a policy that is missing", hookRead, func(h *hooked) {
			h.write(filepath.Join(h.home, ".config/shield/shield.yaml"), "policy: /nowhere.yaml\n")
		}},
		{"a damaged state", hookRead, func(h *hooked) { h.write(filepath.Join(h.home, ".local/state/shield/state.db"), "damaged") }},
		{"a state that is locked", hookRead, func(h *hooked) { h.edit("--timeout 20s", "--timeout 100ms"); h.lock() }},
		{"a state folder that is a file", hookRead, func(h *hooked) {
			_ = os.RemoveAll(filepath.Join(h.home, ".local"))
			h.write(filepath.Join(h.home, ".local"), "")
		}},
		{"a home that cannot be written to", hookRead, func(h *hooked) {
			local := filepath.Join(h.home, ".local")
			_ = os.RemoveAll(local)
			if os.Geteuid() != 0 {
				h.mode(h.home, 0o555)
				h.t.Cleanup(func() { h.mode(h.home, 0o755) })
				return
			}
			h.mount(local, "ro") // root writes everywhere else
		}},
		{"a full disk", hookRead, func(h *hooked) {
			_ = os.RemoveAll(filepath.Join(h.home, ".local"))
			h.mount(filepath.Join(h.home, ".local"), "size=4k")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			c.spoil(h)
			out, errs, status := h.run(c.in, "/bin/sh", "-c", h.line())
			if status != 2 || !strings.Contains(errs, "shield: ") {
				t.Errorf("status %d, stdout %q, stderr %q", status, out, errs)
			}
			var answer struct {
				HookSpecificOutput struct{ HookEventName, PermissionDecision, PermissionDecisionReason string }
			}
			dec := json.NewDecoder(strings.NewReader(out))
			a := &answer.HookSpecificOutput
			if err := dec.Decode(&answer); err != nil || dec.Decode(&struct{}{}) != io.EOF || a.HookEventName != "PreToolUse" || a.PermissionDecision != "deny" ||
				len(a.PermissionDecisionReason) < 20 || !strings.Contains(errs, a.PermissionDecisionReason) {
				t.Errorf("not a denial with its reason on both streams: %q, %q", out, errs)
			}
		})
	}
}

// TestHookAhead holds that an installed command line starts one process of shield, and
// that the watchdog of one that an older version installed ends before the
// packages of shield are initialized where its action is left to the host, and only
// there: each process that gets further says so.
func TestHookAhead(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.env = append(h.env, "GODEBUG=inittrace=1")
	h.edit("exec 3<&0 2>/dev/null", "exec 3<&0")
	whole := func(in string) (int, string) {
		out, errs, status := h.run(in, "/bin/sh", "-c", h.line())
		return strings.Count(errs, "init github.com/shieldcli/shield/cmd @"), fmt.Sprintf("%d %s", status, out)
	}
	for in, want := range map[string]string{hookRead: "0 {}\n", hookWipe: "2 {"} {
		if n, said := whole(in); n != 1 || !strings.HasPrefix(said, want) {
			t.Errorf("%d processes judged alone: %q, want one and %q", n, said, want)
		}
	}
	h.command = h.older("--timeout 20s")
	if n, said := whole(hookWipe); n != 2 || !strings.HasPrefix(said, "2 {") {
		t.Errorf("%d processes were whole for a denial, want the judge and its watchdog: %q", n, said)
	}
	ahead := false
	for i := 0; i < 50 && !ahead; i++ { // a busy machine may take longer than the watchdog waits ahead
		n, said := whole(hookRead)
		if said != "0 {}\n" {
			t.Fatalf("%d processes were whole, and the host was told %q", n, said)
		}
		ahead = n == 1
	}
	if !ahead {
		t.Error("two processes were whole for a read, want the judge alone")
	}
	h.write(filepath.Join(h.home, ".config", "shield", "shield.yaml"), "classifier: {model: none}\nhook: {answer: allow}\n")
	if n, said := whole(hookRead); n != 2 || !strings.HasPrefix(said, `0 {"hookSpecificOutput":`) {
		t.Errorf("%d processes were whole for an answer that is not neutral, want 2: %q", n, said)
	}
}

// signal has a signal sent to the judge or its watchdog while standard input
// still goes on.
func (h *hooked) signal(signal, to string) {
	h.t.Helper()
	needs(h.t, "pgrep")
	if err := os.Rename(h.bin, h.bin+".real"); err != nil {
		h.t.Fatal(err)
	}
	h.script(signalled(h.bin, signal, to))
	h.command = h.older("--timeout 1s")
}

// mount puts an empty file system at a folder, which takes root.
func (h *hooked) mount(dir, options string) {
	h.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "none", dir).CombinedOutput(); err != nil {
		h.t.Skipf("a file system cannot be mounted here: %v %s", err, out)
	}
	h.t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
}

// TestHookLeavesNothing checks that neither process is left when the other has
// been killed.
func TestHookLeavesNothing(t *testing.T) {
	t.Parallel()
	needs(t, "pgrep")
	h := newHooked(t)
	cmd := exec.Command(h.bin, "hook", "claude-code")
	cmd.Dir, cmd.Env = h.work, h.env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	judged, err := cmd.StderrPipe() // the judge holds it, too: it ends with both
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		out, err := exec.Command("pgrep", "-P", strconv.Itoa(cmd.Process.Pid)).Output()
		if err == nil && len(bytes.TrimSpace(out)) > 0 {
			break
		}
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, judged); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

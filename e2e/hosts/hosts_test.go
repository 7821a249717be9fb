//go:build unix

// Package hosts starts the real programs of agent hosts against a language model
// on this machine, and looks at what runs and what the model is told.
package hosts

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostsFolder is where `make hosts` installs the hosts. Without it nothing runs.
var hostsFolder = os.Getenv("SHIELD_HOSTS")

const (
	goodTool = "get_note"
	badTool  = "drop_note"
	reason   = "this test does not want it"
)

//go:embed packages.txt
var packages string

// versionOf returns the version of a host that packages.txt names.
func versionOf(name string) string {
	m := regexp.MustCompile(`(?m)^` + name + ` \S+@(\S+)$`).FindStringSubmatch(packages)
	if m == nil {
		return ""
	}
	return m[1]
}

// builtShield is the program that is tested, as make build builds it, and builtFrom the
// commit that it is of.
var builtShield, builtFrom string

func TestMain(m *testing.M) {
	if log := os.Getenv("SHIELD_E2E_MCP"); log != "" {
		if err := serveMCP(os.Stdin, os.Stdout, log); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if filepath.Base(os.Args[0]) == "forge" {
		if err := forge(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if hostsFolder != "" {
		if err := build(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func build() (err error) {
	if builtShield, err = filepath.Abs(filepath.Join("..", "..", "build", "test", "shield-hosts")); err != nil {
		return err
	}
	commit, err := exec.Command("git", "describe", "--always", "--exclude=*").Output()
	if err != nil {
		return fmt.Errorf("git describe: %w", err)
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":(exclude,top)docs/hosts.md").Output() // which a run writes
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	if builtFrom = strings.TrimSpace(string(commit)); len(changed) > 0 {
		builtFrom += "-dirty"
	}
	const copied = `make -C ../.. build && mkdir -p "${1%/*}" && cp ../../build/shield "$1"` // the first may be built again meanwhile
	if out, err := exec.Command("sh", "-ec", copied, "sh", builtShield).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// A run is a host in a home folder of its own, with shield installed.
type run struct {
	t          *testing.T
	driver     driver
	home, work string
	shield     string // a copy that may be broken
	model      *model
	env        []string
	fill       *strings.Replacer // of what a driver leaves open
}

const policy = `extends: offline
deny:
  - name: unwanted_command
    reason: ` + reason + `
    action_types: [execute_command]
    commands: ["unwanted"]
    match: [{type: execute_command, payload: {command: "touch unwanted"}}, {type: execute_command, payload: {command: "sh -c 'touch unwanted'"}}]
    pass: [{type: execute_command, payload: {command: "touch wanted-not"}}]
  - name: unwanted_file
    reason: ` + reason + `
    action_types: [write_file]
    paths: ["**/unwanted-file"]
    match: [{type: write_file, payload: {path: "/w/unwanted-file", content: x}}, {type: execute_command, payload: {command: "echo x > /w/unwanted-file"}}]
    pass: [{type: write_file, payload: {path: "/w/file", content: x}}]
  - name: unwanted_tool
    reason: ` + reason + `
    action_types: [` + badTool + `, mcp__probe__` + badTool + `, probe-` + badTool + `, probe_` + badTool + `, probe___` + badTool + `, mcp__everything__get-env]
    match: [{type: mcp__probe__` + badTool + `, payload: {text: x}}, {type: probe_` + badTool + `, payload: {text: x}}]
    pass: [{type: mcp__probe__` + goodTool + `, payload: {text: x}}]
verify:
  - name: asked_command
    reason: a person has to decide
    action_types: [execute_command]
    commands: ["asked"]
    tier_override: 3
    match: [{type: execute_command, payload: {command: "touch asked"}}, {type: execute_command, payload: {command: "sh -c 'touch asked'"}}]
    pass: [{type: execute_command, payload: {command: "touch asked-not"}}]
  - name: doubtful_command
    reason: a language model has to look at it
    action_types: [execute_command]
    commands: ["doubtful"]
    tier_override: 2
    match: [{type: execute_command, payload: {command: "touch doubtful"}}, {type: execute_command, payload: {command: "sh -c 'touch doubtful'"}}]
    pass: [{type: execute_command, payload: {command: "touch doubtful-not"}}]
allow:
  - name: wanted_tool
    reason: the test calls it
    action_types: [mcp__everything__get-sum, ` + goodTool + `, mcp__probe__` + goodTool + `, probe-` + goodTool + `, probe_` + goodTool + `, probe___` + goodTool + `]
    match: [{type: mcp__probe__` + goodTool + `, payload: {text: x}}, {type: probe_` + goodTool + `, payload: {text: x}}]
    pass: [{type: mcp__probe__` + badTool + `, payload: {text: x}}]
`

func newRun(t *testing.T, d driver, calls []call, timeout string) *run {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, driver: d, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), shield: filepath.Join(dir, "bin", "shield"), model: newModel(calls)}
	t.Cleanup(r.model.Close)
	t.Cleanup(r.end)
	server, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.fill = strings.NewReplacer("@URL@", r.model.URL, "@SERVER@", server, "@WORK@", r.work, "@HOME@", r.home)
	r.env = []string{"HOME=" + r.home, "TERM=dumb", "LANG=C.UTF-8", "SHELL=/bin/bash",
		"PATH=" + filepath.Join(hostsFolder, "node", "node_modules", "node", "bin") + ":" + os.Getenv("PATH")}
	for _, v := range d.env {
		r.env = append(r.env, r.fill.Replace(v))
	}
	for name, text := range d.files {
		r.write(filepath.Join(r.home, name), r.fill.Replace(text))
	}
	r.configure("approval: {channels: []}\n")
	r.write(filepath.Join(dir, "policy.yaml"), policy)
	r.write(filepath.Join(r.work, "README.md"), "A test.\n")
	r.write(r.shield, "")
	_ = os.Remove(r.shield)
	if err := os.Link(builtShield, r.shield); err != nil {
		t.Fatal(err)
	}
	if out, err := r.command(time.Minute, "git", "init", "-q", "."); err != nil {
		t.Fatal(err, out)
	}
	var first []string
	for _, a := range d.first {
		first = append(first, r.fill.Replace(a))
	}
	if len(first) > 0 {
		if out, err := r.command(time.Minute, r.program(), first...); err != nil {
			t.Fatal(err, out)
		}
	}
	r.driver.args = nil
	for _, a := range d.args {
		r.driver.args = append(r.driver.args, r.fill.Replace(a))
	}
	if timeout != "" {
		if out, err := r.command(time.Minute, r.shield, "hook", "install", d.name, "--timeout", timeout); err != nil {
			t.Fatal(err, out)
		}
	}
	return r
}

// configure writes shield's settings.
func (r *run) configure(text string) {
	r.t.Helper()
	r.write(filepath.Join(r.home, ".config/shield/shield.yaml"), "policy: "+filepath.Join(filepath.Dir(r.home), "policy.yaml")+"\n"+text)
}

func (r *run) program() string {
	return filepath.Join(hostsFolder, r.driver.name, "node_modules", r.driver.program)
}

func (r *run) write(path, text string) {
	r.t.Helper()
	_ = os.Remove(path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

// command runs a program in the folder of the work, and ends all that it started
// when it is late.
func (r *run) command(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.work, r.env, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return string(out), err
}

// end ends what the host has left behind, such as daemons in sessions of their own.
// They are known by their home folder.
func (r *run) end() {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range files {
		environ, err := os.ReadFile(name)
		if err != nil || !strings.Contains("\x00"+string(environ), "\x00HOME="+r.home+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(name, "/")[2]); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// start runs the host until it ends.
func (r *run) start() string {
	out, err := r.command(6*time.Minute, r.program(), r.driver.args...)
	return fmt.Sprintf("%v\n%s", err, out)
}

// ran reports whether a call did what it asks for.
func (r *run) ran(c call) bool {
	if c.kind == "mcp" {
		log, _ := os.ReadFile(filepath.Join(r.work, "mcp.log"))
		return strings.Contains(string(log), c.text)
	}
	name := c.text[strings.LastIndex(c.text, " ")+1:]
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.work, name)
	}
	_, err := os.Stat(name)
	return err == nil
}

// script puts a shell script in the place of shield, as if its user had accepted that.
func (r *run) script(text string) {
	r.replace(text)
	records, err := filepath.Glob(filepath.Join(r.home, programs, "????????????????"))
	if err != nil || len(records) == 0 {
		r.t.Fatalf("no program is recorded: %v", err)
	}
	program, err := os.ReadFile(r.shield)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range records {
		r.write(name, fmt.Sprintf("none %x\n", sha256.Sum256(program)))
	}
}

// programs is where shield records the programs of hooks, below the home folder.
const programs = ".local/state/shield/programs"

// replace puts a shell script in the place of shield.
func (r *run) replace(text string) {
	r.write(r.shield, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(r.shield, 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// breaks are the ways in which a shield that is installed fails.
var breaks = []struct {
	name  string
	spoil func(*run)
}{
	{"missing", func(r *run) { _ = os.Remove(r.shield) }},
	{"replaced", func(r *run) { r.replace("exec '" + builtShield + `' "$@"`) }},
	{"killed", func(r *run) { r.script("kill -9 $$") }},
	{"hanging", func(r *run) { r.script("exec sleep 600") }},
	{"garbage", func(r *run) { r.script("echo 'debug: starting'; exit 0") }},
	{"silent", func(r *run) { r.script("exit 0") }},
	{"log line before the answer", func(r *run) { r.script("echo 'debug: starting'; echo '{}'; exit 0") }},
}

// TestHosts starts every host that is installed: what is allowed runs, what is
// denied does not and the model is told why, and nothing runs when shield fails.
func TestHosts(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			installed(t, d)
			row := map[string]string{}
			t.Run("allowed", func(t *testing.T) { allowed(t, d, row) })
			t.Run("denied", func(t *testing.T) { denied(t, d, row) })
			t.Run("broken", func(t *testing.T) { broken(t, d, row) })
			t.Run("slow", func(t *testing.T) { slow(t, d, row) })
			t.Run("switched off", func(t *testing.T) { switchedOff(t, d, row) })
			t.Run("sub-agent", func(t *testing.T) { subAgent(t, d, row) })
			t.Run("resumed", func(t *testing.T) { resumed(t, d, row) })
			t.Run("results", func(t *testing.T) { results(t, d, row) })
			t.Run("tools", func(t *testing.T) { tools(t, d, row) })
			t.Run("measured", func(t *testing.T) { measured(t, d, row) })
			if !t.Failed() || os.Getenv("SHIELD_HOSTS_DOC") != "" {
				record(t, d.name, row)
			}
		})
	}
}

func broken(t *testing.T, d driver, row map[string]string) {
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			c := call{"shell", "touch wanted"}
			r := newRun(t, d, []call{c}, "2s")
			b.spoil(r)
			out := r.start()
			switch {
			case r.ran(c):
				row[b.name] = "RAN"
				t.Errorf("the command ran: %.800s", out)
			case !r.model.proposed:
				row[b.name] = "NOT TRIED"
				t.Errorf("the model proposed nothing: %.800s", out)
			default:
				row[b.name] = "blocked"
			}
		})
	}
}

func allowed(t *testing.T, d driver, row map[string]string) {
	calls := []call{{"shell", "touch wanted"}, {"write", ""}, {"mcp", goodTool}}
	r := newRun(t, d, calls, "20s")
	calls[1].text = filepath.Join(r.work, "file")
	out := r.start()
	for _, c := range calls {
		key := c.kind + " allowed"
		switch {
		case r.ran(c):
			row[key] = "ran"
		case strings.Contains(strings.Join(r.model.lacking, " "), c.kind):
			row[key] = "not offered"
		default:
			row[key] = "BLOCKED"
			t.Errorf("%s %s did not run: %.800s\n%s", c.kind, c.text, out, r.model.told("shield"))
		}
	}
}

func denied(t *testing.T, d driver, row map[string]string) {
	for _, c := range []call{{"shell", "touch unwanted"}, {"write", "unwanted-file"}, {"mcp", badTool}} {
		t.Run(c.kind, func(t *testing.T) {
			calls := []call{c}
			r := newRun(t, d, calls, "20s")
			if c.kind == "write" {
				calls[0].text = filepath.Join(r.work, c.text)
			}
			out := r.start()
			key := c.kind + " denied"
			switch {
			case r.ran(calls[0]):
				row[key] = "RAN"
				t.Errorf("it ran: %.800s", out)
			case strings.Contains(strings.Join(r.model.lacking, " "), c.kind):
				row[key] = "not offered"
			case r.model.saw(reason):
				row[key] = "blocked, told why"
			case strings.Contains(out, reason):
				row[key] = "blocked, the person is told why"
			case d.mute:
				row[key] = "blocked, nobody is told why"
			default:
				row[key] = "blocked"
				t.Errorf("nobody was told why: %.800s\n%s", out, r.model.told("shield"))
			}
		})
	}
}

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A lineProcess is a process of an installed line that runs.
type lineProcess struct {
	pid  int
	name string
}

// members returns the processes of a group.
func members(group int) (all []lineProcess) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if err != nil || open < 0 || shut < 0 {
			continue
		}
		fields := strings.Fields(string(text[shut+1:]))
		if len(fields) < 3 || fields[0] == "Z" || fields[2] != strconv.Itoa(group) {
			continue
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:open])))
		all = append(all, lineProcess{pid, string(text[open+1 : shut])})
	}
	return all
}

// TestHookLineSignals stops and kills the programs of an installed line, by name, at many
// points, and checks that it denies before the host goes on without it. The shells are
// stopped only once shield runs: before that nothing could continue them. They are not
// killed: the host itself waits for one.
func TestHookLineSignals(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.edit("sleep 25", "sleep 3")
	line := h.line()
	hits := map[string]int{}
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"shield", syscall.SIGSTOP}, {"shield", syscall.SIGKILL}, {"shield", syscall.SIGSEGV}, {"shield", syscall.SIGTERM},
		{"sleep", syscall.SIGSTOP}, {"sleep", syscall.SIGKILL}, {"sleep", syscall.SIGTERM},
		{"sh", syscall.SIGSTOP},
	} {
		for delay := range 12 {
			t.Run(fmt.Sprintf("%s %s %d", c.name, c.signal, delay), func(t *testing.T) {
				cmd := exec.Command("/bin/sh", "-c", line)
				cmd.Dir, cmd.Env = h.work, h.env
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				group := cmd.Process.Pid
				t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = cmd.Wait() // also for its streams, as hosts do
				}()
				// The event ends late for some, so that the signal hits before the judgement.
				go func() {
					if delay%2 == 1 {
						time.Sleep(200 * time.Millisecond) // shield waits for the event, so that its processes are found
					}
					_, _ = io.WriteString(in, hookWipe)
					_ = in.Close()
				}()
				hit := signalNamed(group, c.name, c.signal, time.Duration(delay)*2*time.Millisecond, ended)
				hits[c.name] += hit
				select {
				case <-ended:
				case <-time.After(time.Minute):
					t.Fatalf("no answer; %d processes were hit, left are %v", hit, members(group))
				}
				if status := cmd.ProcessState.ExitCode(); status != 2 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"deny"`) || errs.Len() == 0 {
					t.Errorf("status %d, stdout %q, stderr %q", status, out.String(), errs.String())
				}
			})
		}
	}
	for _, name := range []string{"shield", "sleep", "sh"} {
		if hits[name] == 0 {
			t.Errorf("no %s was hit", name)
		}
	}
	t.Log(hits)
}

// signalNamed sends a signal to the processes of a group with a name, some time after
// shield has started, or as soon as there is one, until one was hit or the line has ended.
func signalNamed(group int, name string, signal syscall.Signal, delay time.Duration, ended chan struct{}) (hit int) {
	wait := "shield"
	if name != "sh" && delay == 0 {
		wait = name
	}
	for started := false; ; {
		select {
		case <-ended:
			return hit
		default:
		}
		all := members(group)
		if !started {
			for _, p := range all {
				started = started || p.name == wait
			}
			if started {
				time.Sleep(delay)
			}
			continue
		}
		for _, p := range all {
			if p.name == name && syscall.Kill(p.pid, signal) == nil {
				hit++
			}
		}
		return hit
	}
}

// TestHookLineOpenStreams checks that a line ends at its deadline, and at once where shield
// has answered, whatever keeps the streams of shield open, and that a host which waits for
// the streams of the line waits no longer.
func TestHookLineOpenStreams(t *testing.T) {
	t.Parallel()
	// Machines do much besides; finish waits 20 s for open streams, which is too long for each.
	for name, c := range map[string]struct {
		script string
		status int
		sleep  string // until the deadline of the line
		most   time.Duration
	}{
		"a child, and shield has answered":  {`sleep 90 & echo '0{}'`, 0, "sleep 60", 15 * time.Second},
		"a child, and shield is gone":       {`sleep 90 & exit 1`, 2, "sleep 60", 15 * time.Second},
		"shield itself, which has answered": {`echo '0{}'; exec sleep 90`, 0, "sleep 60", 15 * time.Second},
		"shield itself, which says nothing": {`exec sleep 90`, 2, "sleep 5", 20 * time.Second},
		"a child, and shield says nothing":  {`sleep 90 & wait`, 2, "sleep 5", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.script(c.script)
			h.edit("sleep 25", c.sleep)
			cmd := exec.Command("/bin/sh", "-c", h.line())
			cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, strings.NewReader(hookRead)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			begun := time.Now()
			_, errs, status := h.finish(cmd)
			took := time.Since(begun)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			if status != c.status || took > c.most {
				t.Errorf("status %d after %s, %q; want %d within %s", status, took, errs, c.status, c.most)
			}
		})
	}
}

// TestHookLineReplaced replaces shield as installers do, and checks that what took its
// place never runs, that the same program in a new file goes on, and that the next answer
// needs no digest.
func TestHookLineReplaced(t *testing.T) {
	t.Parallel()
	evil := "#!/bin/sh\ntouch \"$HOME/ran\"\necho '0{}'\n"
	for name, c := range map[string]struct {
		replace func(*hooked)
		status  int
	}{
		"another file under its name": {func(h *hooked) { h.write(h.bin, evil); h.mode(h.bin, 0o755) }, 2},
		"another file of the same time": {func(h *hooked) {
			info, err := os.Stat(h.bin)
			if err != nil {
				h.t.Fatal(err)
			}
			h.write(h.bin, evil)
			h.mode(h.bin, 0o755)
			_ = os.Chtimes(h.bin, info.ModTime(), info.ModTime())
		}, 2},
		"the hook command contains a variable or a wildcard": {func(h *hooked) {
			h.copy(h.bin)
			h.reinstall()
			if err := os.WriteFile(h.bin, []byte(evil), 0o755); err != nil { // the same file
				h.t.Fatal(err)
			}
		}, 2},
		"a link to another file": {func(h *hooked) {
			h.write(h.bin+".evil", evil)
			h.mode(h.bin+".evil", 0o755)
			_ = os.Remove(h.bin)
			_ = os.Symlink(h.bin+".evil", h.bin)
		}, 2},
		"its folder": {func(h *hooked) {
			_ = os.Rename(filepath.Dir(h.bin), filepath.Dir(h.bin)+".old")
			h.write(h.bin, evil)
			h.mode(h.bin, 0o755)
		}, 2},
		"the same program once more": {func(h *hooked) { h.copy(h.bin) }, 0},
		"no hard link can be made":   {func(h *hooked) { h.reinstall(); _ = os.Remove(h.recordFile() + ".program") }, 0},
		"a home that is a link":      {func(h *hooked) { _ = os.Rename(h.home, h.home+".real"); _ = os.Symlink(h.home+".real", h.home) }, 0},
		"variables of the environment": {func(h *hooked) {
			h.write(h.bin, evil)
			h.mode(h.bin, 0o755)
			h.env = append(h.env, "i=0", "d=", "v=", "IFS=:", "s=1", "t=1", "HOME=/nowhere", "PATH=/nowhere", "ENV=/dev/null")
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			c.replace(h)
			for range 2 {
				out, errs, status := h.run(hookRead, "/bin/sh", "-c", h.line())
				if status != c.status || status == 2 && !strings.Contains(out+errs, "hook status --accept") {
					t.Errorf("status %d, %q, %q; want %d", status, out, errs, c.status)
				}
			}
			if _, err := os.Stat(filepath.Join(h.home, "ran")); err == nil {
				t.Error("the program that took shield's place ran")
			}
		})
	}
}

// reinstall installs the hook once more, with the program as it is.
func (h *hooked) reinstall() {
	h.t.Helper()
	if _, errs, status := h.run("", h.bin, "hook", "install", "claude-code", "--timeout", "20s"); status != 0 {
		h.t.Fatalf("install: status %d, %s", status, errs)
	}
}

// TestHookLineHome checks that another HOME in a host's environment does not change whose
// files are protected.
func TestHookLineHome(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.write(filepath.Join(h.home, ".docker", "config.json"), "{}")
	h.env = append(h.env, "HOME="+h.work)
	event := `{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"` + filepath.Join(h.home, ".docker", "config.json") + `"}}`
	if out, errs, status := h.run(event, "/bin/sh", "-c", h.line()); status != 2 {
		t.Errorf("status %d, %q, %q: credentials can be read", status, out, errs)
	}
}

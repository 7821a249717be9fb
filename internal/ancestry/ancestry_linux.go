package ancestry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ProcessAndAncestors returns a process and its ancestors, nearest first. On an error it also returns the processes
// read so far; those above are unknown.
func ProcessAndAncestors(pid int) ([]Process, error) {
	var out []Process
	for pid > 0 {
		if len(out) == maxAncestors {
			return out, fmt.Errorf("process %d has more than %d ancestors", out[0].PID, maxAncestors)
		}
		p, err := readProcess(pid)
		if err != nil {
			return out, fmt.Errorf("process %d cannot be read: %w", pid, err)
		}
		// A parent that started later is another process that reuses the PID.
		if n := len(out); n > 0 && p.StartTicks > out[n-1].StartTicks {
			return out, fmt.Errorf("process %d ended while its child processes were read", pid)
		}
		out = append(out, p)
		pid = p.Parent
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no process has the ID %d", pid)
	}
	return out, nil
}

// Running returns the running processes that can be read, in no order.
func Running() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxRunningProcesses + 1)
	if err != nil {
		return nil, err
	}
	if len(names) > maxRunningProcesses {
		return nil, fmt.Errorf("more than %d processes run; end some of them", maxRunningProcesses)
	}
	var out []Process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil { // otherwise it has ended, or is hidden from this user
			out = append(out, p)
		}
	}
	return out, nil
}

// Environ returns the environment with which a process was started. Only the process itself can
// overwrite it.
func Environ(pid int) ([]string, error) {
	text, err := readFile(pid, "environ", maxArgsOrEnvironBytes)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

func readProcess(pid int) (Process, error) {
	stat, err := readFile(pid, "stat", 4<<10)
	if err != nil {
		return Process{}, err
	}
	p, err := parseStat(string(stat))
	if err != nil || p.PID != pid {
		return Process{}, errors.Join(err, fmt.Errorf("/proc/%d/stat is malformed", pid))
	}
	line, err := readFile(pid, "cmdline", maxArgsOrEnvironBytes)
	if err != nil {
		return Process{}, err
	}
	if text := strings.TrimSuffix(string(line), "\x00"); text != "" {
		p.Args = strings.Split(text, "\x00")
	}
	if exe, err := os.Readlink(procFilePath(pid, "exe")); err == nil { // fails for another user's process and for a kernel thread
		p.Exe = strings.TrimSuffix(exe, " (deleted)")
	}
	return p, nil
}

// parseStat parses "PID (NAME) STATE PARENT GROUP SESSION TTY …" up to field 22, the start.
func parseStat(text string) (p Process, err error) {
	pid, rest, ok := strings.Cut(text, " (")
	end := strings.LastIndexByte(rest, ')') // NAME can contain parentheses and spaces
	if !ok || end < 0 {
		return p, errors.New("the process name is missing")
	}
	p.Name = rest[:end]
	fields := strings.Fields(rest[end+1:]) // fields from the third on
	if len(fields) < 20 {
		return p, errors.New("/proc/PID/stat has fewer than 22 fields")
	}
	for _, f := range []struct {
		text string
		to   *int
	}{{pid, &p.PID}, {fields[1], &p.Parent}, {fields[4], &p.TTY}} {
		n, e := strconv.Atoi(f.text)
		err = errors.Join(err, e)
		*f.to = n
	}
	start, e := strconv.ParseUint(fields[19], 10, 64)
	p.StartTicks = start
	return p, errors.Join(err, e)
}

func procFilePath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// readFile returns a file of a process. Package os would register each of them with the poller: three system
// calls more for a file that is always ready.
func readFile(pid int, name string, most int) ([]byte, error) {
	file := procFilePath(pid, name)
	fd, err := retryOnEINTR(func() (int, error) { return syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer syscall.Close(fd)
	text := make([]byte, 0, 512)
	for {
		text = slices.Grow(text, 256)
		n, err := retryOnEINTR(func() (int, error) { return syscall.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: file, Err: err}
		}
		if text = text[:len(text)+n]; n == 0 {
			return bytes.ToValidUTF8(text, []byte("?")), nil
		}
		if len(text) > most {
			return nil, fmt.Errorf("%s has more than %d bytes", file, most)
		}
	}
}

// retryOnEINTR repeats a system call that a signal has interrupted.
func retryOnEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}

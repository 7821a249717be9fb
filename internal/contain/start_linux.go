//go:build amd64 || arm64

package contain

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// argv0 is what the process is called that contains a program: it is this program again,
// and begins in [init], before the rest of shield is there.
const argv0 = "shield-contained"

// The files that it is given beside the standard ones.
const (
	specFile   = 3 // an [order]
	reportFile = 4 // takes "ready", or a stage and what went wrong there
)

// An order is what the containing process is to do.
type order struct {
	Profile    Profile
	Path       string
	Argv, Env  []string
	Dir        string
	Tmp        string // the program's own temporary folder
	Private    bool   // it is in a /tmp of the program's own
	Namespaces bool
	Hurry      bool // who started it ends its group soon after it was told to end
	Probe      bool // nothing is started
}

// A Process is a contained program: the process that contains it, which ends with its
// status, or 128 and the signal that ended it.
type Process struct {
	*exec.Cmd
	Used Mechanism
	tmp  string
	seen chan struct{} // closed when nothing more is refused
}

// Start starts the program of a command in a profile, by as many of the mechanisms as the
// kernel offers; Landlock is always one of them. It may make the command more than once. Streams of it that are not
// files need a Wait, and what Start leaves behind [Process.End]. refused is told of what the program is
// refused, each once.
func Start(command func() *exec.Cmd, p *Profile, with Mechanism, refused func(Refusal)) (*Process, error) {
	level, err := abi()
	if err != nil {
		return nil, err
	}
	if err := plain(p); err != nil {
		return nil, err
	}
	if with&Namespaces != 0 {
		started, err := start(command(), &order{Profile: *p, Namespaces: true}, refused)
		var stage *stageError
		if err == nil || !(errors.As(err, &stage) && stage.stage == "namespaces" || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)) {
			return started, err
		}
	}
	switch {
	case level < truncates:
		return nil, &UnavailableError{"namespaces are not available, and Landlock before Linux 6.2 cannot stop a program from emptying files"}
	case with&Landlock == 0:
		return nil, &UnavailableError{"namespaces are not available, and Landlock alone cannot protect files inside the workspace: git hooks, agent settings"}
	}
	return start(command(), &order{Profile: *p}, refused)
}

// truncates is the version of Landlock from which on it bounds who empties files.
const truncates = 3

// start starts the process that contains a command, and waits until the program runs.
func start(cmd *exec.Cmd, o *order, refused func(Refusal)) (_ *Process, err error) {
	p := &Process{Cmd: cmd, Used: Landlock}
	defer func() {
		if err != nil {
			p.End()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	o.Hurry = cmd.SysProcAttr.Setpgid
	o.Path, o.Argv, o.Env, o.Dir = cmd.Path, cmd.Args, cmd.Env, cmd.Dir
	if p.tmp, err = os.MkdirTemp("", "shield-"); err != nil {
		return nil, err
	}
	o.Tmp = p.tmp
	spec, err := memory(o)
	if err != nil {
		return nil, err
	}
	defer spec.Close()
	report, its, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			report.Close()
		}
	}()
	cmd.Path, cmd.Args, cmd.Dir = self, []string{argv0}, "/"
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=32MiB", "GOTRACEBACK=none"}
	cmd.ExtraFiles = []*os.File{spec, its}
	if o.Namespaces {
		p.Used |= Namespaces
		own(cmd.SysProcAttr, o.Profile.Network)
	}
	err = cmd.Start()
	its.Close()
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(report)
	line, err := lines.ReadString('\n')
	if stage, text, _ := strings.Cut(strings.TrimSpace(line), " "); stage != "ready" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if stage == "" {
			return nil, &stageError{"start", fmt.Sprint("the process ended: ", err)}
		}
		if code, err := strconv.Atoi(text); err == nil && stage == "exec" {
			return nil, syscall.Errno(code)
		}
		return nil, &stageError{stage, text}
	}
	p.seen = make(chan struct{})
	go func() {
		defer close(p.seen)
		defer report.Close()
		for d := json.NewDecoder(lines); ; {
			var r Refusal
			if d.Decode(&r) != nil {
				return
			}
			refused(r)
		}
	}()
	return p, nil
}

// End waits until all refusals are told, and removes what a contained program has left in its
// temporary folder.
func (p *Process) End() {
	if p.seen != nil {
		<-p.seen
	}
	if p.tmp != "" {
		_ = os.RemoveAll(p.tmp)
	}
}

// own gives a process namespaces of its own. Users keep their numbers.
func own(a *syscall.SysProcAttr, network bool) {
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if !network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	uid, gid, size := os.Geteuid(), os.Getegid(), 1
	if uid == 0 {
		gid, size = 0, 1<<31-2
		a.GidMappingsEnableSetgroups = true
	} else { // to make the view; the program gets none of them
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: size}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: size}}
}

// memory returns an open file of JSON that lies on no disk.
func memory(v any) (*os.File, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// plain returns an error if a profile cannot be put into force as it is.
func plain(p *Profile) error {
	for _, path := range append(append([]string{}, p.Hidden...), p.Write...) {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("containment: %.80q is not an absolute path", path)
		}
	}
	for _, path := range p.Hidden {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 {
			return fmt.Errorf("containment: %.200q has a second hard link, by which a contained program could read it; remove one of the two links", path)
		}
	}
	return nil
}

// Probe says what works here. It tries it.
var Probe = sync.OnceValue(func() []Means {
	level, err := abi()
	if err != nil {
		var no *UnavailableError
		errors.As(err, &no)
		return []Means{{"Landlock", no.Why, false}}
	}
	out := []Means{{"Landlock", fmt.Sprintf("ABI %d", level), true}}
	for _, m := range []struct {
		name       string
		namespaces bool
	}{{"seccomp", false}, {"namespaces", true}} {
		p, err := start(&exec.Cmd{}, &order{Probe: true, Namespaces: m.namespaces}, func(Refusal) {})
		found := Means{m.name, "", err == nil}
		if err != nil {
			found.About = err.Error()
		} else {
			_ = p.Wait()
			p.End()
		}
		out = append(out, found)
	}
	return out
})

// abi returns the version of Landlock that the kernel has.
func abi() (int, error) {
	level, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS:
		return 0, &UnavailableError{"the kernel has no Landlock, which Linux has since 5.13"}
	case errno == unix.EOPNOTSUPP:
		return 0, &UnavailableError{"Landlock is turned off in the kernel: it is not in the list of the boot option lsm="}
	case errno != 0:
		return 0, &UnavailableError{"Landlock: " + errno.Error()}
	}
	return int(level), nil
}

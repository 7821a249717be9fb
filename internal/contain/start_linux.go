//go:build amd64 || arm64

package contain

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/shieldcli/shield/internal/confine"
)

// A Process is a contained program, represented by the process that contains it. That process ends
// with the program's status, or 128 plus the signal that killed it.
type Process struct {
	*exec.Cmd
	UsedMechanisms                  Mechanism
	HardLinkSearchIncompleteFolders []string // hidden folders with too many names to look through all of them for hard links
	tmpFolder                       string
	socketToContainingProcess       *os.File      // message socket to the shield process that restricts and starts the program
	deniedAccessReportsDone         chan struct{} // closed when no more accesses are reported
}

// Start starts a command that can access only what p permits. It uses Landlock and seccomp, and
// also namespaces if the parameter with contains [Namespaces] and the kernel permits them. If with
// does not contain [Landlock], Start fails unless it can enforce all of p.
//
// Start can call the function command twice, and calls refused once for each denied access. The
// caller calls Wait if a stream of the command is not an [os.File], and then
// [Process.WaitForReportsAndCleanUp].
func Start(command func() *exec.Cmd, p *Profile, with Mechanism, refused func(Refusal)) (*Process, error) {
	level, err := landlockABI()
	if err != nil {
		return nil, err
	}
	if err := checkProfilePathsAbsolute(p); err != nil {
		return nil, err
	}
	need := with&Landlock == 0
	links := func() ([]string, error) { // uses p.HiddenPaths: the paths that profileToEnforce adds are other mounts of the same files
		unseen, err := checkNoUnhiddenHardLinks(p.HiddenPaths, need)
		if err == nil && need && len(unseen) > 0 {
			err = &ContainmentUnavailableError{fmt.Sprintf("--contain hides the folder %.200q, which has too many files to search for hard links; move files that need no protection to another folder, or use --contain without require", unseen[0])}
		}
		return unseen, err
	}
	own, err := profileToEnforce(p)
	if err != nil {
		return nil, err
	}
	if with&Namespaces != 0 {
		started, err := startWithInstructions(command(), own, &confine.ContainmentInstructions{UsesNamespaces: true}, level, links, refused)
		var stage *containmentStageError
		if err == nil || !(errors.As(err, &stage) && stage.failedStage == confine.FailedStageNamespaceSetup || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)) {
			return started, err
		}
	}
	switch {
	case level < minTruncateLandlockABI:
		return nil, &ContainmentUnavailableError{"namespaces are not available, and Landlock before Linux 6.2 cannot stop a program from emptying files; use Linux 6.2 or later, or allow user namespaces"}
	case need:
		return nil, &ContainmentUnavailableError{"namespaces are not available, and Landlock alone cannot protect git hooks and agent settings in the workspace, or file permissions; allow user namespaces"}
	}
	return startWithInstructions(command(), own, &confine.ContainmentInstructions{}, level, links, refused)
}

// profileToEnforce returns the profile to enforce. It creates the folders in FoldersToCreate, and
// adds the other paths at which hidden files are mounted.
func profileToEnforce(p *Profile) (*Profile, error) {
	all, err := readMounts()
	if err != nil {
		return nil, fmt.Errorf("containment: mounts: %w", err)
	}
	own := *p
	own.HiddenPaths = append(slices.Clone(p.HiddenPaths), hiddenFilePathsInOtherMounts(p.HiddenPaths, all)...)
	own.WritablePaths = slices.DeleteFunc(slices.Clone(p.WritablePaths), func(path string) bool {
		return slices.Contains(p.FoldersToCreate, path) && os.MkdirAll(path, 0o755) != nil // drop folders that cannot be created
	})
	return &own, nil
}

// minTruncateLandlockABI is the first Landlock ABI version that restricts truncating files.
const minTruncateLandlockABI = 3

// startWithInstructions starts the process that contains a command, and waits until the program runs. The rules are
// built, and hard links searched, while the process starts.
func startWithInstructions(cmd *exec.Cmd, profile *Profile, o *confine.ContainmentInstructions, abiVersion int, searchHardLinks func() ([]string, error), onRefusal func(Refusal)) (_ *Process, err error) {
	p := &Process{Cmd: cmd, UsedMechanisms: Landlock}
	defer func() {
		if err != nil {
			p.WaitForReportsAndCleanUp()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if p.tmpFolder, err = os.MkdirTemp("", "shield-"); err != nil {
		return nil, err
	}
	if err := os.Mkdir(p.tmpFolder+"/own", 0o700); err != nil {
		return nil, err
	}
	rules, err := newRuleset(abiVersion)
	if err != nil {
		return nil, fmt.Errorf("containment: Landlock: %w", err)
	}
	rulesFile := os.NewFile(uintptr(rules.fd), "rules")
	defer rulesFile.Close()
	o.HiddenPaths, o.VisibleTmpPaths, o.WritablePaths, o.ReadOnlyPaths, o.AllowsNetwork = profile.HiddenPaths, profile.VisibleInTmp, profile.WritablePaths, profile.ReadOnlyPaths, profile.AllowsNetwork
	o.ProgramPath, o.Argv, o.Env, o.WorkingFolder = cmd.Path, cmd.Args, cmd.Env, cmd.Dir
	o.TmpFolder, o.MustKillProgramAfterSIGTERM = p.tmpFolder, cmd.SysProcAttr.Setpgid
	o.ReadablePathLandlockRights, o.WritablePathLandlockRights = readFileRights&rules.handledRights, (writeFileRights|changeFolderRights)&rules.handledRights
	o.SeccompFilterHex, o.PathSyscallsReportedToWatcher = hex.EncodeToString(buildSeccompFilter(o)), watchedCalls
	for _, texts := range [][]string{o.HiddenPaths, o.VisibleTmpPaths, o.WritablePaths, o.ReadOnlyPaths, o.Argv, o.Env, {o.ProgramPath, o.WorkingFolder}} {
		if slices.ContainsFunc(texts, func(s string) bool { return strings.IndexByte(s, 0) >= 0 }) {
			return nil, syscall.EINVAL
		}
	}
	order, err := newMemoryFile(o.Encode())
	if err != nil {
		return nil, err
	}
	defer order.Close()
	line, its, err := newSocketPair()
	if err != nil {
		return nil, err
	}
	p.socketToContainingProcess = line
	cmd.Path, cmd.Args, cmd.Dir = self, []string{confine.Argv0}, "/"
	// More than one P, since a P blocked in the kernel would delay the other goroutines.
	cmd.Env = []string{"GOMAXPROCS=4", "GOGC=off", "GOMEMLIMIT=32MiB", "GOTRACEBACK=none", confine.ContainedEnvVarName + "=1"}
	cmd.ExtraFiles = []*os.File{order, its, rulesFile}
	if o.UsesNamespaces {
		p.UsedMechanisms |= Namespaces
		setNamespaces(cmd.SysProcAttr, o.AllowsNetwork)
	}
	made := make(chan error, 1)
	go func() {
		unseen, err := searchHardLinks()
		p.HardLinkSearchIncompleteFolders = unseen
		made <- cmp.Or(err, rules.addPathRulesFromInstructions(o))
	}()
	err = cmd.Start()
	its.Close()
	if wrong := <-made; err == nil && wrong != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		err = wrong
	}
	if err != nil {
		line.Close()
		return nil, err
	}
	_, _ = line.Write([]byte{confine.ParentMessageRulesetComplete}) // it fails only if the process has ended
	kind, text := p.readMessage()
	if kind != confine.ChildMessageProgramRuns {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		line.Close()
		switch code, err := strconv.Atoi(text); {
		case kind == confine.ChildMessageExecFailed && err == nil:
			return nil, syscall.Errno(code)
		case kind == confine.ChildMessageContainmentFailed:
			stage, why, _ := strings.Cut(text, "\x00")
			return nil, &containmentStageError{stage, why}
		}
		return nil, &containmentStageError{"start", "the shield process that applies containment ended: " + cmd.ProcessState.String() + "; run 'shield doctor'"}
	}
	p.deniedAccessReportsDone = make(chan struct{})
	go func() {
		defer close(p.deniedAccessReportsDone)
		for {
			kind, text := p.readMessage()
			if kind == 0 {
				return
			}
			onRefusal(parseRefusal(kind, text))
		}
	}()
	return p, nil
}

// readMessage waits for a message; its kind is 0 at the end.
func (p *Process) readMessage() (kind byte, text string) {
	b := make([]byte, confine.MaxChildMessageBytes)
	n, err := p.socketToContainingProcess.Read(b)
	if err != nil || n == 0 {
		return 0, ""
	}
	return b[0], string(b[1:n])
}

// parseRefusal parses a message about a denied access.
func parseRefusal(kind byte, text string) Refusal {
	switch kind {
	case confine.ChildMessageReadDenied:
		return Refusal{Read, text}
	case confine.ChildMessageFileChangeDenied:
		return Refusal{Write, text}
	}
	if len(text) < 6 {
		return Refusal{Network, ""}
	}
	addr, port := text[:len(text)-2], text[len(text)-2:]
	ip, _ := netip.AddrFromSlice([]byte(addr))
	return Refusal{Network, netip.AddrPortFrom(ip, binary.BigEndian.Uint16([]byte(port))).String()}
}

// Terminate ends the program with its remaining children. If the command has its own process group,
// the program is killed a second later.
func (p *Process) Terminate() error {
	_, err := p.socketToContainingProcess.Write([]byte{confine.ParentMessageEndProgram})
	return err
}

// WaitForReportsAndCleanUp waits until no more accesses are reported, and removes the program's temporary folder.
func (p *Process) WaitForReportsAndCleanUp() {
	if p.deniedAccessReportsDone != nil {
		<-p.deniedAccessReportsDone
		p.socketToContainingProcess.Close()
	}
	if p.tmpFolder != "" {
		_ = os.RemoveAll(p.tmpFolder)
	}
}

// newSocketPair returns two sockets for messages to each other.
func newSocketPair() (ours, its *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(fds[0], true) // so that reading does not block an OS thread
	return os.NewFile(uintptr(fds[0]), "line"), os.NewFile(uintptr(fds[1]), "line"), nil
}

// setNamespaces makes a process start in its own namespaces. User IDs stay the same.
func setNamespaces(a *syscall.SysProcAttr, allowsNetwork bool) {
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if !allowsNetwork {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	uid, gid, size := os.Geteuid(), os.Getegid(), 1
	if uid == 0 {
		gid, size = 0, 1<<31-2
		a.GidMappingsEnableSetgroups = true
	} else { // capabilities for mounting and network setup; they are dropped before the program starts
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: size}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: size}}
}

// newMemoryFile returns an open in-memory file (memfd).
func newMemoryFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err = f.Write(text); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkProfilePathsAbsolute returns an error if a hidden or writable path of a profile is not
// absolute.
func checkProfilePathsAbsolute(p *Profile) error {
	for _, path := range append(append([]string{}, p.HiddenPaths...), p.WritablePaths...) {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("containment: %.80q is not an absolute path; write it in full", path)
		}
	}
	return nil
}

// ProbeKernelFeatures tests which kernel features work on this machine.
var ProbeKernelFeatures = sync.OnceValue(func() []KernelFeature {
	level, err := landlockABI()
	if err != nil {
		var no *ContainmentUnavailableError
		errors.As(err, &no)
		return []KernelFeature{{"Landlock", no.Why, false}}
	}
	out := []KernelFeature{{"Landlock", fmt.Sprintf("ABI %d", level), true}}
	for _, m := range []struct {
		name       string
		namespaces bool
	}{{"seccomp", false}, {"namespaces", true}} {
		p, err := startWithInstructions(&exec.Cmd{}, &Profile{}, &confine.ContainmentInstructions{OnlyTestsContainment: true, UsesNamespaces: m.namespaces}, level, func() ([]string, error) { return nil, nil }, func(Refusal) {})
		found := KernelFeature{m.name, "", err == nil}
		if err != nil {
			found.ProbeDetail = err.Error()
		} else {
			_ = p.Wait()
			p.WaitForReportsAndCleanUp()
		}
		out = append(out, found)
	}
	return out
})

// landlockABI returns the kernel's Landlock ABI version.
func landlockABI() (int, error) {
	level, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS:
		return 0, &ContainmentUnavailableError{"the kernel has no Landlock; use Linux 5.13 or later"}
	case errno == unix.EOPNOTSUPP:
		return 0, &ContainmentUnavailableError{"Landlock is turned off in the kernel: it is not in the list of the boot option lsm=; add it there"}
	case errno != 0:
		return 0, &ContainmentUnavailableError{"Landlock: " + errno.Error()}
	}
	return int(level), nil
}

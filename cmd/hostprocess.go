package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/pkg/host"
)

// callingHostProcess returns the process of the asking host, as [runningHost] does.
func (w *Environment) callingHostProcess(h *host.Host) (*host.HostProcess, error) {
	if w.findRunningHost != nil {
		return w.findRunningHost(w, h)
	}
	return runningHost(w, h)
}

// runningHost returns the process of the asking host, nil if no ancestor of shield is that host. An
// error means that no person is at its terminal, or that the ancestors could not be read.
func runningHost(w *Environment, h *host.Host) (*host.HostProcess, error) {
	all, err := ancestry.ProcessAndAncestors(w.verdictRequesterPID)
	if errors.Is(err, ancestry.ErrUnsupported) {
		return nil, nil
	}
	at, args, file := h.FindHostProcess(all) // among the ancestors that could be read
	if at < 0 {
		return nil, err
	}
	s := personAtTerminalCheck{ancestorsOf: ancestry.ProcessAndAncestors, runningProcesses: ancestry.Running, environ: ancestry.Environ, shieldPath: w.ShieldExecutablePath}
	if err := s.checkHostAttended(all[at:]); err != nil {
		return nil, err
	}
	r := &host.HostProcess{Args: args, IsStdioTerminal: all[at].TTY != 0}
	for _, stream := range []string{"0", "1"} {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", all[at].PID, stream))
		r.IsStdioTerminal = r.IsStdioTerminal && err == nil && (strings.HasPrefix(to, "/dev/pts/") || strings.HasPrefix(to, "/dev/tty"))
	}
	r.Version = packageVersion(file, h.NPMPackage())
	return r, nil
}

// checkHostAttended returns why no person attends the host process all[0]: shield or another host
// started it for an agent, or a program types at its terminal.
func (s *personAtTerminalCheck) checkHostAttended(all []ancestry.Process) error {
	if env, err := s.environ(all[0].PID); err == nil && (host.OfEnvironment(env) != nil || slices.Contains(env, launch.JudgedCommandEnvEntry)) {
		return errors.New("the host was started by a command of an agent; start it from your own shell")
	}
	return s.checkTerminalsNotAutomated(all, 0)
}

// Bounds of the search for a host's package.
const (
	maxPackageJSONSearchDepth = 6
	maxPackageJSONBytes       = 1 << 20 // bytes
)

// packageVersion returns the version of the npm package with the given name that contains a file, "" if there is
// none. The program for one system may be in a package of its own, NAME-SYSTEM.
func packageVersion(file, name string) string {
	if file == "" || name == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	for range maxPackageJSONSearchDepth {
		if file = filepath.Dir(file); !filepath.IsAbs(file) {
			return ""
		}
		f, err := os.Open(filepath.Join(file, "package.json"))
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxPackageJSONBytes))
		f.Close()
		var p struct{ Name, Version string }
		if err == nil && json.Unmarshal(text, &p) == nil && (p.Name == name || strings.HasPrefix(p.Name, name+"-")) {
			return p.Version
		}
	}
	return ""
}

// installedHostVersion returns the version of a host's program in PATH, "" if unknown.
func installedHostVersion(w *Environment, h *host.Host) string {
	programs, _ := h.InstallationIndicators()
	for _, dir := range filepath.SplitList(w.Getenv("PATH")) {
		for _, name := range programs {
			file := filepath.Join(dir, name)
			if _, err := os.Stat(file); err != nil || !filepath.IsAbs(file) {
				continue
			}
			return packageVersion(file, h.NPMPackage())
		}
	}
	return ""
}

package cmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
)

// sessionBusVariable names the bus for desktop notifications. These contain the code of the approval page,
// and hosts forward variables from a project's settings: with a bus of its own, an agent could read
// the code.
const sessionBusVariable = "DBUS_SESSION_BUS_ADDRESS"

// getenvExceptUntrustedDBus returns the value of an environment variable. For
// DBUS_SESSION_BUS_ADDRESS it returns "" if the bus may not be that of the user's session.
func (w *Environment) getenvExceptUntrustedDBus(name string) string {
	value := w.Getenv(name)
	if name != sessionBusVariable || value == "" || value == fmt.Sprintf("unix:path=/run/user/%d/bus", os.Getuid()) {
		return value
	}
	trusted := w.isUserSessionDBusAddress
	if trusted == nil {
		trusted = w.matchesSessionBus
	}
	if !trusted(value) {
		return ""
	}
	return value
}

// matchesSessionBus reports whether a D-Bus address is that of the user's session: the address in
// the environment of the topmost ancestor process that has one. If the host is known, only the host
// process and its ancestors count. It returns true if ancestors cannot be read on this system.
func (w *Environment) matchesSessionBus(value string) bool {
	start := os.Getpid()
	if w.requestFromServiceClient != nil {
		start = w.verdictRequesterPID
	}
	all, err := ancestry.ProcessAndAncestors(start)
	if errors.Is(err, ancestry.ErrUnsupported) {
		return true
	}
	if w.callingHost != nil {
		if at, _, _ := w.callingHost.FindHostProcess(all); at >= 0 {
			all = all[at:]
		}
	}
	return sessionBusOfTopmostAncestor(all, ancestry.Environ) == value
}

// sessionBusOfTopmostAncestor returns the address of the D-Bus session bus from the environment of the topmost
// process that has one there. ancestors lists the ancestors of a process, nearest first.
func sessionBusOfTopmostAncestor(ancestors []ancestry.Process, environ func(pid int) ([]string, error)) string {
	for i := len(ancestors) - 1; i >= 0; i-- {
		env, err := environ(ancestors[i].PID)
		if err != nil {
			continue // the environment cannot be read, for example because the process belongs to another user
		}
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, sessionBusVariable+"="); ok && value != "" {
				return value
			}
		}
	}
	return ""
}

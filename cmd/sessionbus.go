package cmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
)

// busVariable names the bus on which desktop notifications are sent. They hold the code of
// the approval page, and hosts forward variables that a project's settings set: on a bus of
// its own, an agent would read the code.
const busVariable = "DBUS_SESSION_BUS_ADDRESS"

// sessionEnv returns variables as w.Getenv does, without a bus that the user's session may
// not have.
func (w *World) sessionEnv(name string) string {
	value := w.Getenv(name)
	if name != busVariable || value == "" || value == fmt.Sprintf("unix:path=/run/user/%d/bus", os.Getuid()) {
		return value
	}
	trusted := w.ownBus
	if trusted == nil {
		trusted = w.sessionBus
	}
	if !trusted(value) {
		return ""
	}
	return value
}

// sessionBus reports whether a bus is that of the user's session, with which the host was
// started, or the first process above this one that was started with any.
func (w *World) sessionBus(value string) bool {
	start := os.Getpid()
	if w.served != nil {
		start = w.parent
	}
	all, err := ancestry.Of(start)
	if errors.Is(err, ancestry.ErrUnsupported) {
		return true
	}
	if w.calling != nil {
		if at, _, _ := w.calling.Running(all); at >= 0 {
			all = all[at:]
		}
	}
	return firstBus(all, ancestry.Environ) == value
}

// firstBus returns the bus that the first of some processes with one was started with.
func firstBus(all []ancestry.Process, environ func(pid int) ([]string, error)) string {
	for i := len(all) - 1; i >= 0; i-- {
		env, err := environ(all[i].PID)
		if err != nil {
			continue // another user's process
		}
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, busVariable+"="); ok && value != "" {
				return value
			}
		}
	}
	return ""
}

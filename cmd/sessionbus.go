package cmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
)

// busVariable names the bus for desktop notifications. These contain the code of the approval page,
// and hosts forward variables from a project's settings: with a bus of its own, an agent could read
// the code.
const busVariable = "DBUS_SESSION_BUS_ADDRESS"

// sessionEnv returns a variable like w.Getenv, but not a bus that may not be the user's.
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

// sessionBus reports whether a bus is that of the user's session: the one with which the topmost ancestor
// that has one was started, from the host upwards if the host is known. It returns true if ancestors
// cannot be read on this system.
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

// firstBus returns the bus of the topmost process that was started with one; all has the ancestors of a
// process, nearest first.
func firstBus(all []ancestry.Process, environ func(pid int) ([]string, error)) string {
	for i := len(all) - 1; i >= 0; i-- {
		env, err := environ(all[i].PID)
		if err != nil {
			continue // unreadable: it belongs to another user
		}
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, busVariable+"="); ok && value != "" {
				return value
			}
		}
	}
	return ""
}

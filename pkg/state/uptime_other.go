//go:build !linux

package state

import "time"

// Uptime is not known on this system.
func Uptime() (boot string, up time.Duration, ok bool) { return "", 0, false }

//go:build !linux

package state

import "time"

// Uptime is unknown on this system.
func Uptime() (boot string, up time.Duration, ok bool) { return "", 0, false }

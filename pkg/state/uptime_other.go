//go:build !linux

package state

import "time"

// BootIDAndUptime is unknown on this system.
func BootIDAndUptime() (boot string, up time.Duration, ok bool) { return "", 0, false }

//go:build !linux

package state

import "time"

// BootIDAndUptime always returns ok = false on this system: boot ID and uptime are read only on
// Linux.
func BootIDAndUptime() (boot string, up time.Duration, ok bool) { return "", 0, false }

//go:build unix

package e2e

import "syscall"

// Tests have no terminal, so that none of them asks the person who runs them.
func init() { _, _ = syscall.Setsid() }

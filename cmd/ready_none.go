//go:build !linux && !darwin

package cmd

// isReadable always returns false on systems without a service.
func isReadable(any) bool { return false }

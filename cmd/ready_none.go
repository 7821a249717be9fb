//go:build !linux && !darwin

package cmd

// ready always returns false on systems without a service.
func isReadable(any) bool { return false }

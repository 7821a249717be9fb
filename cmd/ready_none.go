//go:build !linux && !darwin

package cmd

// canReadWithoutBlocking always returns false on systems without a service.
func canReadWithoutBlocking(any) bool { return false }

//go:build !unix

package watch

// Taken does nothing: no command line with [InstalledLineFlag] is installed on this system.
func WaitUntilRead(int, int) {}

//go:build !unix

package watch

// WaitUntilRead does nothing: no command line with [InstalledLineFlag] is installed on this system.
func WaitUntilRead(int, int) {}

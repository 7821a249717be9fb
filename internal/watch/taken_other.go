//go:build !unix

package watch

// Taken does nothing: no command line with [Line] is installed on this system.
func Taken(int, int) {}

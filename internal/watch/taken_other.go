//go:build !unix

package watch

// WaitForPipeFDReaderThenPIDExit does nothing: no command line with [HookShellPIDFlag] is installed on this system.
func WaitForPipeFDReaderThenPIDExit(int, int) {}

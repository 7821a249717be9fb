//go:build !unix

package watch

// WaitForPipeFDReaderThenPIDExit does nothing: no command line with [HookShellPIDFlagName] is installed on this system.
func WaitForPipeFDReaderThenPIDExit(int, int) {}

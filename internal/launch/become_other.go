//go:build unix && !linux && !darwin

package launch

import "io/fs"

// ReplaceProcess replaces shield with the command. Programs cannot be run by
// descriptor here.
func (cmd *Command) ReplaceProcess(Streams) error { return cmd.replaceByPath() }

// sameChangeTime cannot tell more than the time of writing does: these systems name
// the time of the last change differently.
func sameChangeTime(fs.FileInfo, fs.FileInfo) bool { return true }

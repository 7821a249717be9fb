//go:build unix && !linux && !darwin

package launch

import "io/fs"

// Become replaces shield with the command. Programs cannot be run by
// descriptor here.
func (cmd *Command) Become(Streams) error { return cmd.becomePath() }

// sameChange cannot tell more than the time of writing does: these systems name
// the time of the last change differently.
func sameChange(fs.FileInfo, fs.FileInfo) bool { return true }

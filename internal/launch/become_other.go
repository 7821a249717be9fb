//go:build unix && !linux && !darwin

package launch

import "io/fs"

// ReplaceProcess replaces shield with the command. Programs cannot be run by
// descriptor here.
func (cmd *Command) ReplaceProcess(Streams) error { return cmd.execProgramByPath() }

// sameChangeTime always returns true: the field with the change time (ctime) does not have the same name on all
// of these systems, so shield compares only the modification times.
func sameChangeTime(fs.FileInfo, fs.FileInfo) bool { return true }

//go:build unix && !linux

package cmd

// become replaces shield with the command. Programs cannot be run by
// descriptor here.
func (cmd *command) become(*World) error { return cmd.becomePath() }

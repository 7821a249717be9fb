package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/host"
)

// An agent can send shield an event of a host just as the host can. The content of such an event is
// believed if it makes judgement stricter. If it would make judgement less strict, it is believed only
// if the host itself sent the event: the host's process started the shell that runs the installed
// line, and that shell started shield.

// checkEventSentByHost returns nil if the host itself ran the installed hook command that called this
// process. Otherwise it returns why that is not certain.
func checkEventSentByHost(w *Environment, h *host.Host, shell wrapperShellScript) error {
	if err := checkHookShellReadsAnswer(w.judgePID, w.verdictRequesterPID); err != nil {
		return err
	}
	above, err := ancestry.ProcessAndAncestors(w.verdictRequesterPID)
	if len(above) < 2 {
		return errors.Join(err, errors.New("the parent processes of shield are unknown"))
	}
	return checkShieldStartedByHost(above, h, shell)
}

// checkHookShellReadsAnswer returns an error unless a child process of the shell shellPID reads
// the output of the process writerPID from a pipe. In an installed hook command, that child is the
// process that reads shield's answer.
func checkHookShellReadsAnswer(writerPID, shellPID int) error {
	out, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", writerPID))
	if err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", shellPID))
	if err != nil {
		return err
	}
	for _, child := range strings.Fields(string(children)) {
		if in, err := os.Readlink("/proc/" + child + "/fd/0"); err == nil && in == out && strings.HasPrefix(in, "pipe:") {
			return nil
		}
	}
	return fmt.Errorf("no child process of %d reads the answer", shellPID)
}

// checkShieldStartedByHost returns nil if the host started a shell that runs shield's installed
// hook line, and this shell started shield; otherwise the reason why that is not certain. ancestors
// are the ancestor processes of shield, nearest first.
func checkShieldStartedByHost(ancestors []ancestry.Process, h *host.Host, shell wrapperShellScript) error {
	if len(ancestors) < 2 {
		return errors.New("shield was not started by a shell")
	}
	line, ok := shellScriptText(&ancestors[0])
	if !ok {
		line, ok = hookLineInScript(&ancestors[0], h)
	}
	if !ok {
		return fmt.Errorf("%s is not a shell with -c", describeProcess(&ancestors[0]))
	}
	if shell.runsInUserShell { // the user's shell runs sh, which runs the line
		line = quotedForSh(line)
		if outer, ok := shellScriptText(&ancestors[1]); ok && outer == line && len(ancestors) > 2 {
			ancestors = ancestors[1:]
		}
	}
	if _, err := parseHookLine(line, shell, h); err != nil {
		return err
	}
	starter := ancestors[1]
	if i := slices.IndexFunc(starter.Args[min(1, len(starter.Args)):], func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
		starter.Args = starter.Args[:i+2] // the script of an interpreter, without the script's arguments
	}
	if of := host.OfProcess(&starter); of == nil || of.Name != h.Name {
		return fmt.Errorf("the hook was started by %s instead of %s", describeProcess(&ancestors[1]), h.Title())
	}
	return nil
}

// shellScriptText returns the script text with which a shell was started; ok is false if it has other
// arguments.
func shellScriptText(p *ancestry.Process) (string, bool) {
	args := slices.DeleteFunc(slices.Clone(p.Args), func(arg string) bool { return arg == "--norc" || arg == "--noprofile" })
	if len(args) != 3 || args[1] != "-c" || !slices.Contains(mcpServerLauncherPrograms, filepath.Base(p.Exe)) && !slices.Contains(mcpServerLauncherPrograms, p.Name) {
		return "", false
	}
	return args[2], true
}

// hookLineInScript returns the line in a script that a host runs, if the script contains no other line of
// shield.
func hookLineInScript(p *ancestry.Process, h *host.Host) (string, bool) {
	if len(p.Args) != 2 || !filepath.IsAbs(p.Args[1]) || !slices.Contains(mcpServerLauncherPrograms, p.Name) {
		return "", false
	}
	doc, exists, err := readSettingsFile(p.Args[1])
	if err != nil || !exists {
		return "", false
	}
	line, begins := strings.CutPrefix(string(doc), "#!/bin/sh\n# written by shield hook install "+h.Name+"\n")
	line, ends := strings.CutSuffix(line, "\n")
	return line, begins && ends && !strings.Contains(line, "\n")
}

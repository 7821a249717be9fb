package cmd

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/ancestry"
)

// pts returns the device number of a pseudo-terminal.
func pts(n int) int { return 136<<8 + n }

// A fakeSystem has processes by their IDs, and their environments.
type fakeSystem struct {
	processes map[int]ancestry.Process
	environ   map[int][]string
	err       error // of reading ancestors
}

func (f *fakeSystem) seat() *personAtTerminalCheck {
	return &personAtTerminalCheck{
		ancestorsOf: func(pid int) (out []ancestry.Process, err error) {
			for pid > 0 {
				p := f.processes[pid]
				p.PID = pid
				out = append(out, p)
				pid = p.Parent
			}
			return out, f.err
		},
		runningProcesses: func() (out []ancestry.Process, err error) {
			for pid, p := range f.processes {
				p.PID = pid
				out = append(out, p)
			}
			return out, nil
		},
		environ: func(pid int) ([]string, error) {
			if f.processes[pid].Name == "sshd" {
				return nil, errors.New("permission denied")
			}
			return f.environ[pid], nil
		},
		shieldPath: "/usr/bin/shield",
	}
}

// process returns a process named by the words of its command line.
func process(parent, tty int, args ...string) ancestry.Process {
	name := strings.TrimPrefix(args[0], "-")
	name = name[strings.LastIndexByte(name, '/')+1:]
	return ancestry.Process{Parent: parent, TTY: tty, Name: name, Exe: "/usr/bin/" + name, Args: args}
}

// person returns a system on which a person types at a terminal, as process 10, with
// others in place of some.
func person10(others map[int]ancestry.Process) *fakeSystem {
	f := &fakeSystem{environ: map[int][]string{}, processes: map[int]ancestry.Process{
		1:  process(0, 0, "systemd"),
		2:  process(1, 0, "gnome-terminal-server"),
		3:  process(2, pts(1), "-bash"),
		10: process(3, pts(1), "shield", "allow"),
	}}
	for pid, p := range others {
		f.processes[pid] = p
	}
	return f
}

func TestAttended(t *testing.T) {
	t.Parallel()
	type processes = map[int]ancestry.Process
	for name, c := range map[string]struct {
		f       *fakeSystem
		environ []string
		by      int    // the least demand that is refused
		want    string // in the error
	}{
		"a terminal":                     {person10(nil), nil, never, ""},
		"over ssh":                       {person10(processes{2: process(1, 0, "sshd")}), nil, never, ""},
		"on a console":                   {person10(processes{2: process(1, 4<<8+1, "login"), 3: process(2, 4<<8+1, "-bash"), 10: process(3, 4<<8+1, "shield")}), nil, never, ""},
		"a shell that a console started": {person10(processes{3: process(1, 4<<8+1, "-bash"), 10: process(3, 4<<8+1, "shield")}), nil, never, ""},
		"with sudo":                      {person10(processes{10: process(9, pts(2), "shield"), 9: process(8, pts(2), "sudo", "shield"), 8: process(3, pts(1), "sudo", "shield")}), nil, never, ""},
		"in a container":                 {person10(processes{3: process(0, pts(1), "bash")}), nil, never, ""},
		"as the terminal's command":      {person10(processes{10: process(2, pts(1), "shield", "allow")}), nil, never, ""},
		"terminator":                     {person10(processes{2: {Parent: 1, Name: "terminator", Exe: "/usr/bin/python3.12", Args: []string{"python3", "/usr/bin/terminator"}}}), nil, never, ""},
		"no terminal":                    {person10(processes{10: process(3, 0, "shield")}), nil, personProofAtTerminal, "no terminal here"},
		"cron":                           {person10(processes{10: process(3, 0, "shield"), 3: process(2, 0, "sh", "-c", "shield allow"), 2: process(1, 0, "cron")}), nil, personProofAtTerminal, "no terminal here"},
		"setsid":                         {person10(processes{10: process(1, 0, "shield")}), nil, personProofAtTerminal, "no terminal here"},
		"a host":                         {person10(processes{4: process(3, pts(1), "claude"), 5: process(4, 0, "bash", "-c", "x"), 10: process(5, 0, "shield")}), nil, personProofNoAgentAncestor, "an agent of Claude Code (process 4) could answer here. Use a terminal outside Claude Code; "},
		"a host's terminal":              {person10(processes{2: process(1, 0, "cursor")}), nil, personProofNoAgentAncestor, "the approval page, whose address and code the desktop notification shows"},
		"a host far above":               {person10(processes{1: process(0, 0, "codex")}), nil, personProofNoAgentAncestor, "OpenAI Codex"},
		"a mark in its own environment":  {person10(nil), []string{"A=b", "CLAUDECODE=1"}, personProofNoAgentAncestor, "Claude Code"},
		"a mark in an ancestor's":        {marked(person10(nil), 3, "GEMINI_CLI=1"), nil, personProofNoAgentAncestor, "Gemini CLI"},
		"below what shield judged":       {marked(person10(nil), 3, "SHIELD_JUDGED=1"), nil, personProofNoAgentAncestor, "is a command that shield judged"},
		"below shield":                   {person10(processes{3: process(2, pts(1), "shield", "mcp"), 2: process(1, 0, "gnome-terminal-server")}), nil, personProofNoAgentAncestor, "which is shield"},
		"script":                         {person10(processes{2: process(1, 0, "script")}), nil, personProofAtTerminal, "script (process 2) created this terminal"},
		"script at a person's terminal":  {person10(processes{4: process(3, pts(1), "script"), 5: process(4, pts(2), "bash"), 10: process(5, pts(2), "shield")}), nil, personProofAtTerminal, "script (process 4) created this terminal"},
		"expect":                         {person10(processes{2: process(1, 0, "expect", "-f", "x")}), nil, personProofAtTerminal, "expect (process 2) created"},
		"python":                         {person10(processes{2: {Parent: 1, Name: "python3", Exe: "/usr/bin/python3.12", Args: []string{"python3", "-c", "import pty"}}}), nil, personProofAtTerminal, "python3.12 (process 2) created"},
		"python that renamed itself":     {person10(processes{2: {Parent: 1, Name: "xterm", Exe: "/usr/bin/python3", Args: []string{"xterm"}}}), nil, personProofAtTerminal, "python3 (process 2) created"},
		"a shell script of a terminal":   {person10(processes{4: process(3, pts(1), "sh", ".git/hooks/pre-commit"), 10: process(4, pts(1), "shield")}), nil, personProofTypedByHand, "the command was started by sh (process 4); type it"},
		"a hook of git":                  {person10(processes{4: process(3, pts(1), "git", "commit"), 10: process(4, pts(1), "shield")}), nil, personProofTypedByHand, "the command was started by git (process 4)"},
		"text for a shell":               {person10(processes{4: process(3, pts(1), "bash", "-ic", "shield allow"), 10: process(4, pts(1), "shield")}), nil, personProofTypedByHand, "bash (process 4)"},
		"a shell in a shell":             {person10(processes{4: process(3, pts(1), "zsh", "-i", "-o", "x"), 10: process(4, pts(1), "shield")}), nil, never, ""},
		"what made the terminal ended":   {person10(processes{3: process(1, pts(1), "bash")}), nil, personProofAtTerminal, "the process that created this terminal has ended"},
		"tmux of a person":               {inTmux(nil), nil, never, ""},
		"tmux that nobody looks at":      {inTmux(processes{21: process(3, 0, "tmux", "new")}), nil, personProofAtTerminal, "tmux (process 20) created this terminal, and no user is attached"},
		"tmux below a host":              {inTmux(processes{3: process(2, pts(1), "claude")}), nil, personProofAtTerminal, "tmux (process 20) created this terminal"},
		"tmux whose client script made":  {inTmux(processes{4: process(3, pts(1), "script"), 21: process(4, pts(2), "tmux", "new")}), nil, personProofAtTerminal, "tmux (process 20) created"},
		"another server of tmux":         {inTmux(processes{20: process(1, 0, "tmux", "-L", "own", "new", "-d")}), nil, personProofAtTerminal, "tmux (process 20) created"},
		"tmux in its own terminal":       {inTmux(processes{21: process(30, pts(5), "tmux", "attach")}), nil, personProofAtTerminal, "created this terminal, and no user is attached to it; attach to it first"},
		"ancestors that are unknown":     {&fakeSystem{processes: person10(nil).processes, err: errors.New("hidden")}, nil, personProofNoAgentAncestor, "the process that started the command is unknown (hidden)"},
		"a host below unknown ancestors": {&fakeSystem{processes: person10(processes{3: process(2, 0, "claude")}).processes, err: errors.New("hidden")}, nil, personProofNoAgentAncestor, "Claude Code"},
	} {
		for _, sure := range []int{personProofNoAgentAncestor, personProofAtTerminal, personProofTypedByHand} {
			err := c.f.seat().checkPersonPresent(10, c.environ, sure)
			if (err != nil) != (sure >= c.by) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: demand %d: %v; want an error from demand %d on: %q", name, sure, err, c.by, c.want)
			}
		}
	}
}

// TestInteractiveShell checks that only a shell that runs no script and no text counts as one in which a person types.
func TestInteractiveShell(t *testing.T) {
	for line, want := range map[string]bool{
		"bash": true, "-bash": true, "bash -i": true, "bash -l -i": true, "bash --rcfile rc -i": true, "bash --noprofile --init-file rc": true, "bash -O extglob": true, "bash -eo pipefail": true,
		"zsh -il": true, "zsh -o x": true, "fish -i -C source": true, "fish --init-command=x": true, "sh +o x": true,
		"bash agent.sh": false, "bash agent.sh -i": false, "bash -i agent.sh": false, "bash -- agent.sh": false, "bash -c x -i": false, "bash -ic x": false, "bash -i -c x": false,
		"zsh -O agent.sh": false, "bash -C agent.sh": false, "dash --rcfile agent.sh": false, "fish --command x": false, "fish --command=x": false, "pwsh -Command x": false, "bash -": false,
	} {
		args := strings.Fields(line)
		if got := isInteractiveShell(strings.TrimPrefix(args[0], "-"), args); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

const never = personProofTypedByHand + 1

// marked puts a variable into the environment of a process.
func marked(f *fakeSystem, pid int, variable string) *fakeSystem {
	f.environ[pid] = append(slices.Clone(f.environ[pid]), "HOME=/home/me", variable)
	return f
}

// inTmux returns a system on which a person looks at tmux, in which process 10 runs.
func inTmux(others map[int]ancestry.Process) *fakeSystem {
	all := map[int]ancestry.Process{
		20: process(1, 0, "tmux", "new"), 21: process(3, pts(1), "tmux", "new"),
		30: process(20, pts(5), "bash"), 10: process(30, pts(5), "shield", "allow"),
	}
	for pid, p := range others {
		all[pid] = p
	}
	return person10(all)
}

// TestForPeople holds that commands which answer ask whether a person is there, and do
// nothing if none is.
func TestForPeople(t *testing.T) {
	for _, args := range [][]string{
		{"session", "resume", "--all"}, {"session", "clear", "--all"}, {"session", "resume", "x"}, {"approvals", "revoke", "--all"},
	} {
		w, asked := newWorld(t), 0
		w.checkPersonStartedThisProcess = func(int) error { asked++; return errNoTerminal }
		status, out, errs := run(t, inProcess(w), "", args...)
		if status != statusFailure || asked != 1 || out != "" || !strings.Contains(errs, "only the user can do this, but there is no terminal") {
			t.Errorf("%q: status %d, stdout %q, stderr %q, asked %d times", args, status, out, errs, asked)
		}
	}
}

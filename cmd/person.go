package cmd

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/host"
)

// How certain it must be that a person started a command.
const (
	personProofNoAgentAncestor = iota // no ancestor of the process is an agent
	personProofAtTerminal             // as personProofNoAgentAncestor, and a person is at the terminal of the process
	personProofTypedByHand            // as personProofAtTerminal, and a person typed the command there: no script, such as a git hook, started it
)

// requirePerson returns an error if an agent can have started this process instead of a person:
// agents must not run commands that answer questions or change answers. minProofLevel says how
// certain that must be: [personProofNoAgentAncestor], [personProofAtTerminal] or
// [personProofTypedByHand].
func requirePerson(w *Environment, command string, minProofLevel int) error {
	check := w.checkPersonStartedThisProcess
	if check == nil {
		s := personAtTerminalCheck{ancestorsOf: ancestry.ProcessAndAncestors, runningProcesses: ancestry.Running, environ: ancestry.Environ, shieldPath: w.ShieldExecutablePath}
		check = func(sure int) error { return s.checkPersonPresent(os.Getpid(), w.Environ(), sure) }
	}
	if err := check(minProofLevel); err != nil {
		return fmt.Errorf("%s: only the user can do this, but %w", command, err)
	}
	return nil
}

// A personAtTerminalCheck finds out whether a person sits at the terminal of a process.
type personAtTerminalCheck struct {
	ancestorsOf      func(pid int) ([]ancestry.Process, error)
	runningProcesses func() ([]ancestry.Process, error)
	environ          func(pid int) ([]string, error)
	shieldPath       string // path of shield's executable
}

var errNoTerminal = errors.New("there is no terminal here; run the command in a terminal")

// checkPersonPresent returns why no person can have started a process, or nil. environ is the environment
// of the process.
func (s *personAtTerminalCheck) checkPersonPresent(pid int, environ []string, minProofLevel int) error {
	if h := host.OfEnvironment(environ); h != nil {
		return newAgentCouldAnswerError(h, pid)
	}
	all, err := s.ancestorsOf(pid)
	if errors.Is(err, ancestry.ErrUnsupported) {
		if minProofLevel == personProofNoAgentAncestor {
			return nil
		}
		d, err := term.Open()
		if err != nil {
			return fmt.Errorf("%w (%w)", errNoTerminal, err)
		}
		return d.Close()
	}
	if err := s.checkNoProcessRunsAgent(all); err != nil {
		return err
	}
	switch {
	case err != nil:
		return fmt.Errorf("the process that started the command is unknown (%w); use another terminal", err)
	case minProofLevel == personProofNoAgentAncestor:
		return nil
	case all[0].TTY == 0:
		return errNoTerminal
	}
	if err := s.checkTerminalsNotAutomated(all, 0); err != nil {
		return err
	}
	if minProofLevel == personProofTypedByHand && !wasCommandTypedByPerson(all) {
		return fmt.Errorf("the command was started by %s; type it in a shell", describeProcess(&all[1]))
	}
	return nil
}

// checkNoProcessRunsAgent returns an error if one of the processes runs an agent, or a command that shield
// judged.
func (s *personAtTerminalCheck) checkNoProcessRunsAgent(selfAndAncestors []ancestry.Process) error {
	for i := range selfAndAncestors {
		p := &selfAndAncestors[i]
		if h := host.OfProcess(p); h != nil {
			return newAgentCouldAnswerError(h, p.PID)
		}
		if i > 0 && s.shieldPath != "" && p.Exe == s.shieldPath {
			return fmt.Errorf("the command was started by %s, which is shield; use a terminal of your own", describeProcess(p))
		}
		env, err := s.environ(p.PID)
		if err != nil {
			continue // the environment cannot be read, for example because the process belongs to another user
		}
		if h := host.OfEnvironment(env); h != nil {
			return newAgentCouldAnswerError(h, p.PID)
		}
		if slices.Contains(env, launch.JudgedCommandEnvEntry) {
			return fmt.Errorf("%s, a parent process of this command, is a command that shield judged; use a terminal of your own", describeProcess(p))
		}
	}
	return nil
}

func newAgentCouldAnswerError(h *host.Host, pid int) error {
	return fmt.Errorf("an agent of %s (process %d) could answer here. Use a terminal outside %s; waiting questions can also be answered on the approval page, whose address and code the desktop notification shows", h.Title(), pid, h.Title())
}

// maxNestedTerminals is how many terminals can be nested.
const maxNestedTerminals = 4

// checkTerminalsNotAutomated returns an error if one of the terminals of some ancestors was created by a program
// that types automatically.
func (s *personAtTerminalCheck) checkTerminalsNotAutomated(ancestors []ancestry.Process, multiplexerDepth int) error {
	for i := range ancestors {
		p := &ancestors[i]
		if p.TTY == 0 || i+1 < len(ancestors) && ancestors[i+1].TTY == p.TTY {
			continue
		}
		if i+1 == len(ancestors) {
			return nil // a process outside the container, which is not visible here, opened this terminal
		}
		maker := &ancestors[i+1]
		switch {
		case isMultiplexer(maker):
			if err := s.checkMultiplexerAttached(maker, multiplexerDepth); err != nil {
				return err
			}
		case isTerminalAutomationProgram(maker):
			return fmt.Errorf("%s created this terminal and can type in it; use a terminal of your own", describeProcess(maker))
		case isPseudoTerminal(p.TTY) && (maker.PID == 1 || maker.Name == "systemd"):
			return errors.New("the process that created this terminal has ended and cannot be checked; use another terminal")
		}
	}
	return nil
}

// terminalAutomationPrograms are programs, other than interpreters, that create a terminal in which they or a script
// type.
var terminalAutomationPrograms = []string{"script", "expect", "unbuffer", "socat", "empty", "asciinema"}

// terminalEmulatorScriptPaths are the terminal emulators for people that are scripts: the process is an
// interpreter that runs the script.
var terminalEmulatorScriptPaths = []string{"/usr/bin/terminator", "/usr/bin/guake"}

func isTerminalAutomationProgram(p *ancestry.Process) bool {
	if host.IsInterpreter(p) {
		return len(p.Args) < 2 || !slices.Contains(terminalEmulatorScriptPaths, p.Args[1])
	}
	return slices.Contains(terminalAutomationPrograms, path.Base(p.Exe)) || slices.Contains(terminalAutomationPrograms, p.Name)
}

// terminalMultiplexers create terminals that are shown in the terminals of their clients.
var terminalMultiplexers = []string{"tmux", "screen", "zellij", "dtach", "abduco"}

func isMultiplexer(p *ancestry.Process) bool {
	name, _, _ := strings.Cut(strings.ToLower(p.Name), ":") // the name may be "tmux: server"
	return slices.Contains(terminalMultiplexers, name) || slices.Contains(terminalMultiplexers, path.Base(p.Exe))
}

// checkMultiplexerAttached returns an error unless a person sees a multiplexer's terminals: one of its
// clients runs at a person's terminal.
func (s *personAtTerminalCheck) checkMultiplexerAttached(server *ancestry.Process, multiplexerDepth int) error {
	if multiplexerDepth == maxNestedTerminals {
		return fmt.Errorf("more than %d terminals are nested; use a terminal of your own", maxNestedTerminals)
	}
	all, err := s.runningProcesses()
	if err != nil {
		return fmt.Errorf("the program that shows this terminal is unknown (%w); use another terminal", err)
	}
	for i := range all {
		p := &all[i]
		if p.PID == server.PID || p.TTY == 0 || p.Exe != server.Exe || p.Exe == "" || s.tmuxSocket(p) != s.tmuxSocket(server) {
			continue
		}
		above, err := s.ancestorsOf(p.PID)
		if err == nil && s.checkNoProcessRunsAgent(above) == nil && s.checkTerminalsNotAutomated(above, multiplexerDepth+1) == nil {
			return nil
		}
	}
	return fmt.Errorf("%s created this terminal, and no user is attached to it; attach to it first", describeProcess(server))
}

// tmuxSocket returns the identifier of the tmux server that a process belongs to.
func (s *personAtTerminalCheck) tmuxSocket(p *ancestry.Process) string {
	var words []string
	if env, err := s.environ(p.PID); err == nil {
		for _, entry := range env {
			if strings.HasPrefix(entry, "TMUX_TMPDIR=") {
				words = append(words, entry)
			}
		}
	}
	for i, arg := range p.Args {
		for _, option := range []string{"-L", "-S"} {
			if arg == option && i+1 < len(p.Args) {
				words = append(words, option+p.Args[i+1])
			} else if arg != option && strings.HasPrefix(arg, option) {
				words = append(words, arg)
			}
		}
	}
	return strings.Join(words, "\n")
}

// isPseudoTerminal reports whether a terminal was created by a program (Linux: pts).
func isPseudoTerminal(tty int) bool {
	const first, last = 136, 143
	major := tty >> 8 & 0xfff
	return major >= first && major <= last
}

// shells read what a person types; wrappers run the command typed after them.
var (
	knownShells     = []string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "mksh", "ksh93", "tcsh", "csh", "nu", "elvish", "xonsh", "pwsh", "busybox"}
	commandWrappers = []string{"sudo", "doas", "env", "time", "nice"}
)

// wasCommandTypedByPerson reports whether a person typed the command of a process.
// processAndAncestors are the process and its ancestors, nearest first. The nearest ancestor that
// is not a wrapper such as sudo must be an interactive shell, or must not run in the terminal of
// the process.
func wasCommandTypedByPerson(processAndAncestors []ancestry.Process) bool {
	for i := 1; i < len(processAndAncestors); i++ {
		p := &processAndAncestors[i]
		switch {
		case p.TTY != processAndAncestors[0].TTY:
			return true
		case slices.Contains(commandWrappers, p.Name):
			continue
		}
		return slices.Contains(knownShells, p.Name) && isInteractiveShell(p.Name, p.Args)
	}
	return true
}

// isInteractiveShell reports whether a shell with these arguments reads typed commands: it gets neither the
// option -c nor an operand, which is a script. Options behind an operand are those of the script.
func isInteractiveShell(shell string, args []string) bool {
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case takesNextArg(shell, arg):
			i++
		case strings.HasPrefix(arg, "--") && arg != "--" && !strings.HasPrefix(arg, "--command"):
		case strings.HasPrefix(arg, "+"):
		case len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && !strings.Contains(arg, "c"):
		default:
			return false
		}
	}
	return true
}

// takesNextArg reports whether the next argument of a shell is the value of this option, not a script.
func takesNextArg(shell, option string) bool {
	switch shell {
	case "bash":
		if option == "--rcfile" || option == "--init-file" {
			return true
		}
		return isShortOptionEndingWith(option, "oO")
	case "fish":
		return option == "--init-command" || isShortOptionEndingWith(option, "C")
	case "sh", "dash", "ash", "zsh", "ksh", "mksh", "ksh93":
		return isShortOptionEndingWith(option, "o")
	}
	return false
}

// isShortOptionEndingWith reports whether a word is a group of short options, such as -eo, of which the last is one
// of the letters, and none is -c.
func isShortOptionEndingWith(word, letters string) bool {
	return len(word) > 1 && (word[0] == '-' || word[0] == '+') && word[1] != '-' && !strings.Contains(word, "c") && strings.IndexByte(letters, word[len(word)-1]) >= 0
}

// describeProcess describes a process in a message.
func describeProcess(p *ancestry.Process) string {
	name := path.Base(p.Exe)
	if p.Exe == "" {
		name = p.Name
	}
	return fmt.Sprintf("%s (process %d)", term.EscapeControlAndInvisible(shortenTo80Characters(name)), p.PID)
}

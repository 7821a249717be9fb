// Package cmd is the command line of shield: it handles flags, streams and exit statuses; other
// packages judge. Each command has a file, and a line in [commands].
package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
)

// An Environment is the environment of a command: all it uses outside the process.
type Environment struct {
	In                   io.Reader
	Out, Err             io.Writer
	Getenv               func(string) string
	Environ              func() []string
	Now                  func() time.Time
	Home                 string // the user's home folder; "" if unknown
	WorkingDir           string // the initial working folder; "" if unknown
	ShieldExecutablePath string // path of shield's executable; "" if unknown
	User                 string // the user's name; "" if unknown
	OS                   string // the operating system, as in GOOS
	RootFS               fs.FS  // the file system from / on, for /proc and similar files; nil shows no files

	Reload <-chan os.Signal // signals a service to reload its models; nil: never

	HookEventWatchFromInit *watch.EventWatch // the watchdog of a hook, started before the rest of shield; nil if there is none

	args                          []string                                                                                 // the arguments of the command line, without the program
	callingHost                   *host.Host                                                                               // the host that called this hook; nil if no host did
	checkHostAsksUser             func() error                                                                             // returns why the calling host cannot ask its user; a nil function: no host calls
	verdictRequesterPID           int                                                                                      // PID of the process that asks for the verdict, such as the agent host; 0: the parent process
	judgePID                      int                                                                                      // PID of the process that judges for the process verdictRequesterPID; 0 means this process
	checkPersonStartedThisProcess func(sure int) error                                                                     // returns why no person started this process; nil uses the default check
	hostAttendedByUserCheck       func(*host.Host) error                                                                   // returns why the host's reports about its user are not trusted; nil uses the default check
	askToAllowRefusal             func(ctx context.Context, o approve.Options, r *approve.Refusal) (approve.Answer, error) // asks the user to allow a refused action; nil: approve.AskToAllowRefusal
	isUserSessionDBusAddress      func(value string) bool                                                                  // reports whether a D-Bus address is that of the user's session; nil uses the default check
	judgingPipeline               *shield.Pipeline                                                                         // the pipeline that judged a hook in this process; nil if none did
	requestFromServiceClient      *requestFromServiceClient                                                                // the question of another process that this process, a service, answers; nil if there is none
	findRunningHost               func(*Environment, *host.Host) (*host.HostProcess, error)                                // nil: runningHost
	judgeProcessStarter           func(args []string) (*watch.Judge, error)                                                // starts the judge, a second process; nil starts it from shield's own program file
	killParent                    func() error                                                                             // kills the watchdog that started this process; nil: kills the parent process
}

// commands returns the command that a command line names, or else all in the order of the help text:
// creating the others would take much of the time of a hook.
func commands(w *Environment, args []string) (out []*cli.Command) {
	table := [...]struct {
		name, group string
		command     func(*Environment) *cli.Command
	}{
		{"setup", commandGroupProtect, setupCommand},
		{"policy", commandGroupJudge, policyCommand},
		{"classify", commandGroupJudge, classifyCommand},
		{"evaluate", commandGroupJudge, evaluateCommand},
		{"approve", commandGroupJudge, approveCommand},
		{"run", commandGroupJudge, runCommand},
		{"exec", commandGroupProtect, execCommand},
		{"hook", commandGroupProtect, hookCommand},
		{"mcp", commandGroupProtect, mcpCommand},
		{"serve", commandGroupFleet, serveCommand},
		{"service", commandGroupFleet, serviceCommand},
		{"init", commandGroupProtect, initCommand},
		{"explain", commandGroupJudge, explainCommand},
		{"demo", commandGroupJudge, demoCommand},
		{"sanitize", commandGroupJudge, sanitizeCommand},
		{"scan", commandGroupHistory, scanCommand},
		{"score", commandGroupHistory, scoreCommand},
		{"rules", commandGroupPolicies, rulesCommand},
		{"model", commandGroupPolicies, modelCommand},
		{"allow", commandGroupUserDecisions, allowCommand},
		{"undo", commandGroupUserDecisions, undoCommand},
		{"approvals", commandGroupUserDecisions, approvalsCommand},
		{"tools", commandGroupUserDecisions, toolsCommand},
		{"session", commandGroupUserDecisions, sessionCommand},
		{"status", commandGroupHistory, statusCommand},
		{"audit", commandGroupHistory, auditCommand},
		{"doctor", commandGroupHistory, doctorCommand},
		{"completion", commandGroupFleet, completionCommand},
		{"docs", commandGroupFleet, docsCommand},
	}
	for _, c := range table {
		if len(args) > 0 && args[0] == c.name {
			return []*cli.Command{c.command(w)}
		}
	}
	for _, c := range table {
		command := c.command(w)
		command.Category = c.group
		out = append(out, command)
	}
	return out
}

// A copyOnApplyBoolFlag is a flag of the CLI library, such as --help, that all command lines of a process
// share. Applying it writes to it, so each command line applies a copy.
type copyOnApplyBoolFlag struct{ *cli.BoolFlag }

func (f copyOnApplyBoolFlag) Apply(set *flag.FlagSet) error {
	own := *f.BoolFlag
	return own.Apply(set)
}

func init() {
	for _, f := range []*cli.Flag{&cli.HelpFlag, &cli.VersionFlag} {
		*f = copyOnApplyBoolFlag{(*f).(*cli.BoolFlag)}
	}
}

// newApp returns the command tree with the commands that a command line needs.
func newApp(w *Environment, args ...string) *cli.App {
	app := &cli.App{
		Name:            "shield",
		Usage:           "judge every action an AI agent proposes, before it runs",
		UsageText:       "shield COMMAND [FLAG…]",
		Version:         version(),
		Commands:        commands(w, args),
		Reader:          w.In,
		Writer:          w.Out,
		ErrWriter:       w.Err,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // without it the library would exit
		OnUsageError:    usageError,
		// Otherwise "--root a,b" would name two folders.
		DisableSliceFlagSeparator: true,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return unknownCommandError(c.Args().First(), c.App.Commands, "shield help")
			}
			if isTerminal(w.Out) {
				return printIntroductionAndCommandList(c, w)
			}
			return cli.ShowAppHelp(c)
		},
	}
	walkCommands(app.Commands, func(c *cli.Command) {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
		if len(c.Subcommands) > 0 && c.Action == nil {
			c.Action = requireSubcommand
		}
		for _, f := range c.Flags {
			if b, ok := f.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true
			}
		}
	})
	return app
}

// Run runs a command line and returns its exit status.
func Run(ctx context.Context, args []string, w Environment) int {
	w.setDefaults()
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	if len(args) == 1 && args[0] == "version" {
		args = []string{"--version"}
	}
	var lines *watch.HookScriptProtocolWriter
	pipe, piped := w.Out.(fileDescriptorStream)
	if asker := watch.ParseInvokerPID(args); asker != 0 && args[0] == "hook" && !slices.Contains(args, "--"+watch.JudgeFlagName) {
		w.verdictRequesterPID, lines = asker, watch.NewHookScriptProtocolWriter(w.Out)
		w.Out, w.Err = lines.Stdout(), lines.Stderr()
	}
	app := newApp(&w, args...)
	w.args = moveFlagsFirst(app, args)
	err := app.RunContext(ctx, append([]string{"shield"}, w.args...))
	status, err := exitStatus(hookDenialError(&w, args, err))
	if status == statusFailure && canStartProgramAfterVerdict(app, w.args) {
		status = statusBlock
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		for _, err := range unwrapYAMLFileErrors(err) {
			text := redactedErrorText(err)
			fmt.Fprintf(w.Err, "shield: %s%s\n", text, systemErrorAdvice(err, text))
		}
	}
	if lines != nil && lines.WriteAnswerAndExitStatus(status) == nil && piped {
		watch.WaitForPipeFDReaderThenPIDExit(int(pipe.Fd()), w.verdictRequesterPID)
	}
	return status
}

// canStartProgramAfterVerdict reports whether a command line is an exec or mcp command that starts
// a program if the action is allowed. If such a command fails, it must exit with the status of
// BLOCK, since its caller may treat any other status as permission.
func canStartProgramAfterVerdict(app *cli.App, args []string) bool {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		command := app.Command(arg)
		switch {
		case command == nil:
			continue
		case command.Name == "exec":
			return true
		case command.Name != "mcp":
			return false
		}
		for _, word := range args[i+1:] {
			if word == "--" {
				break
			}
			if slices.ContainsFunc(command.Subcommands, func(c *cli.Command) bool { return c.Name == word }) {
				return false
			}
		}
		return true
	}
	return false
}

// unwrapYAMLFileErrors returns the single errors of a [yamlfile.Errors] in err's chain. Any other error
// is returned as the only element.
func unwrapYAMLFileErrors(err error) []error {
	var all yamlfile.Errors
	if errors.As(err, &all) {
		return all.Unwrap()
	}
	return []error{err}
}

// redactedErrorText returns the redacted text of an error, which may quote its input.
func redactedErrorText(err error) string {
	return (*redact.Redactor)(nil).RedactText(err.Error())
}

// setDefaults sets fields that the caller left unset to defaults.
func (w *Environment) setDefaults() {
	if w.In == nil {
		w.In = strings.NewReader("")
	}
	if w.Out == nil {
		w.Out = io.Discard
	}
	if w.Err == nil {
		w.Err = io.Discard
	}
	if w.Getenv == nil {
		w.Getenv = func(string) string { return "" }
	}
	if w.Environ == nil {
		w.Environ = func() []string { return nil }
	}
	if w.Now == nil {
		w.Now = func() time.Time { return time.Time{} }
	}
	if w.verdictRequesterPID == 0 {
		w.verdictRequesterPID = os.Getppid()
	}
	if w.judgePID == 0 {
		w.judgePID = os.Getpid()
	}
	if w.judgeProcessStarter == nil {
		w.judgeProcessStarter = w.startJudgeProcess
	}
	if w.killParent == nil {
		w.killParent = func() error {
			p, err := os.FindProcess(os.Getppid())
			if err != nil {
				return err
			}
			return p.Kill()
		}
	}
}

// usageError returns the error for an invalid command line. It keeps the library from printing to
// stdout, where verdicts go.
func usageError(c *cli.Context, err error, _ bool) error {
	name, flags := "shield", c.App.Flags
	if c.Command != nil && c.Command.HelpName != "" {
		name, flags = c.Command.HelpName, c.Command.Flags
	}
	if flag, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: "); unknown {
		err = fmt.Errorf("%s: unknown flag --%s%s", name, shortenTo80Characters(strings.TrimLeft(flag, "-")), suggest.DidYouMeanSuffix("--"+strings.TrimLeft(flag, "-"), commandAndFlagNames(flags, nil)))
	}
	return fmt.Errorf("%w; run '%s --help'", err, name)
}

func unknownCommandError(word string, known []*cli.Command, help string) error {
	return fmt.Errorf("unknown command %q%s; run '%s' for the list", shortenTo80Characters(word), suggest.DidYouMeanSuffix(word, commandAndFlagNames(nil, known)), help)
}

func requireSubcommand(c *cli.Context) error {
	if c.NArg() > 0 {
		return unknownCommandError(c.Args().First(), c.Command.Subcommands, c.Command.HelpName+" --help")
	}
	return cli.ShowSubcommandHelp(c)
}

// operands returns the operands: exactly one for each of names, or more if the last name ends in an
// ellipsis.
func operands(c *cli.Context, names ...string) ([]string, error) {
	args := c.Args().Slice()
	many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…")
	switch {
	case len(args) < len(names):
		return nil, fmt.Errorf("%s: %s is missing", c.Command.HelpName, names[len(args)])
	case len(args) > len(names) && !many:
		return nil, fmt.Errorf("%s: unexpected operand %q", c.Command.HelpName, shortenTo80Characters(args[len(names)]))
	}
	return args, nil
}

func walkCommands(cs []*cli.Command, visit func(*cli.Command)) {
	for _, c := range cs {
		visit(c)
		walkCommands(c.Subcommands, visit)
	}
}

// shortenTo80Characters shortens untrusted text for a message.
func shortenTo80Characters(s string) string { return brief.TruncateWithEllipsis(s, 80) }

// version returns the module's version as recorded by the Go command.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

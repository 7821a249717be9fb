package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shell/dialect"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

func execCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "judge a command, and run it if it is allowed",
		ArgsUsage: "-- CMD ARG…",
		Description: "Judges CMD with its arguments as an execute_command action in the current folder. If it is allowed, shield replaces itself with it, and the exit status is the command's; otherwise nothing runs and the status is 2. " +
			"Variables that make programs load or run something else are dropped from the environment and named on standard error. " +
			"With --contain the command and all that it starts reach no more than what was judged: see docs/containment.md.",
		Flags: append(commonJudgeFlags(), unattendedFlag(),
			&cli.BoolFlag{Name: "shell", Usage: "take the one operand as text for sh -c"},
			&cli.BoolFlag{Name: "check", Usage: "only judge: exit with 0 if the command is allowed, and run nothing"},
			&cli.StringFlag{Name: "dialect", Usage: "with --check: take the one operand as a line that an interactive `SHELL` has read: bash, zsh or fish"},
			newContainFlag("the command"),
			&cli.BoolFlag{Name: "profile", Usage: "print as JSON what the command could reach with --contain, and run nothing"},
			&cli.StringSliceFlag{Name: "keep-env", Usage: "keep the variable `NAME` instead of dropping it; may be repeated"},
		),
		Action: func(c *cli.Context) error {
			if w.requestFromServiceClient != nil {
				return judgeExecSubcommandForServiceClient(c, w)
			}
			var own *statusError // an error that already carries the exit status of the executed command
			err := judgeAndExecCommand(c, w)
			if err == nil || errors.As(err, &own) {
				return err
			}
			return &statusError{statusBlock, err}
		},
	}
}

// A commandToJudge is the command that exec judges.
type commandToJudge struct {
	text                    string
	isShellParsingUncertain bool // text that a shell may parse differently from shield
}

// judgeAndExecCommand judges a command and runs it in place of shield, or, with --contain, in a contained child
// process if that is possible. Without --contain it returns only if the command does not run or is only checked.
func judgeAndExecCommand(c *cli.Context, w *Environment) error {
	argv := c.Args().Slice()
	env, gone := launch.DropCodeLoadingVariables(w.Environ(), c.StringSlice("keep-env"))
	env = append(env, launch.JudgedCommandEnvEntry)
	var cmd *launch.Command // nil for a line of an interactive shell
	var judged commandToJudge
	var err error
	if c.IsSet("dialect") {
		if !c.Bool("check") || c.Bool("profile") {
			return errors.New("exec --dialect works only with --check; add --check")
		}
		judged, err = commandFromTypedLine(argv, c.String("dialect"))
	} else if cmd, err = newExecCommand(argv, c.Bool("shell"), env); err == nil {
		defer cmd.Close()
		judged.text = cmd.ShellCommandLine()
	}
	if err != nil {
		return err
	}
	raw, err := judged.toAction(w.WorkingDir)
	if err != nil {
		return err
	}
	answer, err := judgeExecSubcommand(c, w, raw)
	if err != nil {
		return err
	}
	if !answer.Allow {
		return fmt.Errorf("blocked: %s", answer.ReasonForAgent)
	}
	if c.Bool("check") {
		return nil
	}
	if c.Bool("profile") {
		_, err := runContained(c, w, cmd, raw)
		return err
	}
	if c.Context.Err() != nil { // the command got the signal as well
		return errors.New("exec: interrupted; nothing was run")
	}
	// Every login sets SHELL, and few commands read it.
	gone = slices.DeleteFunc(gone, func(name string) bool { return name == "SHELL" })
	if answer.ReasonForAgent != "" {
		fmt.Fprintln(w.Err, "shield:", term.EscapeControlAndInvisible(answer.ReasonForAgent))
	}
	if len(gone) > 0 {
		fmt.Fprintf(w.Err, "shield: dropped %s from the command's environment; to keep one, use --keep-env NAME\n", term.EscapeControlAndInvisible(strings.Join(gone, ", ")))
	}
	if containFlagValue(c) != "" {
		if ran, err := runContained(c, w, cmd, raw); ran || err != nil {
			return err
		}
	}
	return replaceProcess(cmd, w)
}

// replaceProcess replaces shield by the command. Where that is not possible (Windows), shield exits with the
// command's status.
func replaceProcess(cmd *launch.Command, w *Environment) error {
	err := cmd.ReplaceProcess(launch.Streams{In: w.In, Out: w.Out, Err: w.Err})
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return &statusError{exit.ExitCode(), nil}
	case err != nil:
		return fmt.Errorf("exec %s: %w", cmd.Path(), err)
	}
	return nil
}

// newExecCommand returns the command to judge and run.
func newExecCommand(argv []string, shell bool, env []string) (cmd *launch.Command, err error) {
	switch {
	case len(argv) == 0:
		return nil, errors.New("exec: CMD is missing; write: shield exec -- CMD ARG…")
	case shell && len(argv) != 1:
		return nil, fmt.Errorf("exec --shell: expected one operand, found %d; put the line in single quotes", len(argv))
	case shell:
		cmd, err = launch.NewShell(argv[0], env)
	default:
		cmd, err = launch.New(argv, env)
	}
	if err != nil && !shell && len(argv) == 1 && strings.ContainsAny(argv[0], " |;&<>$") {
		return nil, fmt.Errorf("exec: no program is named %q; for a command line, use: shield exec --shell -- 'COMMAND LINE'", shortenTo80Characters(argv[0]))
	}
	if err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	return cmd, nil
}

// commandFromTypedLine returns a line of an interactive shell, which is judged but not run.
func commandFromTypedLine(argv []string, shell string) (commandToJudge, error) {
	if len(argv) != 1 {
		return commandToJudge{}, fmt.Errorf("exec --dialect: expected one operand, found %d; put the line in single quotes", len(argv))
	}
	text, same := argv[0], true
	switch shell {
	case "bash":
	case "zsh":
		text, same = dialect.ConvertZshToBash(text)
	case "fish":
		text, same = dialect.ConvertFishToPOSIX(text)
	default:
		return commandToJudge{}, fmt.Errorf("exec --dialect: %q is not one of bash, zsh, fish", shortenTo80Characters(shell))
	}
	if !same {
		text = argv[0]
	}
	return commandToJudge{text, !same}, nil
}

// judgeExecSubcommand judges an action with the user's service, or else in this process.
func judgeExecSubcommand(c *cli.Context, w *Environment, raw []byte) (hookAnswer, error) {
	if line, ok := w.askServiceForCommandOutput(raw); ok {
		return parseJudgeProcessAnswer(line)
	}
	_, p, err := newPipelineWithConfigChange(c, w, func(cfg *shield.Config) {
		cfg.JudgesSingleAction, cfg.OffersAllowOnce, cfg.BacksUpLostFiles = true, true, !c.Bool("check")
	})
	if err != nil {
		return hookAnswer{}, err
	}
	return judgeExecSubcommandWithPipeline(c, w, p, raw)
}

// judgeExecSubcommandWithPipeline judges raw, the action of the exec subcommand, with p. The answer says whether
// the command may run.
func judgeExecSubcommandWithPipeline(c *cli.Context, w *Environment, p *shield.Pipeline, raw []byte) (hookAnswer, error) {
	a, err := action.Parse(raw)
	if err != nil {
		return hookAnswer{}, fmt.Errorf("exec: %w", err)
	}
	v, err := w.evaluateAction(c.Context, p, a)
	if err != nil || v.Decision == verdict.Allow {
		answer := hookAnswer{Allow: err == nil}
		if v.BackupSetID != "" {
			answer.ReasonForAgent = "what this deletes or overwrites is kept as " + v.BackupSetID
		}
		return answer, err
	}
	if c.IsSet("dialect") {
		tellUserToUseUnguardedTerminal(&v)
	}
	return hookAnswer{ReasonForAgent: v.TextForUser()}, nil
}

// approvalCommandsRuleName is the rule that protects shield's own approval commands. It belongs to the protected
// core, the policy rules without exceptions.
const approvalCommandsRuleName = "shield_answers"

// tellUserToUseUnguardedTerminal adds to the proposed remedy of a verdict that the user must type it in a
// terminal without "shield init". The guarded shell, in which "shield init" ran, is not suitable,
// since an agent may type there.
func tellUserToUseUnguardedTerminal(v *verdict.Verdict) {
	switch {
	case v.Explanation.UserAllowCommand != "":
		v.Explanation.UserAllowCommand += ", in a terminal whose shell did not run shield init"
	case v.Rule == approvalCommandsRuleName:
		v.Explanation.UserAllowCommand = "type the command in a terminal whose shell did not run 'shield init'"
	}
}

// judgeExecSubcommandForServiceClient judges an action for another process that runs exec.
func judgeExecSubcommandForServiceClient(c *cli.Context, w *Environment) error {
	_, p, err := newPipelineWithConfigChange(c, w, func(cfg *shield.Config) {
		cfg.JudgesSingleAction, cfg.OffersAllowOnce, cfg.BacksUpLostFiles = true, true, !c.Bool("check")
	})
	if err != nil {
		return err
	}
	answer, err := judgeExecSubcommandWithPipeline(c, w, p, w.requestFromServiceClient.input)
	if err != nil {
		return err
	}
	return answer.write(w.Out)
}

// toAction returns the command line as an action. Text that JSON cannot represent byte for byte is an
// error: the judged text must be the text that runs.
func (l commandToJudge) toAction(dir string) ([]byte, error) {
	if !utf8.ValidString(l.text) {
		return nil, errors.New("exec --shell: the text is not valid UTF-8; correct its encoding")
	}
	if !utf8.ValidString(dir) {
		return nil, errors.New("exec: the name of the current folder is not valid UTF-8; run it in another folder")
	}
	fields := map[string]any{
		"type": "execute_command", "payload": map[string]string{"command": l.text}, "cwd": dir,
	}
	if l.isShellParsingUncertain {
		fields["min_tier"] = 2
	}
	return json.Marshal(fields)
}

package cmd

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

func approveCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "approve",
		Usage: "ask a person (Tier 3)",
		Description: "Reads actions, or the verdicts of an earlier stage, from standard input. ALLOW and BLOCK pass through; ESCALATE goes to a person on all configured channels at once, and the first answer counts. An action that skipped the earlier stages is checked against their blocking rules first. No answer in time is a BLOCK. " +
			"On the terminal a question shows three letters. Keys count once none was pressed for a second. Then the letters and Enter approve once; the letters, 10 and Enter approve this exact action for ten minutes; Enter alone denies; no and a reason deny and tell the agent the reason; anything else denies. At most approval.max_per_hour questions are asked in an hour.",
		Flags: recordStreamJudgeFlags(unattendedFlag()),
		Action: func(c *cli.Context) error {
			return recordStreamJudge{tierRange: shield.TierRange{First: shield.TierApprove, Last: shield.TierApprove}}.judgeInput(c, w)
		},
	}
}

// describeOwnAndParentProcess names this process and the process that started it.
func describeOwnAndParentProcess(subcommandName string) string {
	parent := "process " + strconv.Itoa(os.Getppid())
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid())); err == nil { // only Linux has /proc
		parent = fmt.Sprintf("%s (%s)", strings.TrimSpace(string(name)), parent)
	}
	return fmt.Sprintf("shield %s (process %d), started by %s", subcommandName, os.Getpid(), parent)
}

// userNameOrAPerson returns the name of the user at this machine.
func userNameOrAPerson(w *Environment) string { return cmp.Or(w.User, "a person") }

// approvalOptions returns the options for asking people, based on the settings; command is the name of the
// asking command.
func approvalOptions(set *config.LoadedSettings, w *Environment, command string) approve.Options {
	return approve.Options{
		SharesParentTerminal: strings.HasPrefix(command, "hook ") || command == "mcp", HideApprovalPageLink: command == "serve" || !isTerminal(w.Err), HostCannotAskReason: w.checkHostAsksUser,
		CheckTerminalUserIsPerson:  func() error { return requirePerson(w, command, personProofAtTerminal) },
		UserCannotNoticePageReason: func() error { return checkUserCanBeNotified(w, strings.HasPrefix(command, "hook ")) },
		DescribeUndoBackups:        func() string { return describeFilesBackedUpToday(set, w) },
		AnsweringPersonName:        userNameOrAPerson(w), AskingProgramDescription: describeOwnAndParentProcess(command), Getenv: w.getenvExceptUntrustedDBus, ApprovalProgramEnv: w.Environ(), ApprovalProgramWorkingDir: set.ApprovalProgramWorkingDir, NoticeOutput: w.Err,
		// While a question is asked, the terminal is in raw mode and does not turn ^C into a signal.
		OnUserInterrupt: func() {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Signal(os.Interrupt) // on Windows, which has no signals, this fails and only the question is denied
			}
		},
	}
}

// approvalProgramArgv returns the argv of the approval program. A bare name is looked up in the absolute
// folders of PATH; a name that is not found stays as it is, and fails to run. A hook looks only in
// system folders: hosts forward the PATH that a project sets, which could name the project's own
// program.
func approvalProgramArgv(set *config.LoadedSettings, w *Environment) []string {
	argv := set.Approval.CommandChannelArgv
	if len(argv) == 0 {
		return nil
	}
	environ := w.Environ()
	if w.checkHostAsksUser != nil {
		environ = []string{"PATH=" + strings.Join(systemProgramFolders, string(os.PathListSeparator))}
	}
	path, err := launch.LookPath(argv[0], environ)
	if err != nil {
		return argv
	}
	return append([]string{path}, argv[1:]...)
}

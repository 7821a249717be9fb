package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/bounds"
	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/shield"
)

// A containFlag is --contain, or --contain=require.
type containFlag struct{ *cli.GenericFlag }

// TakesValue reports that the next word is not the flag's value.
func (containFlag) TakesValue() bool { return false }

// A containmentMode says whether a program runs contained: "" never, [containIfPossible] if the
// machine supports containment, [containAlways] always, or the program does not start.
type containmentMode string

const (
	containIfPossible containmentMode = "true"
	containAlways     containmentMode = "require"
)

// Set implements [flag.Value].
func (m *containmentMode) Set(s string) error {
	switch s {
	case "true", "require":
		*m = containmentMode(s)
	case "false":
		*m = ""
	default:
		return errors.New("write --contain or --contain=require")
	}
	return nil
}

func (m *containmentMode) String() string { return "" }

// IsBoolFlag allows the flag without a value.
func (m *containmentMode) IsBoolFlag() bool { return true }

func newContainFlag(containedProgramNoun string) cli.Flag {
	return containFlag{&cli.GenericFlag{Name: "contain", Value: new(containmentMode), Usage: "let " + containedProgramNoun + " reach only what it needs; --contain=require starts nothing where that is not possible"}}
}

// containFlagValue returns the value of --contain.
func containFlagValue(c *cli.Context) containmentMode {
	m, _ := c.Generic("contain").(*containmentMode)
	if m == nil {
		return ""
	}
	return *m
}

// newContainedProgramContext returns the folders from which the containment profile of a program is computed: the
// home folder, the workspace roots, and shield's own files and state folder.
func newContainedProgramContext(set *config.LoadedSettings, w *Environment) bounds.ContainedProgramContext {
	at := bounds.ContainedProgramContext{Home: w.Home, WorkspaceRoots: set.WorkspaceRoots, ShieldPaths: append(shieldOwnPaths(set, w), absolutePaths([]string{stateDir(&set.Settings, w)}, w.WorkingDir)...)}
	if len(at.WorkspaceRoots) == 0 && effect.CheckWorkspaceRoot(w.WorkingDir, w.Home) == nil {
		at.WorkspaceRoots = []string{w.WorkingDir}
	}
	return at
}

// containmentProfileOfAction returns the containment profile of a judged command, from its effects.
func containmentProfileOfAction(set *config.LoadedSettings, w *Environment, program string, rawAction []byte) (*contain.Profile, error) {
	an, err := shield.NewAnalyzer(pipelineConfigFromSettings(set, w, "exec"))
	if err != nil {
		return nil, err
	}
	a, err := action.Parse(rawAction)
	if err != nil {
		return nil, err
	}
	at := newContainedProgramContext(set, w)
	at.CommandArgv = []string{program}
	return bounds.OfCommand(an.AnalyzeAction(a).Effects, at)
}

// printContainmentProfile prints a profile, and the mechanisms that enforce it.
func printContainmentProfile(w *Environment, p *contain.Profile) error {
	out := json.NewEncoder(w.Out)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(struct {
		*contain.Profile
		Means []contain.KernelFeature `json:"means"`
	}{p, contain.ProbeKernelFeatures()})
}

// runContained runs a command in a contained child process. If containment is impossible but not
// required, runContained prints the reason and returns ran = false, and the caller may run the
// command without containment.
func runContained(c *cli.Context, w *Environment, cmd *launch.Command, raw []byte) (ran bool, err error) {
	mode := containFlagValue(c)
	set, err := loadSettings(c, w)
	if err != nil {
		return false, err
	}
	p, err := containmentProfileOfAction(set, w, cmd.Path(), raw)
	if err == nil && c.Bool("profile") {
		return true, printContainmentProfile(w, p)
	}
	if err == nil {
		var child *exec.Cmd
		if child, err = cmd.NewChildCommand(); err != nil {
			return false, fmt.Errorf("exec %s: %w", cmd.Path(), err)
		}
		child.Dir, child.Stdin, child.Stdout, child.Stderr = w.WorkingDir, w.In, w.Out, w.Err
		var refused []contain.Refusal
		var started *contain.Process
		if started, err = contain.Start(func() *exec.Cmd { own := *child; return &own }, p, allowedContainmentMechanisms(mode), func(r contain.Refusal) { refused = append(refused, r) }); err == nil {
			for _, why := range unenforcedRestrictionMessages(p, started.UsedMechanisms, started.HardLinkSearchIncompleteFolders) {
				fmt.Fprintf(w.Err, "shield: %s\n", why)
				writeContainmentAuditEntry(c, w, why)
			}
			err = waitContained(c.Context, started)
			explainDeniedAccesses(c, w, refused, err != nil)
			return true, err
		}
	}
	if free, why := mayRunUncontainedWithReason(err); !free {
		return false, fmt.Errorf("exec %s: %w", cmd.Path(), err)
	} else if mode == containAlways || c.Bool("profile") {
		return false, fmt.Errorf("exec --contain=require: %s; nothing was run", why)
	} else {
		fmt.Fprintf(w.Err, "shield: runs without containment: %s. To refuse instead: --contain=require\n", term.EscapeControlAndInvisible(why))
		writeContainmentAuditEntry(c, w, "ran without containment: "+why)
	}
	return false, nil
}

// unenforcedRestrictionMessages lists what containment does not restrict here, as messages.
func unenforcedRestrictionMessages(p *contain.Profile, used contain.Mechanism, foldersUnsearchedForHardLinks []string) (out []string) {
	if used&contain.Namespaces == 0 {
		out = append(out, describeLandlockGaps(p))
	}
	if len(foldersUnsearchedForHardLinks) > 0 {
		out = append(out, term.EscapeControlAndInvisible("contained, but these folders, which containment hides, have too many files to search for hard links, through which the program could read them: "+strings.Join(foldersUnsearchedForHardLinks, ", ")+"; to refuse that, use --contain=require"))
	}
	return out
}

// describeLandlockGaps says what a program can still do if only Landlock, without namespaces, contains it.
func describeLandlockGaps(p *contain.Profile) string {
	gap := "the program can change permissions and timestamps of files that it cannot write"
	if len(p.ReadOnlyPaths) > 0 {
		gap += ", and the program can write git hooks and agent settings in the workspace"
	}
	return "contained by Landlock alone: " + gap + "; to refuse that, use --contain=require"
}

// allowedContainmentMechanisms returns the mechanisms that may enforce a profile; if containment is required,
// only complete ones.
func allowedContainmentMechanisms(mode containmentMode) contain.Mechanism {
	if mode == containAlways {
		return contain.Namespaces
	}
	return contain.Landlock | contain.Namespaces
}

// mayRunUncontainedWithReason returns true if an error means that a program cannot be contained, so that it may
// run without containment unless that is required. It also returns the text of the error.
func mayRunUncontainedWithReason(err error) (bool, string) {
	var cannot *bounds.UncontainableCommandError
	var unavailable *contain.ContainmentUnavailableError
	return errors.As(err, &cannot) || errors.As(err, &unavailable), err.Error()
}

// maxPrintedDeniedAccesses limits how many refusals are printed at once.
const maxPrintedDeniedAccesses = 5

// explainDeniedAccesses says what a contained command was refused, and how to allow it. For a command that
// succeeded it mentions only refused reads and connections: refused writes, such as to a cache, were
// not needed.
func explainDeniedAccesses(c *cli.Context, w *Environment, deniedAccesses []contain.Refusal, commandFailed bool) {
	if len(deniedAccesses) == 0 {
		return
	}
	var names []string
	told := commandFailed
	for i, r := range deniedAccesses {
		told = told || r.Access != contain.Write
		if i < maxPrintedDeniedAccesses {
			names = append(names, r.String())
		}
	}
	if more := len(deniedAccesses) - maxPrintedDeniedAccesses; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	list := strings.Join(names, ", ")
	writeContainmentAuditEntry(c, w, "containment blocked the command's access to: "+term.EscapeControlAndInvisible(list))
	if told {
		fmt.Fprintf(w.Err, "shield: containment blocked %s: the command does not name it. Name it in the command, or run it without --contain\n", term.EscapeControlAndInvisible(list))
	}
}

// waitContained waits for a contained program. If a signal other than an interrupt ends shield, the program gets
// SIGTERM; an interrupt from the terminal reaches both processes.
func waitContained(ctx context.Context, started *contain.Process) error {
	defer started.WaitForReportsAndCleanUp()
	stop := context.AfterFunc(ctx, func() {
		if !strings.Contains(fmt.Sprint(context.Cause(ctx)), "interrupt") {
			_ = started.Terminate()
		}
	})
	defer stop()
	err := started.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &statusError{exit.ExitCode(), nil}
	}
	return err
}

// writeContainmentAuditEntry logs a containment event in the audit log.
func writeContainmentAuditEntry(c *cli.Context, w *Environment, eventText string) {
	_, p, err := newPipelineWithConfigChange(c, w, func(*shield.Config) {})
	if err != nil {
		fmt.Fprintln(w.Err, "shield: the audit log could not be written: ", err)
		return
	}
	defer p.Close()
	p.LogAndNotify(audit.EntryKindProgramContainment, eventText)
}

// mcpServerContainmentMode returns how a configured server is contained. It is always contained if
// its settings or the command line require that; otherwise it is contained if possible.
func mcpServerContainmentMode(s *config.ServerContainment, commandLineMode containmentMode) containmentMode {
	if s.MustBeContained || commandLineMode == containAlways {
		return containAlways
	}
	return containIfPossible
}

// startMCPServer starts a server, contained if requested.
func startMCPServer(mode containmentMode, grants config.ServerContainment, set *config.LoadedSettings, w *Environment, server gateway.Server, path string, argv, env []string, p *shield.Pipeline, session string) (*gateway.ServerProcess, error) {
	var profile *contain.Profile
	err := error(nil)
	tell := func(text string) {
		p.LogAndNotify(audit.EntryKindProgramContainment, term.EscapeControlAndInvisible("mcp "+server.Name+": "+text))
	}
	refused := func(r contain.Refusal) {
		tell("containment blocked the server's access to " + r.String() + "; to allow it, " + describeSettingAllowingAccess(r, server.Name))
		if a := refusedAction(r, session, w.WorkingDir); a != nil {
			if err := p.RecordDenialByHostOrUser(context.Background(), a); err != nil {
				tell(err.Error())
			}
		}
	}
	if mode != "" {
		at := newContainedProgramContext(set, w)
		at.CommandArgv = append([]string{path}, argv...)
		profile, err = bounds.OfServer(path, at, bounds.UserGrantsForServer{Read: grants.ReadablePaths, Write: slices.Concat(grants.WritablePaths, server.ToolArgPathBaseFolders), NoNetwork: grants.NetworkAccess == "none"})
		if err != nil {
			return nil, err
		}
	}
	process, err := gateway.StartServerProcess(path, argv, env, w.WorkingDir, w.Err, profile, allowedContainmentMechanisms(mode), refused)
	if profile == nil {
		return process, err
	}
	if err == nil {
		for _, why := range unenforcedRestrictionMessages(profile, process.UsedMechanisms(), process.FoldersUnsearchedForHardLinks()) {
			tell(why)
		}
		return process, nil
	}
	free, why := mayRunUncontainedWithReason(err)
	switch {
	case !free:
		return nil, err
	case mode == containAlways:
		return nil, fmt.Errorf("%s; the server was not started", why)
	}
	tell("runs without containment: " + why)
	return gateway.StartServerProcess(path, argv, env, w.WorkingDir, w.Err, nil, 0, nil)
}

// describeSettingAllowingAccess names the server setting that would allow a refused access.
func describeSettingAllowingAccess(r contain.Refusal, server string) string {
	switch r.Access {
	case contain.Read:
		return fmt.Sprintf("put the path under contain.read of the server %s in mcp.servers", server)
	case contain.Write:
		return fmt.Sprintf("put the path, or its folder, under contain.write of the server %s in mcp.servers", server)
	}
	return fmt.Sprintf("set contain.network of the server %s in mcp.servers to \"open\"", server)
}

// refusedAction returns the action that corresponds to a refused access of a server, for its session;
// nil if too little is known about the access.
func refusedAction(r contain.Refusal, session, dir string) *action.Action {
	fields := map[string]any{"type": "read_file", "payload": map[string]string{"path": r.Target}, "session": session, "cwd": dir}
	switch {
	case r.Target == "":
		return nil
	case r.Access == contain.Write:
		fields["type"], fields["payload"] = "write_file", map[string]string{"path": r.Target, "content": ""}
	case r.Access == contain.Network:
		fields["type"], fields["payload"] = "http_request", map[string]string{"url": "http://" + r.Target + "/"}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	a, err := action.Parse(raw)
	if err != nil {
		return nil
	}
	return a
}

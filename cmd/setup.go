package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/policy"
)

// questionChannelChoices are the words for --ask, with the channels that each selects.
var questionChannelChoices = []struct{ word, channels, means string }{
	{"auto", "auto", "in the agent's own prompt where it waits, otherwise on shield's page"},
	{"host", "[host]", "in the agent's own prompt, and nowhere else"},
	{"page", "[web]", "on shield's page in the browser, with a desktop notification"},
	{"terminal", "[tty]", "on the terminal, which the hooks of agents do not have"},
}

// evaluatorPresetChoices are the presets that setup offers if a language model is configured. They
// differ in whether the user or the model answers shield's questions. The field calls is the number
// of model calls per 100 actions of recorded tasks. For the preset assisted it counts all questions
// that the preset offline would ask the user, including those that the model may not answer.
var evaluatorPresetChoices = []struct {
	preset, means string
	calls         int
}{
	{"offline", "ask me, and use no model", 0},
	{"assisted", "ask the model first, then me", 4},
	{"default", "a model reviews every change", 23},
}

func setupCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "setup",
		Usage: "protect the agents on this machine",
		Description: "Finds the agent hosts on this machine, makes each call shield before every tool call, chooses how shield's questions reach you, and tests that a denial is enforced. " +
			"On a terminal it asks what to do; with --yes it uses the flags, and the defaults for the rest. Only settings that differ from the defaults are written. A second run changes " +
			"only what is missing. --undo restores the hosts' settings. Exits with 1 if a host is not protected, or its questions cannot be asked.",
		Flags: []cli.Flag{
			configFlag(), stateFlag(),
			&cli.StringSliceFlag{Name: "host", Usage: "protect the host `NAME` instead of all that are found; may be repeated"},
			&cli.StringFlag{Name: "ask", Usage: "ask the user by `host|page|terminal|auto`"},
			&cli.StringFlag{Name: "preset", Usage: "use the policy `auto|" + strings.Join(policy.PresetNames(), "|") + "`"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "ask nothing"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the changes without making them"},
			&cli.BoolFlag{Name: "undo", Usage: "take the hooks of shield out of the settings of agent hosts, which are then as before setup"},
		},
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			asks, sure := !c.Bool("yes") && !c.Bool("dry-run"), personProofNoAgentAncestor
			switch {
			case asks && !(isTerminal(w.In) && isTerminal(w.Err)):
				return errors.New("setup: there is no terminal to ask on; run it with --yes, or with --dry-run to see what would change")
			case asks:
				sure = personProofAtTerminal
			}
			if !c.Bool("dry-run") {
				if err := requirePerson(w, "setup", sure); err != nil {
					return err
				}
			}
			if err := setup(c, w, asks); err != nil {
				return fmt.Errorf("setup: %w", err)
			}
			return nil
		},
	}
}

// setup checks everything that can be checked before it makes changes.
func setup(c *cli.Context, w *Environment, isInteractive bool) error {
	switch {
	case c.Bool("undo") && (c.IsSet("ask") || c.IsSet("preset")):
		return errors.New("--undo can be combined only with --host, --yes and --dry-run")
	case c.IsSet("ask") && approvalChannelsForAskFlag(c.String("ask")) == "":
		return fmt.Errorf("--ask: %q is not one of host, page, terminal, auto", shortenTo80Characters(c.String("ask")))
	case c.IsSet("preset") && !slices.Contains(append(policy.PresetNames(), "auto"), c.String("preset")):
		return fmt.Errorf("--preset: %q is not one of auto, %s; to use a policy file, write its path in the setting policy", shortenTo80Characters(c.String("preset")), strings.Join(policy.PresetNames(), ", "))
	}
	if st, err := os.Stat(w.Home); w.Home == "" || err != nil || !st.IsDir() {
		return fmt.Errorf("the home folder %q does not exist; set HOME", shortenTo80Characters(w.Home))
	}
	set, err := loadSettings(c, w)
	if err != nil {
		return err
	}
	if c.Bool("undo") {
		return uninstallHooksFromHosts(c, w, set, isInteractive)
	}
	s := &setupPlan{environment: w, currentSettings: set, askFlagValue: c.String("ask"), policyPresetName: c.String("preset")}
	if s.hostNames, s.untestedHostNames, err = hostsToProtect(c, w); err != nil {
		return err
	}
	if isInteractive {
		if err := s.askUserForMissingChoices(c); err != nil {
			return err
		}
	}
	if err := s.computeChanges(c); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return s.printPlan(c.Context)
	}
	if err := s.applyChanges(c); err != nil {
		return err
	}
	if err := s.verifyAndReportInstalledHooks(c); err != nil || !isInteractive {
		return err
	}
	return s.offerModelExam(c)
}

// approvalChannelsForAskFlag returns the value of approval.channels for a word of --ask; "" for an unknown word.
func approvalChannelsForAskFlag(askFlagValue string) string {
	for _, a := range questionChannelChoices {
		if a.word == askFlagValue {
			return a.channels
		}
	}
	return ""
}

// hostsToProtect returns the hosts of --host, or the hosts on this machine that were tested with
// shield; untested are the other hosts on this machine.
func hostsToProtect(c *cli.Context, w *Environment) (names, untested []string, err error) {
	if named := c.StringSlice("host"); len(named) > 0 {
		for _, name := range named {
			if _, err := host.Named(name); err != nil {
				return nil, nil, err
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names, nil, nil
	}
	for _, name := range host.Names() {
		h, err := host.Named(name)
		switch {
		case err != nil:
			return nil, nil, err
		case !w.hostInstalled(h):
		case h.VerifiedVersion() == "":
			untested = append(untested, name)
		default:
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		also := ""
		if len(untested) > 0 {
			also = fmt.Sprintf(" %s is installed, but was not tested with shield; to protect it anyway, name it with --host.", strings.Join(untested, ", "))
		}
		return nil, nil, fmt.Errorf("no agent host that was tested with shield is found on this machine.%s Name one with --host: %s", also, strings.Join(host.Names(), ", "))
	}
	return names, untested, nil
}

// A setupPlan holds the changes of one run of setup.
type setupPlan struct {
	environment                    *Environment
	currentSettings                *config.LoadedSettings
	hostNames                      []string // names of the hosts to set up
	untestedHostNames              []string // hosts on this machine that are not set up, since they were not tested with shield
	askFlagValue, policyPresetName string   // "" keeps the current setting

	hosts              []*hostToSetUp
	shieldSettingsFile hostSettingsFileOnDisk // shield's own settings file
	newSettingsText    []byte                 // new content of shield's settings file
	settingsChanged    bool                   // newSettingsText is to be written to shield's settings file
}

// A hostToSetUp is an agent host to set up, with the edits of its settings files and the result of the setup.
type hostToSetUp struct {
	*hostHookInstaller
	edits             []settingsEdit
	err               error    // why shield does not protect the host; nil if nothing failed
	requiredUserSteps []string // what the user must do first
	hadInstalledHooks bool     // hooks of shield were already installed before this setup
}

// computeChanges reads the current settings, and computes the changes.
func (s *setupPlan) computeChanges(c *cli.Context) error {
	for _, name := range s.hostNames {
		quiet := *s.environment
		quiet.Err = io.Discard
		settings, err := newHostHookInstaller(c, &quiet, name)
		if err != nil {
			return err
		}
		h := &hostToSetUp{hostHookInstaller: settings}
		s.hosts = append(s.hosts, h)
		h.edits, h.err = h.settingsEditsInScope("user")
		if h.err == nil {
			h.edits, h.err = h.dropForeignFileEdits(c.Context, h.edits)
		}
		if h.err == nil {
			h.err = h.checkEditable(c.Context, h.edits)
		}
	}
	return s.planSettings(c)
}

// planSettings computes the new text of shield's own settings file.
func (s *setupPlan) planSettings(c *cli.Context) error {
	s.settingsChanged, s.newSettingsText = false, nil
	var changes []config.SettingChange
	for _, want := range []struct{ name, word, value, now string }{
		{"policy", s.policyPresetName, s.policyPresetName, s.currentSettings.PolicyNameOrPath},
		{"approval.channels", s.askFlagValue, approvalChannelsForAskFlag(s.askFlagValue), s.approvalChannels()},
	} {
		if want.word == "" || want.value == want.now {
			continue
		}
		if strings.HasPrefix(s.currentSettings.OriginBySetting[want.name], "locked by ") {
			return fmt.Errorf("%s cannot be set to %s, because it is %s; ask your administrator to change it", want.name, want.value, s.currentSettings.OriginBySetting[want.name])
		}
		changes = append(changes, config.SettingChange{Name: want.name, Value: want.value})
	}
	src, err := settingsSources(c, s.environment)
	if err != nil {
		return err
	}
	name := src.UserSettingsPathOverride
	if name == "" {
		name = src.UserSettingsPath
	}
	if s.shieldSettingsFile, err = newSettingsFile(name); err != nil || len(changes) == 0 {
		return err
	}
	before, _, err := s.shieldSettingsFile.read()
	if err != nil {
		return err
	}
	src.ApplyFlagsAndListChanged = nil
	if s.newSettingsText, err = config.ApplyChangesToSettingsText(src, s.shieldSettingsFile.path, before, changes...); err != nil {
		return err
	}
	s.settingsChanged = true
	return s.shieldSettingsFile.checkWritable()
}

// approvalChannels returns the value of approval.channels in YAML.
func (s *setupPlan) approvalChannels() string {
	if s.currentSettings.Approval.Channels.IsChosenByShield() {
		return config.AutoChannels
	}
	return "[" + strings.Join(s.currentSettings.Approval.Channels, ", ") + "]"
}

// printPlan prints what would change.
func (s *setupPlan) printPlan(ctx context.Context) error {
	var b strings.Builder
	for _, h := range s.hosts {
		if h.err != nil {
			fmt.Fprintf(&b, "%s cannot be protected: %v; correct this, then run 'shield setup' again\n", h.host.Title(), h.err)
			continue
		}
		for _, e := range h.edits {
			before, _, err := e.file.read()
			if err != nil {
				return err
			}
			after, err := e.fileDefinition.Install(ctx, before)
			if err != nil {
				return err
			}
			b.WriteString(unifiedDiff(e.file.path, before, e.file.path, after))
		}
	}
	if s.settingsChanged {
		before, _, err := s.shieldSettingsFile.read()
		if err != nil {
			return err
		}
		b.WriteString(unifiedDiff(s.shieldSettingsFile.path, before, s.shieldSettingsFile.path, s.newSettingsText))
	}
	_, err := fmt.Fprint(s.environment.Out, b.String()+"Nothing was changed.\n")
	return err
}

// applyChanges changes the files. A failure for one host does not stop the others.
func (s *setupPlan) applyChanges(c *cli.Context) error {
	return s.hosts[0].withLock(c.Context, func() (err error) {
		if s.currentSettings, err = loadSettings(c, s.environment); err != nil { // another setup may have changed them
			return err
		}
		if err := s.planSettings(c); err != nil {
			return err
		}
		if s.settingsChanged {
			if err := s.shieldSettingsFile.replaceContent(s.newSettingsText, false); err != nil {
				return err
			}
			if s.currentSettings, err = loadSettings(c, s.environment); err != nil {
				return err
			}
		}
		for _, h := range s.hosts {
			if h.err == nil {
				h.hadInstalledHooks = len(h.findHooks(c.Context).hooks) > 0
				h.err = h.writeHooks(c.Context, h.edits)
			}
		}
		return nil
	})
}

// verifyHooks runs the installed hook of each host with an action that must be denied.
func (s *setupPlan) verifyHooks(ctx context.Context) {
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for _, h := range s.hosts {
		if h.err != nil {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			h.requiredUserSteps, h.err = h.testInstalledHooksDeny(ctx)
		})
	}
	all.Wait()
}

// verifyAndReportInstalledHooks verifies what was set up, and summarises the result in a few lines.
func (s *setupPlan) verifyAndReportInstalledHooks(c *cli.Context) error {
	s.verifyHooks(c.Context)
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var titles, waiting []string
	var failed []error
	restart := false
	for _, h := range s.hosts {
		title := h.host.Title()
		switch restarts := strings.HasPrefix(h.NextUserStep, "restart "); {
		case h.err != nil:
			failed = append(failed, fmt.Errorf("%s is not protected: %w; correct this, then run 'shield setup' again", title, h.err))
		case len(h.requiredUserSteps) > 0 || !restarts && !h.hadInstalledHooks:
			waiting = append(waiting, title+" is not protected yet; next step: "+h.NextUserStep+".")
		default:
			titles = append(titles, title)
			restart = restart || !h.hadInstalledHooks
		}
	}
	if len(titles) > 0 {
		more := ""
		if restart {
			more = " Restart the agents that are running."
		}
		say("Protected: %s. Each denied a test command.%s", strings.Join(titles, ", "), more)
	}
	lines = append(lines, waiting...)
	if len(titles)+len(waiting) > 0 {
		arrives, unasked := s.questionRouteLines()
		lines = append(lines, arrives...)
		failed = append(failed, unasked...)
		say("A question without an answer is denied; shield's page waits %s.", s.currentSettings.Hook.Timeout.AsTimeDuration())
		say("Allow what was denied: shield allow")
		say("Remove shield: shield setup --undo")
	}
	lines = append(lines, s.describeEvaluatorModelUse(c.Context)...)
	if s.settingsChanged {
		say("Changed settings: %s", s.environment.abbreviateHome(s.shieldSettingsFile.path))
	}
	if len(s.untestedHostNames) > 0 {
		say("Not changed, since shield was not tested with it: %s. To protect it: shield setup --host %s", strings.Join(s.untestedHostNames, ", "), s.untestedHostNames[0])
	}
	if _, err := fmt.Fprintln(s.environment.Out, joinLinesEscapedForTerminal(lines)); err != nil {
		return err
	}
	if len(failed) > maxPrintedHookFailures {
		failed = append(failed[:maxPrintedHookFailures:maxPrintedHookFailures], fmt.Errorf("%d more; run 'shield hook status --all'", len(failed)-maxPrintedHookFailures))
	}
	return errors.Join(failed...)
}

// maxPrintedHookFailures is how many failures are printed, so that the report fits on a screen.
const maxPrintedHookFailures = 4

// describeEvaluatorModelUse says how often the evaluator's model is asked, and whether its answer counts.
func (s *setupPlan) describeEvaluatorModelUse(ctx context.Context) (lines []string) {
	if s.currentSettings.Evaluator.Provider == "" {
		return nil
	}
	preset := s.currentSettings.PolicyNameOrPath
	if preset == "auto" {
		preset = "default"
	}
	for _, r := range evaluatorPresetChoices {
		if r.preset == preset && r.calls > 0 {
			lines = append(lines, fmt.Sprintf("%s reviews about %d of 100 actions (measured on recorded tasks), so that daily_budget %d is enough for about %d actions a day.", s.currentSettings.Evaluator.Model, r.calls, s.currentSettings.MaxEvaluationsPerDay, s.currentSettings.MaxEvaluationsPerDay*100/r.calls))
		}
	}
	l, err := loadModelApprovalAuthority(ctx, s.currentSettings, s.environment)
	if err != nil {
		return lines
	}
	if l.CannotApproveReason != "" {
		lines = append(lines, "The model's ALLOW does not replace your approval: "+l.CannotApproveReason+".")
	}
	if why := describeModelOverblocking(l); why != "" {
		lines = append(lines, "The model blocks too many ordinary actions: "+why+". "+strongerModelAdvice+".")
	}
	return lines
}

// questionRouteLines returns a line for each way in which questions are asked or denied, with the hosts that use
// it. unreachableRouteErrors contains one error if the questions of at least one host reach no user although the
// settings do not intend that.
func (s *setupPlan) questionRouteLines() (lines []string, unreachableRouteErrors []error) {
	var ways []string
	titles := map[string][]string{}
	for _, h := range s.hosts {
		if h.err != nil {
			continue
		}
		title := h.host.Title()
		a := questionRouteOf(s.environment, s.currentSettings, h.host)
		how := "asked " + strings.ReplaceAll(a.ChannelDescription, title+"'s", "the agent's")
		if a.ChannelDescription == "" {
			how = "shield cannot ask you, so it denies actions that need approval: " + strings.ReplaceAll(a.NoRouteReason, title, "the agent")
		}
		if err := a.checkReachable(); err != nil {
			unreachableRouteErrors = []error{err}
		}
		if len(titles[how]) == 0 {
			ways = append(ways, how)
		}
		titles[how] = append(titles[how], title)
	}
	for _, how := range ways {
		lines = append(lines, fmt.Sprintf("Questions of %s: %s.", strings.Join(titles[how], ", "), how))
	}
	return lines, unreachableRouteErrors
}

// uninstallHooksFromHosts removes the hooks from the hosts' settings.
func uninstallHooksFromHosts(c *cli.Context, w *Environment, set *config.LoadedSettings, isInteractive bool) error {
	names := c.StringSlice("host")
	if len(names) == 0 {
		names = host.Names()
	}
	quiet := *w
	quiet.Err = io.Discard
	var all []*hostHookInstaller
	for _, name := range names {
		s, err := newHostHookInstaller(c, &quiet, name)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	if c.Bool("dry-run") {
		quiet.Err = w.Out
	}
	if isInteractive {
		if ok, err := confirmYesNo(w, "Remove shield from the settings of the agents on this machine?"); err != nil || !ok {
			return errors.Join(err, errors.New("nothing was changed"))
		}
	}
	var failed []error
	removed := 0
	undo := func() error {
		for _, s := range all {
			done, err := s.uninstallAndDescribe(c.Context, c.Bool("dry-run"))
			if done != "" {
				removed++
				fmt.Fprintln(w.Out, escapeLineForTerminal(done))
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", s.host.Title(), err))
			}
		}
		return nil
	}
	if c.Bool("dry-run") {
		return errors.Join(append(failed, undo())...)
	}
	if err := all[0].withLock(c.Context, undo); err != nil {
		return err
	}
	if removed == 0 && len(failed) == 0 {
		fmt.Fprintln(w.Out, "shield is in the settings of no agent.")
	}
	stays := []string{"the program " + w.abbreviateHome(w.ShieldExecutablePath), "state and audit log in " + w.abbreviateHome(stateDir(&set.Settings, w))}
	for _, name := range set.Files {
		stays = append(stays, "your settings "+w.abbreviateHome(name))
	}
	fmt.Fprintln(w.Out, escapeLineForTerminal("What stays: "+strings.Join(stays, ", ")+"."))
	return errors.Join(failed...)
}

// uninstallAndDescribe removes the hook from the host's settings, and describes what was done; "" if there is no hook
// of shield.
func (s *hostHookInstaller) uninstallAndDescribe(ctx context.Context, dryRun bool) (description string, err error) {
	edits, err := s.settingsEditsInScope("user")
	if err != nil {
		return "", err
	}
	var restored, edited []string
	var failed []error
	for _, e := range edits {
		same, err := s.removeHook(ctx, e.fileDefinition, e.file, dryRun)
		doc, _, _ := e.file.read()
		switch {
		case errors.Is(err, host.ErrNotInstalled), err != nil && len(doc) > 0 && !bytes.Contains(doc, []byte("hook "+s.host.Name)):
		case err != nil:
			failed = append(failed, err)
		case same:
			restored = append(restored, s.environment.abbreviateHome(e.file.path))
		default:
			edited = append(edited, s.environment.abbreviateHome(e.file.path))
		}
	}
	if len(restored) > 0 {
		description = s.host.Title() + " has its settings from before shield: " + strings.Join(restored, ", ") + ". "
	}
	if len(edited) > 0 {
		description += s.host.Title() + " no longer calls shield; changes made to its settings after shield was installed are kept: " + strings.Join(edited, ", ") + "."
	}
	return strings.TrimSpace(description), errors.Join(failed...)
}

// testInstalledHooksDeny returns what the user has to do before the host enforces a denial, and an error
// if the installed hook does not deny.
func (s *hostHookInstaller) testInstalledHooksDeny(ctx context.Context) (userSteps []string, err error) {
	seen := s.findHooks(ctx)
	problems := seen.problems
	if len(seen.hooks) == 0 && len(problems) == 0 {
		return nil, host.ErrNotInstalled
	}
	for _, h := range seen.hooks {
		userSteps = append(userSteps, h.PendingUserSteps...)
		if len(problems) > 0 {
			continue
		}
		if err := s.testDenial(ctx, h); err != nil {
			problems = append(problems, h.settingsPath+": "+err.Error())
		}
	}
	if len(problems) > 0 {
		return nil, denialNotEnforcedError(problems)
	}
	return userSteps, nil
}

// abbreviateHome returns a path with ~ for the home folder.
func (w *Environment) abbreviateHome(path string) string {
	if below, ok := strings.CutPrefix(path, w.Home+string(filepath.Separator)); ok && w.Home != "" {
		return "~" + string(filepath.Separator) + below
	}
	return path
}

// joinLinesEscapedForTerminal returns lines with control characters escaped.
func joinLinesEscapedForTerminal(lines []string) string {
	for i, line := range lines {
		lines[i] = escapeLineForTerminal(line)
	}
	return strings.Join(lines, "\n")
}

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

// An approvalQuestionRoute says how shield's questions about the calls of a host reach the user.
type approvalQuestionRoute struct {
	ChannelDescription string // where questions are asked, such as "in Claude Code's own prompt"; "" if they cannot be asked
	NoRouteReason      string // why questions cannot be asked

	// SettingsPreventQuestions means that the user's settings prevent questions: they name no channel, or
	// set approval.unattended.
	SettingsPreventQuestions bool
}

// checkReachable returns an error if shield's questions cannot reach the user, unless the user's
// settings prevent questions [approvalQuestionRoute.SettingsPreventQuestions].
func (a approvalQuestionRoute) checkReachable() error {
	if a.ChannelDescription != "" || a.SettingsPreventQuestions {
		return nil
	}
	return errors.New("shield's questions reach no user; set approval.channels: auto, or deny them with approval.unattended: deny")
}

// String returns one line for people.
func (a approvalQuestionRoute) String() string {
	if a.ChannelDescription == "" {
		return "Questions cannot be asked: " + a.NoRouteReason + ". While questions cannot be asked, shield denies actions that need approval."
	}
	return "Questions: asked " + a.ChannelDescription + "."
}

// questionRouteOf returns how the questions of a host's hook reach the user, as far as that is known outside
// a session of the host.
func questionRouteOf(w *Environment, set *config.LoadedSettings, h *host.Host) approvalQuestionRoute {
	o := approve.Options{Approval: set.Approval, StateDir: stateDir(&set.Settings, w), Getenv: w.Getenv}
	channels, auto := []string(set.Approval.Channels), set.Approval.Channels.IsChosenByShield()
	if auto {
		channels = []string{approve.HostChannel, "web"}
	}
	var why []string
	note := "" // why the host does not ask, although it supports that
	for _, name := range channels {
		switch {
		case name == approve.HostChannel && checkHostCanAskUser(w, o.StateDir, h) == nil:
			how := "in " + h.Title() + "'s own prompt"
			if auto && o.CheckChannelUsable("web") == nil {
				how += ", and on the approval page where that prompt does not wait for a user"
			}
			return approvalQuestionRoute{ChannelDescription: how}
		case name == approve.HostChannel && auto:
			if h.CheckHostAwaitsUserAnswer() == nil {
				note = " (not in its own prompt: " + checkHostCanAskUser(w, o.StateDir, h).Error() + ")"
			}
		case name == approve.HostChannel:
			why = append(why, checkHostCanAskUser(w, o.StateDir, h).Error())
		case name == "tty":
			why = append(why, "a hook has no terminal of its own; set approval.channels: auto")
		default:
			err := o.CheckChannelUsable(name)
			if auto && checkNotInCI(w) != nil {
				why = append(why, checkNotInCI(w).Error())
				continue
			}
			if err != nil {
				why = append(why, name+": "+err.Error())
				continue
			}
			return approvalQuestionRoute{ChannelDescription: describeApprovalChannel(w, name) + note}
		}
	}
	if len(channels) == 0 {
		why = []string{"approval.channels is empty; set approval.channels: auto"}
	} else if wait, err := set.Approval.UnattendedWaitDuration(); err == nil && wait > 0 && o.CheckChannelUsable("web") == nil {
		return approvalQuestionRoute{ChannelDescription: fmt.Sprintf("on the approval page, where they wait for %v; run 'shield approvals' to answer", config.Duration(wait))}
	}
	return approvalQuestionRoute{NoRouteReason: strings.Join(why, "; "), SettingsPreventQuestions: len(channels) == 0 || set.OriginBySetting["approval.unattended"] != ""}
}

// checkHostCanAskUser returns an error if shield does not tell a host to ask its user, and nil if it
// does. The function checks only what is known outside the host's sessions, such as the host's
// version and settings files.
func checkHostCanAskUser(w *Environment, stateDir string, h *host.Host) error {
	if err := h.CheckHostAwaitsUserAnswer(); err != nil {
		return err
	}
	version := installedHostVersion(w, h)
	if version != "" {
		if err := h.CheckHostVersionAwaitsUserAnswer(version); err != nil {
			return err
		}
	}
	if err := checkHostVersionAsksUserApproval(stateDir, h, version); err != nil {
		return err
	}
	_, places := h.VersionAndPermissionModeSources()
	return forEachHostSettingsFile(w, places, []string{w.WorkingDir}, func(p *host.HostSettingsFile, name string, doc []byte) error {
		answers, err := p.HasHookAnsweringForUser(context.Background(), doc)
		if err != nil || answers {
			return errors.Join(err, fmt.Errorf("%s has another hook, which can answer for the user; remove that hook", name))
		}
		return nil
	})
}

// describeApprovalChannel describes where a channel asks its questions.
func describeApprovalChannel(w *Environment, channelName string) string {
	switch {
	case channelName == "web" && approve.CanShowDesktopNotification(w.Getenv):
		return "on the approval page, with a desktop notification"
	case channelName == "web":
		return "on the approval page; no desktop notification can be shown here, so run 'shield approvals' in a second terminal to answer"
	case channelName == "command":
		return "by the program of approval.command"
	default:
		return "in " + approve.ChatServiceTitle(channelName)
	}
}

// checkNotInCI returns an error if this process runs on a build server, where no user is.
func checkNotInCI(w *Environment) error {
	if v := w.Getenv("CI"); !slices.Contains([]string{"", "0", "false"}, v) {
		return errors.New("the variable CI is set, so no user can be asked; unset it")
	}
	return nil
}

// checkUserCanBeNotified returns an error if no user can learn of a question on the approval page.
// A user learns of it from a desktop notification, or at the terminal of the agent host that calls
// the hook, where 'shield approvals' shows the address of the page.
func checkUserCanBeNotified(w *Environment, isCalledByHook bool) error {
	if err := checkNotInCI(w); err != nil {
		return err
	}
	if h := w.callingHost; isCalledByHook && h != nil {
		running, _ := w.callingHostProcess(h) // ignore processes that cannot be read
		if h.Headless(context.Background(), w.Getenv, running) {
			return fmt.Errorf("%s runs without a user here; run it interactively", h.Title())
		}
	}
	if approve.CanShowDesktopNotification(w.getenvExceptUntrustedDBus) || isCalledByHook && hasTerminal(w.verdictRequesterPID) {
		return nil
	}
	return errors.New("this session has no terminal and no desktop to ask on; set approval.unattended to let questions wait")
}

// hasTerminal reports whether a process or one of its ancestors has a terminal.
func hasTerminal(pid int) bool {
	above, _ := ancestry.ProcessAndAncestors(pid) // use the processes that could be read
	return slices.ContainsFunc(above, func(p ancestry.Process) bool { return p.TTY != 0 })
}

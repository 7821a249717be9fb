package cmd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
)

// modelListTimeout is how long the doctor waits for the evaluator's list of models.
const modelListTimeout = 5 * time.Second

// examineClassifierSkippedActionTypes reports action types for which the model would never be asked.
func examineClassifierSkippedActionTypes(out *doctorFindings, set *config.LoadedSettings) {
	for _, t := range set.Classifier.SkippedActionTypes.List {
		if slices.Contains(action.CanonicalTypes(), t) {
			continue
		}
		fix := ""
		if canonical := action.CanonicalType(t); canonical != "" {
			fix = "write " + canonical
		} else if near := suggest.Nearest(t, action.CanonicalTypes()); near != "" {
			fix = "write " + near
		} else {
			continue // the type can be that of a custom tool, so do not warn
		}
		out.add(severityWarning, fix, "classifier.skip_types: no action has the type %q%s", shortenTo80Characters(t), settingOriginSuffix(set, "classifier.skip_types"))
	}
}

// examineEvaluator checks the evaluator (Tier 2).
func examineEvaluator(ctx context.Context, out *doctorFindings, set *config.LoadedSettings, ep evaluate.Endpoint) {
	if ep.Provider == "" {
		for _, s := range []struct{ name, value string }{
			{"evaluator.model", ep.Model}, {"evaluator.base_url", ep.BaseURL}, {"evaluator.api_key_env", ep.APIKeyEnv}, {"evaluator.api_key_file", ep.APIKeyFile},
		} {
			if s.value != "" {
				out.add(severityBad, "set evaluator.provider: openai, anthropic, google, ollama or custom", "evaluator: %s is set, but no provider, so no model is asked%s", s.name, settingOriginSuffix(set, s.name))
				return
			}
		}
		out.add(severityOK, "", "evaluator: none; the user decides instead of a model (Tier 2)")
		return
	}
	ctx, stop := context.WithTimeout(ctx, modelListTimeout)
	defer stop()
	problems := evaluate.ProbeEndpoint(ctx, ep)
	for _, p := range problems {
		m := severityBad
		if p.EndpointMayStillWork {
			m = severityWarning
		}
		out.add(m, p.FixAdvice, "evaluator: %s%s", p.Msg, settingOriginSuffix(set, "evaluator."+p.Setting))
	}
	if len(problems) == 0 {
		out.add(severityOK, "", "evaluator: %s, %s: answers", ep.Provider, ep.Model)
	}
}

// examineApproval checks the channels of Tier 3. A missing terminal is no fault: a later start may
// have one.
func examineApproval(out *doctorFindings, set *config.LoadedSettings, cfg shield.Config) {
	opts := cfg.ApprovalOptions
	opts.Approval = cfg.Settings.Approval
	if len(opts.Channels) == 0 {
		out.add(severityWarning, "set approval.channels: auto", "approval: no channel, so actions that need a person are blocked%s", settingOriginSuffix(set, "approval.channels"))
	}
	for _, name := range opts.Channels {
		err := opts.CheckChannelUsable(name)
		switch {
		case name == config.AutoChannels:
			out.add(severityOK, "", "approval: shield chooses the channel (approval.channels: auto)")
		case name == "tty" && err != nil:
			out.add(severityNote, "hooks have no terminal; set approval.channels: auto", "approval at the terminal: this process cannot ask there: %v", err)
		case name == "web" && err != nil:
			out.add(severityBad, `set approval.web.listen: "127.0.0.1:0"`, "approval on the approval page: %v%s", err, settingOriginSuffix(set, "approval.web.listen"))
		case approve.ChatServiceTitle(name) != "" && err != nil:
			out.add(severityBad, "", "approval in %s: %v%s", approve.ChatServiceTitle(name), err, settingOriginSuffix(set, "approval."+name+".token_file"))
		case name == "command" && err != nil:
			out.add(severityBad, "set approval.command to the program's path, or install it in an absolute folder of PATH", "approval by a program: %v%s", err, settingOriginSuffix(set, "approval.command"))
		case name == "command":
			examineApprovalProgram(out, opts)
		case name == approve.HostChannel: // reported by examineHosts
		default:
			out.add(severityOK, "", "approval: %s", name)
		}
	}
	if file := opts.NotificationURLsFile; file != "" {
		switch places, err := approve.QuestionNoticeTargets(file); {
		case err != nil:
			out.add(severityBad, "correct the file, then run 'shield approvals notify'", "notices of questions: %v%s", err, settingOriginSuffix(set, "approval.notify_file"))
		case !slices.Contains(opts.Channels, "web") && !opts.Channels.IsChosenByShield():
			out.add(severityWarning, "add web to approval.channels", "notices of questions: none are sent, because the approval page is off%s", settingOriginSuffix(set, "approval.notify_file"))
		default:
			out.add(severityOK, "", "notices of questions go to %d addresses", len(places))
		}
	}
	if len(set.Approval.CommandChannelArgv) > 0 && !slices.Contains(opts.Channels, "command") {
		out.add(severityWarning, fmt.Sprintf("set approval.channels: [%s]", strings.Join(append(slices.DeleteFunc(slices.Clone(opts.Channels), func(name string) bool { return name == config.AutoChannels }), "command"), ", ")),
			"approval.command is set, but the channel command is not used%s", settingOriginSuffix(set, "approval.command"))
	}
}

// examineHosts reports, for each agent host with a shield hook, how shield's questions about actions reach the
// user.
func examineHosts(ctx context.Context, out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil || !w.hostInstalled(h) || !hasHook(ctx, w, h) {
			continue
		}
		a := questionRouteOf(w, set, h)
		m, fix := severityOK, ""
		if err := a.checkReachable(); err != nil {
			m, fix = severityWarning, err.Error()
		}
		out.add(m, fix, "%s: %s", h.Title(), a)
		if h.VerifiedVersion() == "" {
			out.add(severityWarning, "let the agent try a command that a rule denies, and check that it does not run", "%s: unverified: %[1]s was never run with shield's hook", h.Title())
		}
	}
}

// examineApprovalProgram reports which program answers questions.
func examineApprovalProgram(out *doctorFindings, opts approve.Options) {
	path := opts.CommandChannelArgv[0]
	if info, err := os.Stat(path); err == nil {
		if err := owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits); err != nil {
			out.add(severityWarning, "correct the owner or mode of the program", "approval by a program: other users can change %s: %v", path, err)
			return
		}
	}
	out.add(severityOK, "", "approval by a program: %s, in %s", path, opts.ApprovalProgramWorkingDir)
}

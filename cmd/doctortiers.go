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

// probeTime is how long the doctor waits for an evaluator's list of models.
const probeTime = 5 * time.Second

// examineSkipTypes looks for types that the model would never be asked about.
func examineSkipTypes(out *findings, set *config.Loaded) {
	for _, t := range set.Classifier.SkipTypes.List {
		if slices.Contains(action.Types(), t) {
			continue
		}
		fix := ""
		if canonical := action.CanonicalType(t); canonical != "" {
			fix = "write " + canonical
		} else if near := suggest.Nearest(t, action.Types()); near != "" {
			fix = "write " + near
		} else {
			continue // a custom tool
		}
		out.add(doubt, fix, "classifier.skip_types: no action has the type %q%s", cut(t), at(set, "classifier.skip_types"))
	}
}

// examineEvaluator looks at Tier 2.
func examineEvaluator(ctx context.Context, out *findings, set *config.Loaded, ep evaluate.Endpoint) {
	if ep.Provider == "" {
		for _, s := range []struct{ name, value string }{
			{"evaluator.model", ep.Model}, {"evaluator.base_url", ep.BaseURL}, {"evaluator.api_key_env", ep.APIKeyEnv}, {"evaluator.api_key_file", ep.APIKeyFile},
		} {
			if s.value != "" {
				out.add(wrong, "set evaluator.provider: openai, anthropic, google, ollama or custom", "evaluator: %s is set, but no provider, so no model is asked%s", s.name, at(set, s.name))
				return
			}
		}
		out.add(fine, "", "evaluator: none; a person decides what Tier 2 would")
		return
	}
	ctx, stop := context.WithTimeout(ctx, probeTime)
	defer stop()
	problems := evaluate.Probe(ctx, ep)
	for _, p := range problems {
		m := wrong
		if p.Doubt {
			m = doubt
		}
		out.add(m, p.Fix, "evaluator: %s%s", p.Msg, at(set, "evaluator."+p.Setting))
	}
	if len(problems) == 0 {
		out.add(fine, "", "evaluator: %s, %s: answers", ep.Provider, ep.Model)
	}
}

// examineApproval looks at the channels of Tier 3. That there is no terminal
// now says nothing about the next start.
func examineApproval(out *findings, set *config.Loaded, cfg shield.Config) {
	opts := cfg.Approve
	opts.Approval = cfg.Settings.Approval
	if len(opts.Channels) == 0 {
		out.add(doubt, "set approval.channels: [tty], or more of tty, web, command, telegram, slack, discord, host", "approval: no channel, so actions that need a person are blocked%s", at(set, "approval.channels"))
	}
	for _, name := range opts.Channels {
		err := opts.CheckChannel(name)
		switch {
		case name == "tty" && err != nil:
			out.add(note, "programs without a terminal, such as hooks, need the channel web, command, telegram, slack or discord in approval.channels", "approval at the terminal: not possible from here: %v", err)
		case name == "web" && err != nil:
			out.add(wrong, `set approval.web.listen: "127.0.0.1:0"`, "approval by the page: %v%s", err, at(set, "approval.web.listen"))
		case approve.Messenger(name) != "" && err != nil:
			out.add(wrong, "", "approval in %s: %v%s", approve.Messenger(name), err, at(set, "approval."+name+".token_file"))
		case name == "command" && err != nil:
			out.add(wrong, "set approval.command to the program's path, or install it in an absolute folder of PATH", "approval by a program: %v%s", err, at(set, "approval.command"))
		case name == "command":
			examineProgram(out, opts)
		case name == approve.HostChannel:
			out.add(note, "", "approval by the agent host itself: in %s", hostsThatAsk())
		default:
			out.add(fine, "", "approval: %s", name)
		}
	}
	if file := opts.NotifyFile; file != "" {
		switch places, err := approve.Places(file); {
		case err != nil:
			out.add(wrong, "mend the file, then run 'shield approvals notify'", "notices of questions: %v%s", err, at(set, "approval.notify_file"))
		case !slices.Contains(opts.Channels, "web"):
			out.add(doubt, "add web to approval.channels", "notices of questions: they are sent for questions on the page alone, and the channel web is not used%s", at(set, "approval.notify_file"))
		default:
			out.add(fine, "", "notices of questions: %d places", len(places))
		}
	}
	if len(set.Approval.Command) > 0 && !slices.Contains(opts.Channels, "command") {
		out.add(doubt, fmt.Sprintf("set approval.channels: [%s]", strings.Join(append(slices.Clone(opts.Channels), "command"), ", ")),
			"approval.command is set, but the channel command is not used%s", at(set, "approval.command"))
	}
}

// hostsThatAsk names the hosts that were seen to wait for a person, with the versions.
func hostsThatAsk() string {
	var list []string
	for _, name := range host.Names() {
		if h, err := host.Named(name); err == nil {
			if versions, modes := h.AsksIn(); len(versions) > 0 {
				list = append(list, fmt.Sprintf("%s %s (modes %s)", h.Title(), strings.Join(versions, ", "), strings.Join(modes, ", ")))
			}
		}
	}
	return strings.Join(append(list, "no other host; those are told to deny"), "; ")
}

// examineProgram says which program answers questions.
func examineProgram(out *findings, opts approve.Options) {
	path := opts.Command[0]
	if info, err := os.Stat(path); err == nil {
		if err := owner.Check(info, owner.Write); err != nil {
			out.add(doubt, "", "approval by a program: %s: %v", path, err)
			return
		}
	}
	out.add(fine, "", "approval by a program: %s, in %s", path, opts.CommandDir)
}

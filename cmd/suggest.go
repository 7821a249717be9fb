package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/kind"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// approvedEntriesQuery selects the log entries of actions that a person allowed after a policy rule
// asked.
const approvedEntriesQuery = `select(.kind == "verdict" and .decision == "ALLOW" and .tier == 3 and (.channel // "") != "" and .type == "execute_command") |
	(.payload | objects | select(keys - ["command", "description", "timeout"] == []) | .command | strings) as $command |
	[.trail[]? | select(.tier == 0 and .source == "policy" and (.rule // "") != "") | .rule] as $rules | select($rules != []) |
	{command: $command, cwd: (.cwd // ""), rule: $rules[0]}`

// minApprovalsPerException is how many approvals an exception needs.
const minApprovalsPerException = 3

func suggestCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name: "suggest", Usage: "propose exceptions for actions that were approved repeatedly",
		Description: "Reads the audit log and prints a policy file: exceptions to rules of the preset in use that would have saved questions, each with the number of approvals behind it. Read it before you add it to your policy. An exception is for the same command in the same folder, or for files of the same " +
			"kind in one folder if several were approved. Nothing is proposed for secrets, for shield and the settings of agents, for commands that are not known in full, and for commands with a " +
			"redacted credential. A log that was changed is refused.",
		Flags: append(commonJudgeFlags(),
			&cli.StringFlag{Name: "file", Usage: "read the log `FILE` instead of the configured one"},
			&cli.IntFlag{Name: "approvals", Value: minApprovalsPerException, Usage: "propose exceptions for actions that were approved at least `N` times"}),
		Action: func(c *cli.Context) error { return suggestPolicy(c, w) },
	}
}

// suggestPolicy prints a policy with exceptions for actions that, by the audit log, a person approved
// repeatedly.
func suggestPolicy(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	least := c.Int("approvals")
	if least < 2 {
		return fmt.Errorf("policy suggest: --approvals %d is less than 2; use 2 or more", least)
	}
	text, from, err := buildSuggestedPolicy(c, w, least)
	if err == nil && text == "" {
		return explainNoSuggestion(c, w, from, least)
	}
	if err == nil {
		_, err = fmt.Fprintf(w.Out, "# Proposed from %d approvals of commands. Read it, then add it to your policy.\n%s", from, text)
	}
	return err
}

// explainNoSuggestion says what was examined, and why there is no suggestion.
func explainNoSuggestion(c *cli.Context, w *Environment, allowedCommandCount, requiredApprovals int) error {
	file, err := auditLogPath(c, w)
	if err != nil {
		return err
	}
	why := "no command that a person allowed after a rule asked"
	if allowedCommandCount > 0 {
		why = fmt.Sprintf("%d commands that a person allowed after a rule asked, but no %d of them are similar enough for an exception; see 'shield policy suggest --help'", allowedCommandCount, requiredApprovals)
	}
	_, err = fmt.Fprintf(w.Err, "shield: policy suggest: nothing to propose: %s has %s\n", term.EscapeControlAndInvisible(file), why)
	return err
}

// buildSuggestedPolicy returns the policy whose suggestions are each supported by at least
// requiredApprovals approvals, "" if there is none. examinedApprovalCount is the number of examined
// approvals.
func buildSuggestedPolicy(c *cli.Context, w *Environment, requiredApprovals int) (text string, examinedApprovalCount int, err error) {
	cfg, err := loadPipelineConfig(c, w)
	if err != nil {
		return "", 0, err
	}
	preset, err := shield.PolicyPresetName(cfg)
	if err != nil {
		return "", 0, err
	}
	approvals, err := loggedApprovals(c, w)
	if err != nil {
		return "", 0, err
	}
	an, err := shield.NewAnalyzer(cfg)
	if err != nil {
		return "", 0, err
	}
	found, err := policy.SuggestVerifyRuleExceptions(c.Context, approvals, preset, requiredApprovals, an, shield.PolicyOptions(cfg, &an.DefaultExecutionContext))
	if err == nil {
		found, err = keepSuggestionsAllowingApprovedCommands(c, cfg, preset, found)
	}
	if err != nil || len(found) == 0 {
		return "", len(approvals), err
	}
	return policy.FormatSuggestionPolicy(preset, found), len(approvals), nil
}

// keepSuggestionsAllowingApprovedCommands returns the suggestions under which every approved command would be
// allowed without asking a person. To each suggestion it adds examples of other commands that a policy with all
// suggestions would allow, and the current policy does not.
func keepSuggestionsAllowingApprovedCommands(c *cli.Context, cfg shield.Config, preset string, found []policy.SuggestedException) ([]policy.SuggestedException, error) {
	if len(found) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "shield-suggest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(policy.FormatSuggestionPolicy(preset, found)), 0o600); err != nil {
		return nil, err
	}
	s := *cfg.Settings
	s.Audit.Enabled = false
	cfg.Settings, cfg.PolicyNameOrPath, cfg.StateDir, cfg.IgnoresFileSystem = &s, file, "", true
	p, err := shield.NewPipeline(cfg)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(s policy.SuggestedException) bool {
		return slices.ContainsFunc(s.CoveredApprovals(), func(a policy.Approval) bool {
			o := p.EvaluateThroughTier(c.Context, a.Action(), shield.TierClassify)
			return o.Verdict.Decision != verdict.Allow
		})
	})
	if err := addNewlyAllowedCommands(c, cfg, p, found); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return found, p.Close()
}

// addNewlyAllowedCommands adds to each suggestion the other commands that it newly allows.
// pipelineWithSuggestions is a pipeline whose policy contains the suggestions: a command is added
// if this pipeline allows it and the current policy does not.
func addNewlyAllowedCommands(c *cli.Context, cfg shield.Config, pipelineWithSuggestions *shield.Pipeline, suggestions []policy.SuggestedException) error {
	cfg.PolicyNameOrPath = cfg.Settings.PolicyNameOrPath
	before, err := shield.NewPipeline(cfg)
	if err != nil {
		return err
	}
	passes := func(p *shield.Pipeline, a *action.Action) bool {
		o := p.EvaluateThroughTier(c.Context, a, shield.TierClassify)
		return o.Verdict.Decision == verdict.Allow
	}
	for i := range suggestions {
		one := suggestions[i].CoveredApprovals()[0]
		for _, n := range kind.CoveredVariants(one.Action(), func(a *action.Action) bool { return passes(pipelineWithSuggestions, a) && !passes(before, a) }) {
			suggestions[i].UnapprovedAllowedCommands = append(suggestions[i].UnapprovedAllowedCommands, term.EscapeControlAndInvisible(n.Text("command")))
		}
	}
	return before.Close()
}

// loggedApprovals returns the actions that people approved, if the log contains them in full.
func loggedApprovals(c *cli.Context, w *Environment) ([]policy.Approval, error) {
	file, err := auditLogPath(c, w)
	if err != nil {
		return nil, err
	}
	report, err := compareAuditWithHead(c, w, file)
	if err != nil {
		return nil, err
	}
	if !report.OK() {
		return nil, errors.New("policy suggest: the audit log was changed; run 'shield audit verify'")
	}
	f, err := openAudit(c, w)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []policy.Approval
	_, err = audit.Query(c.Context, f, approvedEntriesQuery, func(line []byte) error {
		var a policy.Approval
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		if !strings.Contains(string(line), "[redacted") && len(a.Command) < audit.MaxEntryStringBytes {
			out = append(out, a)
		}
		return nil
	})
	return out, err
}

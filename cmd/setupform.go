package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/charmbracelet/huh"
	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/exam"
	"github.com/shieldcli/shield/pkg/host"
)

// askUserForMissingChoices asks for what the command line leaves open, and for confirmation.
func (s *setupPlan) askUserForMissingChoices(c *cli.Context) error {
	var fields []huh.Field
	if !c.IsSet("host") {
		var options []huh.Option[string]
		for _, name := range append(s.hostNames[:len(s.hostNames):len(s.hostNames)], s.untestedHostNames...) {
			h, err := host.Named(name)
			if err != nil {
				return err
			}
			title := h.Title()
			if h.VerifiedVersion() == "" {
				title += " (not tested with shield)"
			}
			options = append(options, huh.NewOption(title, name))
		}
		fields = append(fields, huh.NewMultiSelect[string]().Title("Which agents should ask shield before they use a tool?").
			Options(options...).Filterable(false).Value(&s.hostNames).Validate(func(chosen []string) error {
			if len(chosen) == 0 {
				return errors.New("choose at least one agent with the space bar")
			}
			return nil
		}))
	}
	if !c.IsSet("ask") {
		var options []huh.Option[string]
		if !s.currentSettings.Approval.Channels.IsChosenByShield() && len(s.currentSettings.OriginBySetting["approval.channels"]) > 0 {
			options = append(options, huh.NewOption("no change: "+s.approvalChannels()+", as "+s.currentSettings.SettingSourceFileAndLine("approval.channels")+" says", ""))
		}
		for _, a := range questionChannelChoices {
			options = append(options, huh.NewOption(a.word+": "+a.means, a.word))
		}
		fields = append(fields, huh.NewSelect[string]().Title("Where should shield ask you?").Options(options...).Value(&s.askFlagValue))
	}
	if !c.IsSet("preset") && s.currentSettings.Evaluator.Provider != "" && s.currentSettings.PolicyBundle.URLOrPath == "" {
		var options []huh.Option[string]
		if s.currentSettings.PolicyNameOrPath != "auto" {
			options = append(options, huh.NewOption("no change: "+s.currentSettings.PolicyNameOrPath+", as "+s.currentSettings.SettingSourceFileAndLine("policy")+" says", ""))
		}
		for _, r := range evaluatorPresetChoices {
			options = append(options, huh.NewOption(r.preset+": "+r.means, r.preset))
		}
		fields = append(fields, huh.NewSelect[string]().Title("Who should answer shield's questions?").Options(options...).Value(&s.policyPresetName))
	}
	if len(fields) > 0 {
		if err := runForm(s.environment, fields...); err != nil {
			return err
		}
		s.untestedHostNames = nil // already shown to the user
	}
	return nil
}

// offerModelExam asks whether the evaluator's model should take its exam now. It asks only if the ALLOW
// verdicts of the model do not count until it has passed an exam.
func (s *setupPlan) offerModelExam(c *cli.Context) error {
	l, err := loadModelApprovalAuthority(c.Context, s.currentSettings, s.environment)
	if err != nil || !l.ExamDue {
		return err
	}
	question := fmt.Sprintf("Examine %s now? It judges %d test actions; you can do it later with: shield evaluate --exam", s.currentSettings.Evaluator.Model, 2*exam.AttackCount)
	if yes, err := confirmYesNo(s.environment, question); err != nil || !yes {
		return nil //nolint:nilerr // setup is done, and no answer is no
	}
	err = runModelExam(c, s.environment, 1)
	if failed := (*statusError)(nil); errors.As(err, &failed) && failed.err == nil {
		return nil // the exam report already shows that the model failed, and setup is complete
	}
	return err
}

// confirmYesNo asks a yes-or-no question; no is the default.
func confirmYesNo(w *Environment, question string) (yes bool, err error) {
	err = runForm(w, huh.NewConfirm().Title(question).Value(&yes))
	return yes, err
}

// runForm shows a form on the terminal.
func runForm(w *Environment, fields ...huh.Field) error {
	form := huh.NewForm(huh.NewGroup(fields...)).WithTheme(huh.ThemeBase()).WithShowHelp(true).
		WithInput(w.In).WithOutput(w.Err).
		WithAccessible(w.Getenv("TERM") == "dumb")
	err := form.Run()
	switch {
	case errors.Is(err, huh.ErrUserAborted), errors.Is(err, io.EOF):
		return errors.New("stopped; nothing was changed")
	case err != nil:
		return fmt.Errorf("the terminal cannot be used: %w; run setup with --yes", err)
	}
	return nil
}

package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
)

func toolsCommand(w *Environment) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag { return append([]cli.Flag{configFlag(), stateFlag()}, more...) }
	return &cli.Command{
		Name:  "tools",
		Usage: "set, list and remove the classes of unknown tools",
		Description: "A tool that shield does not know is asked about at its first use. The answer can give it a class: reads (it changes nothing), workspace (it changes files of the workspace alone), elsewhere (it changes or sends something outside the workspace), never (its calls are denied). " +
			"From then on its calls are judged by that class and by what they hold: files, addresses, commands and credentials are judged as before, and a tool that changes something outside the workspace still asks. " +
			"A class is for one tool of one server: behind shield mcp for this command line or URL and this definition of the tool, in hooks for the server as the host's own settings define it. If only the project's settings define the server, or none do, the class ends with the session, or after 12 hours. Arguments for a server on another machine count as sent to that machine, whatever the class.",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the tools that have a class", Flags: flags(&cli.BoolFlag{Name: "json", Usage: "write JSON"}),
				Action: func(c *cli.Context) error { return listToolClasses(c, w) },
			},
			{
				Name: "set", Usage: "set the class of a tool: reads, workspace, elsewhere or never", ArgsUsage: "REF|ID CLASS", Flags: flags(),
				Description: "REF is the reference in the refusal of one of the tool's actions; the command shows the tool and the action, and asks for the three letters of the question. ID is one from tools list. The refused action stays refused: tell the agent to try again. Only a person can run this command: it refuses where an agent can type.",
				Action:      func(c *cli.Context) error { return setToolClass(c, w) },
			},
			{
				Name: "forget", Usage: "remove the class of a tool", ArgsUsage: "ID", Flags: flags(&cli.BoolFlag{Name: "all", Usage: "remove the class of every tool; takes no ID"}),
				Description: "shield asks again the next time the tool is used.",
				Action:      func(c *cli.Context) error { return forgetToolClass(c, w) },
			},
		},
	}
}

// openDecisionStore opens the store of a person's answers.
func openDecisionStore(c *cli.Context, w *Environment) (*config.LoadedSettings, *state.Store, *approve.DecisionStore, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, nil, err
	}
	store, err := openStore(set, w)
	if err != nil {
		return nil, nil, nil, err
	}
	key, err := shield.LoadOrCreateSealKey(c.Context, stateDir(&set.Settings, w), store)
	if err != nil {
		return nil, nil, nil, errors.Join(err, store.Close())
	}
	return set, store, shield.NewDecisionStore(key, store, w.Now), nil
}

func listToolClasses(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	_, store, answers, err := openDecisionStore(c, w)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := answers.ToolClassAnswers(c.Context)
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return json.NewEncoder(w.Out).Encode(append([]approve.ToolClassAnswer{}, list...))
	case len(list) == 0:
		_, err := fmt.Fprintln(w.Out, "No tool has a class (reads, workspace, elsewhere or never). Set one with 'shield tools set'.")
		return err
	}
	t := newTableWriter(w.Out, "ID", "TOOL", "CLASS", "SET BY", "SERVER", "UNTIL")
	for i := range list {
		of, lasts := &list[i], ""
		if !of.Until.IsZero() {
			lasts = "for session " + shortenTo80Characters(of.Session) + ", " + formatAge(of.Until.Sub(w.Now())) + " left"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", of.ID, term.EscapeControlAndInvisible(shortenTo80Characters(of.Tool)), approve.ToolClassDescriptions[of.Class], term.EscapeControlAndInvisible(shortenTo80Characters(of.By)), term.EscapeControlAndInvisible(shortenTo80Characters(of.Server)), term.EscapeControlAndInvisible(lasts))
	}
	return t.Flush()
}

func setToolClass(c *cli.Context, w *Environment) error {
	args, err := operands(c, "REF|ID", "CLASS")
	if err != nil {
		return err
	}
	class := analysis.ToolClass(args[1])
	if !slices.Contains(analysis.ToolClasses, class) {
		return fmt.Errorf("tools set: %q is not a class; use reads, workspace, elsewhere or never", shortenTo80Characters(args[1]))
	}
	if err := requirePerson(w, "tools set", personProofAtTerminal); err != nil {
		return err
	}
	set, store, answers, err := openDecisionStore(c, w)
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := answers.ToolClassAnswers(c.Context)
	if err != nil {
		return err
	}
	name := strings.ToLower(strings.TrimSpace(args[0]))
	if i := slices.IndexFunc(all, func(t approve.ToolClassAnswer) bool { return t.ID == name }); i >= 0 {
		t, err := answers.ChangeToolClass(c.Context, name, class, userNameOrAPerson(w))
		if err != nil {
			return fmt.Errorf("tools set: %w", err)
		}
		return printToolClassChange(w, &t)
	}
	r, err := answers.FindOverridableRefusal(c.Context, w.User, name)
	if err != nil {
		return fmt.Errorf("tools set %s: %w; 'shield allow' lists refused actions, 'shield tools list' the tools with a class", shortenTo80Characters(name), err)
	}
	if r.OfferedToolClassAnswer == nil {
		return fmt.Errorf("tools set %s: the action does not use an unknown tool; to allow it: shield allow %s", r.Ref, r.Ref)
	}
	fmt.Fprintf(w.Out, "Tool: %s\n", strings.Join(escapeLinesForTerminal(strings.Split(r.ToolDescription, "\n")), "\n  "))
	r.QuestionText = "Record that the tool " + approve.ToolClassDescriptions[class]
	by, err := askUserToAllowRefusal(c, w, set, r)
	if err != nil {
		return fmt.Errorf("tools set: %w", err)
	}
	t := *r.OfferedToolClassAnswer
	t.Class, t.By = class, by
	if err := logRefusalOverride(c.Context, w, set, store, r, fmt.Sprintf("%s recorded with 'shield tools set' that the tool %s", by, approve.ToolClassDescriptions[class]), by); err != nil {
		return fmt.Errorf("tools set %s: not saved, because the audit log cannot be written: %w; run 'shield doctor'", r.Ref, err)
	}
	if err := answers.SetToolClass(c.Context, r.ToolClassStoreKey, t); err != nil {
		return fmt.Errorf("tools set %s: %w", r.Ref, err)
	}
	t.ID = approve.ToolClassAnswerID(r.ToolClassStoreKey)
	return printToolClassChange(w, &t)
}

func printToolClassChange(w *Environment, t *approve.ToolClassAnswer) error {
	_, err := fmt.Fprintf(w.Out, "%s %s. To undo: shield tools forget %s\n", term.EscapeControlAndInvisible(t.Tool), approve.ToolClassDescriptions[t.Class], t.ID)
	return err
}

func escapeLinesForTerminal(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = term.EscapeControlAndInvisible(line)
	}
	return out
}

func forgetToolClass(c *cli.Context, w *Environment) error {
	names := []string{"ID"}
	if c.Bool("all") {
		names = nil
	}
	args, err := operands(c, names...)
	if err != nil {
		return err
	}
	if err := requirePerson(w, "tools forget", personProofNoAgentAncestor); err != nil {
		return err
	}
	_, store, answers, err := openDecisionStore(c, w)
	if err != nil {
		return err
	}
	defer store.Close()
	if c.Bool("all") {
		all, err := answers.ToolClassAnswers(c.Context)
		if err != nil {
			return err
		}
		for i := range all {
			args = append(args, all[i].ID)
		}
	}
	for _, id := range args {
		t, err := answers.ChangeToolClass(c.Context, id, "", "")
		if err != nil {
			return fmt.Errorf("tools forget: %w", err)
		}
		fmt.Fprintf(w.Out, "shield forgot the class of the tool %s, and asks about the tool again at its next use.\n", term.EscapeControlAndInvisible(t.Tool))
	}
	return nil
}

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/shield"
)

func rulesCommand(w *Environment) *cli.Command {
	asJSON := &cli.BoolFlag{Name: "json", Usage: "write JSON, one rule a line"}
	return &cli.Command{
		Name:  "rules",
		Usage: "show and test the heuristic rules",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the rules",
				Flags: []cli.Flag{asJSON, &cli.StringFlag{Name: "category", Usage: "list only the rules of `" + strings.Join(ruleCategories(), "|") + "`"}},
				Action: func(c *cli.Context) error {
					if _, err := operands(c); err != nil {
						return err
					}
					rules, err := rulesInCategory(c.String("category"))
					switch {
					case err != nil:
						return err
					case c.Bool("json"):
						return writeRulesAsJSONLines(w.Out, rules)
					}
					return listRules(w.Out, rules)
				},
			},
			{
				Name: "show", Usage: "show one rule by the name that verdicts print: a heuristic rule with its examples, or a rule of the policy in use or of a preset", ArgsUsage: "ID|NAME", Flags: append([]cli.Flag{asJSON}, commonJudgeFlags()...),
				Action: func(c *cli.Context) error {
					args, err := operands(c, "ID|NAME")
					if err != nil {
						return err
					}
					rule, err := findRule(args[0])
					if err != nil {
						if rows := describePolicyRule(c, w, args[0]); rows != nil {
							return printKeyValues(w.Out, rows, c.Bool("json"))
						}
						return err
					}
					if c.Bool("json") {
						return writeRulesAsJSONLines(w.Out, []classify.Rule{rule})
					}
					return showRule(w.Out, rule)
				},
			},
			{
				Name: "test", Usage: "judge the examples of all rules, or of one", ArgsUsage: "[ID|NAME]",
				Action: func(c *cli.Context) error {
					return testRules(c, w)
				},
			},
		},
	}
}

// findRule returns the rule with an ID or a name; upper and lower case are equal.
func findRule(name string) (classify.Rule, error) {
	var known []string
	for _, r := range classify.Rules() {
		if r.HasIDOrAnyName(name) {
			return r, nil
		}
		known = append(known, r.ID, r.Name)
	}
	return classify.Rule{}, fmt.Errorf("unknown rule %q%s; 'shield rules list' lists them", shortenTo80Characters(name), suggest.DidYouMeanSuffix(name, known))
}

// ruleCategories returns the categories in the order of the rules.
func ruleCategories() []string {
	var out []string
	for _, r := range classify.Rules() {
		if !slices.Contains(out, r.Category) {
			out = append(out, r.Category)
		}
	}
	return out
}

// rulesInCategory returns the rules of a category, or all for "".
func rulesInCategory(category string) ([]classify.Rule, error) {
	if category == "" {
		return classify.Rules(), nil
	}
	var out []classify.Rule
	for _, r := range classify.Rules() {
		if r.Category == category {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		known := ruleCategories()
		return nil, fmt.Errorf("rules list: unknown category %q%s; known are %s", shortenTo80Characters(category), suggest.DidYouMeanSuffix(category, known), strings.Join(known, ", "))
	}
	return out, nil
}

func writeRulesAsJSONLines(out io.Writer, rules []classify.Rule) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, r := range rules {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func listRules(out io.Writer, rules []classify.Rule) error {
	t := newTableWriter(out, "ID", "CATEGORY", "OUTCOME", "SEVERITY", "PLATFORM", "NAME")
	for _, r := range rules {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Category, r.Outcome, r.Severity, r.Platform, r.Name)
	}
	return t.Flush()
}

func showRule(out io.Writer, r classify.Rule) error {
	rows := [][2]string{
		{"id", r.ID}, {"name", r.Name}, {"category", r.Category}, {"severity", string(r.Severity)},
		{"outcome", string(r.Outcome)}, {"platform", r.Platform}, {"description", r.Description}, {"instead", r.Advice},
	}
	for _, e := range r.MatchingExamples {
		rows = append(rows, [2]string{"matches", e})
	}
	for _, e := range r.NonMatchingExamples {
		rows = append(rows, [2]string{"passes", e})
	}
	return printKeyValues(out, rows, false)
}

// printKeyValues writes a rule: as a line for each key with a value, or as one JSON object.
func printKeyValues(out io.Writer, rows [][2]string, asJSON bool) error {
	if asJSON {
		values := map[string]string{}
		for _, row := range rows {
			if values[row[0]] != "" {
				row[1] = values[row[0]] + "\n" + row[1]
			}
			values[row[0]] = row[1]
		}
		return json.NewEncoder(out).Encode(values)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", row[0], term.EscapeControlAndInvisible(row[1]))
		}
	}
	return t.Flush()
}

// describePolicyRule returns the description of a rule of the policy in use, or else of a preset; nil if there
// is none with the name.
func describePolicyRule(c *cli.Context, w *Environment, name string) [][2]string {
	if cfg, err := loadPipelineConfig(c, w); err == nil {
		if an, err := shield.NewAnalyzer(cfg); err == nil {
			if p, err := shield.LoadPolicy(cfg, shield.PolicyOptions(cfg, &an.DefaultExecutionContext)); err == nil {
				if rows := p.RuleKeyValuePairs(name); rows != nil {
					return rows
				}
			}
		}
	}
	for _, preset := range policy.PresetNames() {
		if p, err := policy.Preset(preset, policy.Options{}); err == nil {
			if rows := p.RuleKeyValuePairs(name); rows != nil {
				return rows
			}
		}
	}
	return nil
}

// testRules judges the examples of the rules, and fails if a result differs from the one that the
// example expects.
func testRules(c *cli.Context, w *Environment) error {
	args, err := operands(c, optionalOperandNames(c, "ID|NAME")...)
	if err != nil {
		return err
	}
	id := ""
	if len(args) > 0 {
		rule, err := findRule(args[0])
		if err != nil {
			return err
		}
		id = rule.ID
	}
	examples, err := classify.RunRuleExamples(c.Context, shell.Analyze, id)
	if err != nil {
		return err
	}
	wrong := 0
	for _, e := range examples {
		if e.MatchedAsExpected() {
			continue
		}
		wrong++
		what := "the rule matches this example, but should not; correct the rule or the example"
		if e.WantMatch {
			what = "the rule does not match this example, but should; correct the rule or the example"
		}
		if e.Err != nil {
			what = e.Err.Error()
		}
		fmt.Fprintf(w.Out, "%s: %q: %s\n", e.RuleID, e.CommandOrActionJSON, what)
	}
	if _, err := fmt.Fprintf(w.Out, "%d examples, %d wrong\n", len(examples), wrong); err != nil {
		return err
	}
	if wrong > 0 {
		return &statusError{statusFailure, nil}
	}
	return nil
}

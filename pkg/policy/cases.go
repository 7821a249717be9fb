package policy

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Cases is a table of actions and the decisions that policies should make.
type Cases struct {
	name  string
	table *rulefile.Cases
}

// LoadCases reads a table of cases: YAML, or JSON Lines with one case a line.
//
//	place: {cwd: /work/app, home: /home/me, roots: [/work/app]}
//	cases:
//	  - name: reads a key
//	    action: {type: read_file, payload: {path: ~/.ssh/id_rsa}}
//	    want: BLOCK                                    # by the policy under test
//	  - action: rm -rf build                           # short for execute_command
//	    want: {default: ESCALATE 2, offline: ESCALATE 1} # by presets, with the next tier
//	    rule: evaluate_destructive_file_ops
func LoadCases(name string, data []byte) (*Cases, error) {
	t, err := rulefile.ParseCases(name, data)
	if err != nil {
		return nil, err
	}
	return &Cases{name, t}, nil
}

// A CaseResult is the result of one case.
type CaseResult struct {
	Name   string // of the case, or its action if it has none
	Line   int    // in the file, counted from 1
	Policy string
	Want   string // ALLOW, BLOCK, ESCALATE, or ESCALATE and a tier
	Got    string
	Rule   string // the rule that decided
	Why    string // the verdict's reasoning, or the error
	OK     bool
}

// Run judges all cases. under returns the policy under test for the given options:
// the folders of the table, or none if the table has none. Cases can also ask
// for presets. Actions are judged in the table's place, or in that of an.
func (t *Cases) Run(ctx context.Context, an *analysis.Analyzer, under func(Options) (*Policy, error)) ([]CaseResult, error) {
	opts, place := Options{Vars: t.table.Vars}, an.Place
	if t.table.CWD != "" || t.table.Home != "" || t.table.Roots != nil {
		place = effect.Place{CWD: t.table.CWD, Home: t.table.Home, Roots: t.table.Roots, FoldCase: t.table.FoldCase}
		opts.Vars = opts.known()
		opts.Vars["WORKSPACE"] = t.table.Roots
		opts.Vars["HOME"] = []string{t.table.Home}
	}
	analyse := (&analysis.Analyzer{Shell: an.Shell, Written: an.Written, Place: place}).Case
	policies := map[string]*Policy{}
	var out []CaseResult
	for i := range t.table.Cases {
		c := &t.table.Cases[i]
		for _, w := range c.Want {
			p := policies[w.Policy]
			if p == nil {
				var err error
				if w.Policy == "" {
					p, err = under(opts)
				} else {
					p, err = Preset(w.Policy, opts)
				}
				if err != nil {
					return nil, fmt.Errorf("%s:%d: %w", t.name, c.Pos.Line, err)
				}
				policies[w.Policy] = p
			}
			out = append(out, runCase(ctx, analyse, p, c, w))
		}
	}
	return out, nil
}

func runCase(ctx context.Context, analyse analyser, p *Policy, c *rulefile.Case, w rulefile.Want) CaseResult {
	r := CaseResult{Name: c.Name, Line: c.Pos.Line, Policy: p.Name(), Want: w.Decision}
	if r.Name == "" {
		r.Name = shown(string(c.Action))
	}
	if w.Tier != 0 {
		r.Want = fmt.Sprintf("%s %d", w.Decision, w.Tier)
	}
	v, err := judgeRaw(ctx, analyse, p, c.Action)
	if err != nil {
		r.Got, r.Why = verdict.Block.String(), err.Error()
		return r
	}
	r.Got, r.Rule, r.Why = v.Decision.String(), v.Rule, v.Reasoning
	r.OK = r.Got == w.Decision && (c.Rule == "" || c.Rule == v.Rule) && (w.Tier == 0 || w.Tier == v.NextTier)
	if v.Decision == verdict.Escalate && w.Tier != 0 {
		r.Got = fmt.Sprintf("%s %d", r.Got, v.NextTier)
	}
	return r
}

// An analyser turns an action into a case: [analysis.Analyzer.Case].
type analyser func(*action.Action) *analysis.Case

// judgeRaw judges an action given as JSON.
func judgeRaw(ctx context.Context, analyse analyser, p *Policy, raw []byte) (verdict.Verdict, error) {
	a, err := action.Parse(raw)
	if err != nil {
		return verdict.Verdict{}, err
	}
	return p.Judge(ctx, analyse(a))
}

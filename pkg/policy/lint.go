package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A Finding is something in a policy file that a person should look at.
type Finding struct {
	Line, Column int  // counted from 1
	Wrong        bool // an example that comes out otherwise than it says; else only doubtful
	Msg          string
}

// Check reads a policy file and judges the examples of its rules. An error
// means that the file cannot be used at all; findings are in the order of the
// file.
func Check(ctx context.Context, name string, data []byte, an *analysis.Analyzer, opts Options) ([]Finding, error) {
	p, err := Load(name, data, opts)
	if err != nil {
		return nil, err
	}
	f, err := rulefile.Parse(name, data, rulefile.Checks{})
	if err != nil {
		return nil, err
	}
	return examine(ctx, f, p, an.Case), nil
}

// examine returns the findings on a file whose policy is p.
func examine(ctx context.Context, f *rulefile.File, p *Policy, analyse analyser) []Finding {
	l := linter{ctx: ctx, analyse: analyse, policy: p}
	l.list("deny", f.Deny)
	l.list("verify", f.Verify)
	l.list("allow", f.Allow)
	slices.SortStableFunc(l.out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.out
}

type linter struct {
	ctx     context.Context
	analyse analyser
	policy  *Policy
	out     []Finding
}

func (l *linter) add(at rulefile.Pos, wrong bool, format string, args ...any) {
	l.out = append(l.out, Finding{at.Line, at.Column, wrong, fmt.Sprintf(format, args...)})
}

func (l *linter) list(list string, rules []rulefile.Rule) {
	var catchAll *rulefile.Rule
	for i := range rules {
		r := &rules[i]
		if catchAll != nil {
			l.add(r.Pos, false, "rule %s is never reached: rule %s before it matches everything", r.Name, catchAll.Name)
		}
		if r.Empty() && !r.Amends && len(r.Except) == 0 {
			catchAll = r
		}
		if r.Reason == "" && !r.Amends && list != "allow" {
			l.add(r.Pos, false, "rule %s gives no reason: the agent is not told what would be acceptable instead", r.Name)
		}
		if list == "allow" && len(r.Types) == 0 && len(r.Commands) == 0 {
			l.add(r.Pos, false, "rule %s allows every kind of effect: list the action_types that are meant", r.Name)
		}
		for _, e := range r.Match {
			l.example(r, e, true)
		}
		for _, e := range r.Pass {
			l.example(r, e, false)
		}
	}
}

// example judges one example of a rule. A rule that a stricter rule precedes
// does not decide, so its example says so.
func (l *linter) example(r *rulefile.Rule, e rulefile.Example, want bool) {
	v, err := judgeRaw(l.ctx, l.analyse, l.policy, e.Action)
	switch {
	case err != nil:
		l.add(e.Pos, true, "rule %s: the example is no action: %v", r.Name, err)
	case want && v.Rule == "":
		l.add(e.Pos, true, "rule %s does not match this example: no rule does", r.Name)
	case want && v.Rule != r.Name:
		l.add(e.Pos, true, "rule %s does not decide this example: rule %s does", r.Name, v.Rule)
	case !want && v.Rule == r.Name:
		l.add(e.Pos, true, "rule %s matches this example, which should pass", r.Name)
	}
}

package policy

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	run := effect.Effect{Kind: effect.RunCode, Cause: effect.CauseWrittenCodeRunsLater, DataLabels: []effect.TaintLabel{effect.LabelUntrusted, effect.LabelFromNetwork}}
	git := effect.Effect{Kind: effect.Execute, Program: "git", Args: []string{"push", "origin main", "x"}, Class: effect.Network}
	for rule, want := range map[string]struct {
		e  effect.Effect
		is bool
	}{
		`causes: [later]`:                           {run, true},
		`causes: ["!later"]`:                        {run, false},
		`causes: [destroys, later]`:                 {run, true},
		`causes: [destroys]`:                        {run, false},
		`labels: ["!untrusted"]`:                    {run, true},
		`labels: ["!untrusted", "!network"]`:        {run, false},
		`labels: [credential]`:                      {run, false},
		`labels: ["!credential"]`:                   {git, false}, // it has none
		`args: ['(?m)^main$']`:                      {git, false}, // an argument with a space is one argument
		`args: ['(?m)^x$']`:                         {git, true},
		"programs: [git]\n    args: ['(?m)^pull$']": {git, false},
		`classes: [network]`:                        {git, true},
		`classes: [readonly]`:                       {run, true}, // no program has the effect
		`verbs: [delete]`:                           {effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "delete"}, true},
		`names: [shield]`:                           {effect.Effect{Kind: effect.WriteFile, Path: "/a/shield.exe"}, true},
		`names: [a]`:                                {effect.Effect{Kind: effect.WriteFile, Path: "/a", Recursive: true}, false},
	} {
		p, err := Load("p.yaml", []byte("deny:\n  - name: r\n    reason: x\n    "+rule+"\n"), testOptions())
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		c := caseOf("frobnicate")
		c.Effects = []effect.Effect{want.e}
		v, err := p.Judge(t.Context(), c)
		if is := v.Rule == "r"; is != want.is || err != nil {
			t.Errorf("%s: %v, %v", rule, is, err)
		}
	}
	for _, rule := range []string{`causes: [lter]`, `labels: ["!nowhere"]`, `classes: [big]`, `args: ['(']`, `causes: []`} {
		if _, err := Load("p.yaml", []byte("deny:\n  - name: r\n    reason: x\n    "+rule+"\n"), testOptions()); err == nil {
			t.Errorf("%s is taken", rule)
		}
	}
}

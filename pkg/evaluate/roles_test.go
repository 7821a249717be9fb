package evaluate

import (
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A deadline is a context whose time is over when the test says so.
type deadline struct {
	context.Context
	over chan struct{}
	once sync.Once
}

func (d *deadline) Done() <-chan struct{} { return d.over }

func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestRoles has every role judge two actions, failing closed and failing open:
// only an honest answer allows, wrong canaries always block for sure, and what
// fails open does so by half and says so.
func TestRoles(t *testing.T) {
	t.Parallel()
	roles := evaltest.Scenarios()
	if len(roles) < 195 {
		t.Errorf("%d roles, want at least 195", len(roles))
	}
	actions := []func() *analysis.ActionCase{
		func() *analysis.ActionCase { return newCase("make test") },
		func() *analysis.ActionCase {
			return payloadCase("send_email", map[string]any{"to": "ann@example.com", "subject": "Minutes", "body": "Here they are."})
		},
	}
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	count := map[string]int{}
	for i, role := range roles {
		var mu sync.Mutex
		var canaries []string // of this role's requests
		if count[role.Name]++; count[role.Name] > 1 {
			t.Errorf("two roles %s", role.Name)
		}
		server.SetModelBehaviour("role", func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
			mu.Lock()
			canaries = append(canaries, r.Canary)
			mu.Unlock()
			role.Do(w, hr, r)
		})
		for n, action := range actions {
			open := (n+i)%2 == 0 // with the other action, and for the next role, the other way round
			ctx := &deadline{Context: t.Context(), over: make(chan struct{})}
			server.OnResponseStall(func() { ctx.once.Do(func() { close(ctx.over) }) })
			e := newEvaluator(t, Options{Provider: provider(t, server, "role"), FailOpen: open})
			v, err := e.Judge(ctx, action())
			if err != nil || !comes(v, role.Want, open) {
				t.Errorf("%s, action %d, open %t: %v %v degraded=%t %q: %s, %v", role.Name, n, open, v.Decision, v.Confidence, v.IsAllowedDespiteFailure, v.ErrorCode, v.Reasoning, err)
			}
			mu.Lock()
			for _, canary := range canaries {
				if containsCanaryInAnyForm(v.Reasoning, canary) || strings.Contains(v.Reasoning, testKey) {
					t.Errorf("%s: the reasoning shows a secret: %s", role.Name, v.Reasoning)
				}
			}
			canaries = nil
			mu.Unlock()
		}
	}
	wants := map[evaltest.EvaluationOutcome]int{}
	for _, role := range roles {
		wants[role.Want]++
	}
	t.Logf("%d roles: %d honest, %d unreachable, %d no answers, %d untrusted", len(roles),
		wants[evaltest.OutcomeGoodAnswer], wants[evaltest.OutcomeServiceUnreachable], wants[evaltest.OutcomeNoAnswer], wants[evaltest.OutcomeWrongCanary])
}

// comes reports whether a verdict is the one that must result from a role.
func comes(v verdict.Verdict, want evaltest.EvaluationOutcome, open bool) bool {
	switch want {
	case evaltest.OutcomeGoodAnswer:
		return v.Decision == verdict.Allow && v.Confidence > 0.5 && !v.IsAllowedDespiteFailure && v.ErrorCode == ""
	case evaltest.OutcomeWrongCanary:
		return v.Decision == verdict.Block && v.Confidence == 1 && v.ErrorCode == "canary"
	case evaltest.OutcomeServiceUnreachable:
		if open {
			return v.Decision == verdict.Allow && v.Confidence <= 0.5 && v.IsAllowedDespiteFailure && v.ErrorCode != ""
		}
	}
	return v.Decision == verdict.Block && v.Confidence == 0.5 && v.ErrorCode == "evaluator"
}

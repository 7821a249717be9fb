package shield

import (
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

func toolAction(t *testing.T, root, name, session, payload string) *action.Action {
	t.Helper()
	a, err := action.Parse([]byte(`{"type":"` + name + `","cwd":` + quotedJSON(root) + `,"session":"` + session + `","payload":` + payload + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A class that a person gives to a tool holds where what identifies the tool is the same, and
// lifts no more than that the tool is not known.
func TestToolClasses(t *testing.T) {
	t.Parallel()
	root, state := kindRoot(t), t.TempDir()
	p, _ := kindsPipeline(t, state, root, "offline")
	known := approve.UnknownTool{IdentityHash: "server one, tool, schema", Server: "one"}
	of := func(t approve.UnknownTool) *Pipeline {
		return p.WithUnknownToolLookup(func(*action.Action) approve.UnknownTool { return t })
	}
	const name, payload = "mcp__tracker__ticket", `{"id":"7","note":"x"}`
	judge := func(p *Pipeline, a *action.Action) verdict.Decision {
		return p.EvaluateThroughTier(t.Context(), a, TierApprove).Verdict.Decision
	}
	give := func(p *Pipeline, class analysis.ToolClass) {
		t.Helper()
		about, keep := p.prepareToolClassQuestion(p.analyze(toolAction(t, root, name, "s", payload), p.memoryFor(t.Context(), &judgeRequest{Action: toolAction(t, root, name, "s", payload)})))
		if about == "" {
			t.Fatal("no class can be given")
		}
		if err := keep(t.Context(), class, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	one := of(known)
	change := func(class analysis.ToolClass) {
		t.Helper()
		list, err := p.personDecisionStore.ToolClassAnswers(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if _, err := p.personDecisionStore.ChangeToolClass(t.Context(), list[0].ID, class, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if judge(one, toolAction(t, root, name, "s", payload)) == verdict.Allow {
		t.Fatal("an unknown tool is allowed")
	}
	give(one, analysis.ToolClassReadOnly)
	other := known
	other.IdentityHash = "server one, tool, another schema"
	remote := known
	remote.RemoteHost = "mcp.example.com"
	for what, test := range map[string]struct {
		p    *Pipeline
		a    *action.Action
		want verdict.Decision
	}{
		"the same":                  {one, toolAction(t, root, name, "s", payload), verdict.Allow},
		"other arguments":           {one, toolAction(t, root, name, "s", `{"id":"8"}`), verdict.Allow},
		"another session":           {one, toolAction(t, root, name, "other", payload), verdict.Allow},
		"no arguments":              {one, toolAction(t, root, name, "s", `{}`), verdict.Allow},
		"another schema or server":  {of(other), toolAction(t, root, name, "s", payload), verdict.Block},
		"no definition":             {p, toolAction(t, root, name, "s", payload), verdict.Block},
		"another tool":              {one, toolAction(t, root, "mcp__tracker__delete_ticket", "s", payload), verdict.Block},
		"a credential":              {one, toolAction(t, root, name, "s", `{"id":"ghp_`+"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"+`"}`), verdict.Block},
		"a file of credentials":     {one, toolAction(t, root, name, "s", `{"path":"/home/x/.ssh/id_rsa"}`), verdict.Block},
		"a command":                 {one, toolAction(t, root, name, "s", `{"command":"rm -rf ~"}`), verdict.Block},
		"a switch that destroys":    {one, toolAction(t, root, name, "s", `{"id":"7","delete":true}`), verdict.Block},
		"arguments to its server":   {of(remote), toolAction(t, root, name, "s", payload), verdict.Allow},
		"more texts than are read":  {one, toolAction(t, root, name, "s", `{"a":[`+manyTexts(300)+`]}`), verdict.Block},
		"a known type of that name": {one, toolAction(t, root, "send_email", "s", `{"to":"a@b.example","body":"x"}`), verdict.Block},
	} {
		if got := judge(test.p, test.a); got != test.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	change(analysis.ToolClassForbidden)
	if o := one.EvaluateThroughTier(t.Context(), toolAction(t, root, name, "s", payload), TierApprove); o.Verdict.Decision != verdict.Block || o.Verdict.AnswerChannel != answerChannelToolClass {
		t.Errorf("a tool that is never used: %v %s", o.Verdict.Decision, o.Verdict.Reasoning)
	}
	change(analysis.ToolClassChangesOutsideWorkspace)
	if judge(one, toolAction(t, root, name, "s", payload)) == verdict.Allow {
		t.Error("what changes something elsewhere is allowed without a question")
	}
	learn(t, one, toolAction(t, root, name, "fresh", payload))
	if judge(one, toolAction(t, root, name, "fresh", `{"id":"9"}`)) != verdict.Allow {
		t.Error("a kind of a tool with a class does not hold")
	}
}

func manyTexts(n int) string {
	out := `"a"`
	for range n {
		out += `,"a"`
	}
	return out
}

// Without a definition that vouches for a tool, its class ends with the session.
func TestToolOfSession(t *testing.T) {
	t.Parallel()
	root := kindRoot(t)
	p, _ := kindsPipeline(t, t.TempDir(), root, "offline")
	a := func(session string) *action.Action {
		return toolAction(t, root, "mcp__github__frobnicate", session, `{"id":"7"}`)
	}
	_, keep := p.prepareToolClassQuestion(p.analyze(a("s"), p.memoryFor(t.Context(), &judgeRequest{Action: a("s")})))
	if err := keep(t.Context(), analysis.ToolClassReadOnly, "ann"); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]verdict.Decision{"s": verdict.Allow, "t": verdict.Block, "": verdict.Block} {
		if got := p.EvaluateThroughTier(t.Context(), a(session), TierApprove).Verdict.Decision; got != want {
			t.Errorf("session %q: %v", session, got)
		}
	}
	list, err := p.personDecisionStore.ToolClassAnswers(t.Context())
	if err != nil || len(list) != 1 || list[0].Until.IsZero() {
		t.Fatalf("%v %v", list, err)
	}
	if _, err := p.personDecisionStore.ChangeToolClass(t.Context(), list[0].ID, "", "ann"); err != nil {
		t.Fatal(err)
	}
	if p.EvaluateThroughTier(t.Context(), a("s"), TierApprove).Verdict.Decision == verdict.Allow {
		t.Error("a class that was taken back counts")
	}
}

// Arguments go to the server of a tool: what a session has read of secret or private things
// does not go there because the tool only reads.
func TestToolGetsArguments(t *testing.T) {
	t.Parallel()
	root := kindRoot(t)
	p, _ := kindsPipeline(t, t.TempDir(), root, "offline")
	a := toolAction(t, root, "mcp__far__lookup", "s", `{"q":"x"}`)
	for label, want := range map[effect.TaintLabel]bool{"": true, effect.LabelFromCredentialLocation: false, effect.LabelPersonalData: false, effect.LabelUntrusted: true} {
		c := p.analyzer.CaseWithSessionState(a, labelled{label})
		c.ApplyToolClass(analysis.ToolClassReadOnly, "far", "mcp.example.com")
		if got := c.HasOnlyOrdinaryEffects(); got != want {
			t.Errorf("with the label %q the case is ordinary: %v", label, got)
		}
	}
}

type labelled struct{ label effect.TaintLabel }

func (l labelled) Labels() []effect.TaintLabel {
	if l.label == "" {
		return nil
	}
	return []effect.TaintLabel{l.label}
}
func (labelled) FileOriginLabels(string) []effect.TaintLabel { return nil }
func (labelled) HasCreated(string) bool                      { return false }
func (labelled) DownloadedOrDecodedPaths() *effect.PathList  { return effect.NewPathList(nil) }
func (labelled) HasRecentAction([]string, time.Duration, int) bool {
	return false
}
func (labelled) Err() error { return nil }

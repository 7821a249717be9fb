package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

func TestGateOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ expr, want string }{
		{`any(.effects[]; .kind == "run_code" and .cause == "later")`, `kind == run_code, cause == later`},
		{`any(.effects[]; .kind == "run_code" and .cause != "later" and any((.labels // [])[]; . != "untrusted"))`, `kind == run_code, cause != later, labels != untrusted`},
		{`any(.effects[]; .program == "git" and (.args // [] | index("push") != null and any(test("x"))))`, `program == git, args == push, …`},
		{`any(.effects[]; (.kind == "send_data") and (.url | test("x")))`, `kind == send_data, …`},
		{`(.action.type == "http_request") and (.action.payload | length > 2)`, `type http_request, …`},
		{`.action.type == "http_request"`, `type http_request`},
		{`any(.effects[]; .kind == "git" and (.cause // "" | IN("grants", "runs")))`, `kind == git, cause == grants or runs`},
		{`any(.effects[]; .kind == "git" and .cause == "runs") | not`, `not kind == git, cause == runs`},
		{`.action.type == "http_request" and any(.effects[]; .kind == "connect") | not`, `not type http_request, …`},
		{`.action.type == "http_request" and any(.effects[]; .kind == "connect")`, `type http_request, …`},
		{`any(.effects[]; .kind == "a\u0062")`, `kind == ab`},
		// What these ask first is not a comparison with a constant.
		{`any(.effects[]; .kind == "run_code") and .action.type == "x"`, ``},
		{`any(.effects[]; .kind == "run_code" or .cause == "later")`, ``},
		{`any(.effects[]; .kind == "run_code") | not | not`, ``},
		{`any(.effects[]; .kind == "run_code") | not == false`, ``},
		{`def not: 1; any(.effects[]; .kind == "run_code") | not`, ``},
		{`any(.effects[]; .cause // "a" | IN("a"))`, ``},
		{`any(.effects[]; .cause | IN("a"))`, ``},
		{`any(.effects[]; .cause // "" | IN(""))`, ``},
		{`any(.effects[]; .cause // "" | IN("a"; "b"))`, ``},
		{`any(.effects[]; .cause // "" | IN("a", .b))`, ``},
		{`any(.effects[]; .cause // "" | IN("1", "2", "3", "4", "5", "6", "7", "8", "9"))`, ``},
		{`any(.effects[]; .kind == "a\"")`, ``},
		{`any(.effects[]; .kind == .cause)`, ``},
		{`any(.effects[]; .labels == "a")`, ``},
		{`any(.effects[]; .recursive == "a")`, ``},
		{`any(.effects[0:2][]; .kind == "a")`, ``},
		{`any(.effects[]?; .kind == "a")`, ``},
		{`any(.effects[]; .kind == "a")[0]`, ``},
		{`all(.effects[]; .kind == "a")`, ``},
		{`def any(f; g): true; any(.effects[]; .kind == "a")`, ``},
		{`(def any(f; g): true; any(.effects[]; .kind == "a"))`, ``},
		{`any(.effects[]; def index(x): 1; .args // [] | index("a") != null)`, ``},
		{`.action.type != "a"`, ``},
		{`any(.effects[]; .kind == "` + strings.Repeat("a", gateValue+1) + `")`, ``},
	} {
		if got := shownGate(gateOf(tt.expr)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.expr, got, tt.want)
		}
	}
}

func shownGate(g *gate) string {
	if g == nil {
		return ""
	}
	var parts []string
	if g.actionType != "" {
		parts = append(parts, "type "+g.actionType)
	}
	for _, c := range g.effect {
		parts = append(parts, fmt.Sprintf("%s %s %s", c.field, map[bool]string{false: "==", true: "!="}[c.not], strings.Join(c.values, " or ")))
	}
	if !g.whole {
		parts = append(parts, "…")
	}
	return map[bool]string{true: "not "}[g.not] + strings.Join(parts, ", ")
}

// presetConditions are the conditions of all presets.
func presetConditions(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range Presets() {
		p, ok := presetNamed(name)
		if !ok {
			t.Fatal(name)
		}
		set := p.set()
		for _, l := range [][]rulefile.Rule{set.Deny, set.Verify, set.Allow} {
			for i := range l {
				if l[i].When != "" {
					out = append(out, l[i].When)
				}
			}
		}
	}
	if len(out) < 10 {
		t.Fatalf("%d conditions", len(out))
	}
	return out
}

// A gate that knows the answer of a condition knows the answer of jq, for the
// conditions of the presets and for made ones, over made cases.
func TestGateAnswersAsJQ(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"run_code", "git", "push", "untrusted", "credential", "later", "send_data", "change_remote", "http_request", "", "é"}
	word := func() string { return words[r.IntN(len(words))] }
	exprs := presetConditions(t)
	for range 150 {
		var parts []string
		for range 1 + r.IntN(3) {
			op := []string{"==", "!="}[r.IntN(2)]
			list := []string{"labels", "args"}[r.IntN(2)]
			parts = append(parts, []string{
				fmt.Sprintf(".%s %s %q", textNames[r.IntN(len(textNames))], op, word()),
				fmt.Sprintf("(.%s // [] | index(%q) != null)", list, word()),
				fmt.Sprintf("(.%s // [] | index(%q) != null and length > 1)", list, word()),
				fmt.Sprintf("any((.%s // [])[]; . %s %q)", list, op, word()),
				fmt.Sprintf("(.%s // \"\" | IN(%q, %q))", textNames[r.IntN(len(textNames))], word(), word()),
				`(.recursive == true)`,
				`(.path + 1 == 2)`, // an error where there is a path
			}[r.IntN(7)])
		}
		exprs = append(exprs, "any(.effects[]; "+strings.Join(parts, " and ")+")"+[]string{"", " | not"}[r.IntN(2)])
	}
	known, held := 0, 0
	for _, expr := range exprs {
		with, without := newCondition(expr), newCondition(expr)
		without.gate = func() *gate { return nil }
		for range 60 {
			c := madeCase(r, word)
			got, gotErr := with.holds(&search{ctx: t.Context(), c: c})
			want, wantErr := without.holds(&search{ctx: t.Context(), c: c})
			if got != want || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%s: %t, %v; jq says %t, %v; effects %+v", expr, got, gotErr, want, wantErr, c.Effects)
			}
			if _, ok := with.gate().answer(&search{ctx: t.Context(), c: c}); ok {
				known++
			}
			if want {
				held++
			}
		}
	}
	if known < 1000 || held < 200 {
		t.Errorf("%d answers known, %d conditions held", known, held)
	}
}

func madeCase(r *rand.Rand, word func() string) *analysis.Case {
	c := &analysis.Case{Action: &action.Action{Type: word(), Payload: map[string]any{"a": word()}}}
	if r.IntN(20) == 0 { // longer than jq takes
		c.Action.Payload["n"] = []any{map[string]any{"m": jsontext.Value(strings.Repeat("1", maxNumber+r.IntN(2)))}}
	}
	for range r.IntN(4) {
		e := effect.Effect{Kind: effect.Kind(word()), Path: word(), Program: word(), Cause: effect.Cause(word()), Host: word(), Recursive: r.IntN(2) == 0}
		for range r.IntN(3) {
			e.Args, e.Labels = append(e.Args, word()), append(e.Labels, effect.Label(word()))
		}
		c.Effects = append(c.Effects, e)
	}
	return c
}

// A case beyond the bounds of gates goes to jq, which has bounds of its own.
func TestGateBounds(t *testing.T) {
	t.Parallel()
	const expr = `any(.effects[]; .kind == "git" and (.args // [] | index("a") != null))`
	for name, c := range map[string]*analysis.Case{
		"values": {Effects: []effect.Effect{{Kind: "git", Args: make([]string, gateValues)}}},
		"text":   {Effects: []effect.Effect{{Kind: "git", Args: []string{strings.Repeat("x", gateText+1)}}}},
		"number": {Effects: []effect.Effect{{Kind: "git"}}},
	} {
		c.Action = &action.Action{}
		if name == "number" {
			c.Action.Payload = map[string]any{"n": jsontext.Value(strings.Repeat("1", maxNumber+1))}
		}
		if _, known := gateOf(expr).answer(&search{ctx: t.Context(), c: c}); known {
			t.Errorf("%s: answered", name)
		}
	}
}

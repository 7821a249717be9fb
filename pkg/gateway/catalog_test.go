package gateway

import (
	"fmt"
	"testing"
)

// TestListsInterleave holds that the pages of lists that two clients ask for at a
// time stay apart: none is treated as the other's, and what is on a later page
// only can be called meanwhile.
func TestListsInterleave(t *testing.T) {
	g := New(Options{Server: Server{Name: "s"}, AcceptedToolPins: openTestPins(t, t.TempDir(), "s")})
	page := func(params object, next, name string) {
		t.Helper()
		l := g.sharedState.beginToolListRequest(params)
		defer g.sharedState.endToolListRequest()
		result := `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]`
		if next != "" {
			result += `,"nextCursor":"` + next + `"`
		}
		m, err := parseMessage([]byte(`{"jsonrpc":"2.0","id":1,"result":` + result + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if kept, _, err := g.filterToolPage(m, m.result.(object), l); err != nil || len(kept) != 1 {
			t.Errorf("%v asked for %s: %d tools, %v", params, name, len(kept), err)
		}
	}
	page(nil, "one", "a")
	page(nil, "two", "a")
	page(object{"cursor": "one"}, "", "b")
	page(object{"cursor": "two"}, "", "b")
	page(nil, "three", "a")
	for _, name := range []string{"a", "b"} {
		if _, _, why := g.callableTool(name); why != "" {
			t.Error(why)
		}
	}
	page(nil, "", "a")
	if _, _, why := g.callableTool("b"); why == "" {
		t.Error("a tool that is listed no more can be called")
	}
}

// TestEndlessLists holds that lists whose end no one asks for are forgotten.
func TestEndlessLists(t *testing.T) {
	g := New(Options{})
	for i := range 10 * maxIncompleteToolListings {
		g.sharedState.storeNextPage(&toolListing{}, fmt.Sprint(i))
	}
	if n := len(g.sharedState.incompleteToolListings); n > maxIncompleteToolListings {
		t.Errorf("%d lists are kept", n)
	}
}

// TestStates holds that of too many states the oldest are forgotten.
func TestStates(t *testing.T) {
	k := newSharedServerState()
	k.storeUnansweredServerQuestions("old", nil)
	for i := range maxUnansweredServerQuestions {
		k.storeUnansweredServerQuestions(fmt.Sprint(i), []string{"q", "r"})
	}
	if k.matchUnansweredQuestions("old", nil, false, false) || !k.matchUnansweredQuestions("0", nil, false, false) || len(k.questionNamesByRequestStateKey) > maxUnansweredServerQuestions {
		t.Errorf("%d states are kept, or the wrong ones", len(k.questionNamesByRequestStateKey))
	}
	for i, one := range []struct {
		names []string
		want  bool
	}{{[]string{"s"}, true}, {[]string{"q"}, true}, {[]string{"r"}, true}, {[]string{"r"}, false}, {nil, false}} {
		if got := k.matchUnansweredQuestions("0", one.names, true, true); got != one.want {
			t.Errorf("answer %d: %t", i, got)
		}
	}
	if !k.matchUnansweredQuestions("1", []string{"q"}, true, false) || k.matchUnansweredQuestions("1", []string{"r"}, true, false) || len(k.requestStateKeysByAge) != len(k.questionNamesByRequestStateKey) {
		t.Errorf("a request is answered twice; %d and %d", len(k.requestStateKeysByAge), len(k.questionNamesByRequestStateKey))
	}
}

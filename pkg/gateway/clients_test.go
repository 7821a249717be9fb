package gateway

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestClientsApart holds that a client cannot go on with another's session, that
// each connection is judged by a judge of its own and each client in a session of its
// own, and that a state which the server gave to one client answers nothing for another.
func TestClientsApart(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var made []string
	remote := newFakeRemote(t, nil)
	judge := &fakeJudge{}
	url := front(t, remote.URL, func(f *HTTPFrontEnd, o *Options) {
		f.Tokens = tokensOf("ann", "bob")
		o.JudgeFor = func(client, connection string) (ActionJudge, string) {
			mu.Lock()
			defer mu.Unlock()
			made = append(made, fmt.Sprintf("%s %t", client, connection != ""))
			return judge, "session of " + client
		}
	})
	ann, bob := "Authorization: Bearer a-token-of-clientsann", "Authorization: Bearer a-token-of-clientsbob"
	if resp, body := post(t, url, helloFrame, ann); resp.Header.Get("Mcp-Session-Id") != "abc" {
		t.Fatalf("no session: %s", body)
	}
	for _, one := range []struct {
		headers []string
		status  int
		session string
	}{
		{[]string{ann, "Mcp-Session-Id: abc"}, 200, "session of ann"},
		{[]string{bob, "Mcp-Session-Id: abc"}, 404, ""},
		{[]string{bob}, 200, "session of bob"},
		{[]string{ann}, 200, "session of ann"},
	} {
		before := len(judge.asked)
		if resp, body := post(t, url, callFrame, one.headers...); resp.StatusCode != one.status {
			t.Errorf("%q: status %d, %s", one.headers, resp.StatusCode, body)
		}
		if one.session == "" && len(judge.asked) != before || one.session != "" && judge.last().Session != one.session {
			t.Errorf("%q: judged %d times, last in %q", one.headers, len(judge.asked)-before, judge.last().Session)
		}
	}
	if want := []string{"ann true", "bob false", "ann false"}; !slices.Equal(made, want) {
		t.Errorf("judges were made for %q", made)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, body := request(t, method, url, bob, "Mcp-Session-Id: abc"); status != 404 {
			t.Errorf("%s of another's session: status %d, %s", method, status, body)
		}
	}
	remote.answer = asksForBranch
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	call := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},` + meta + `%s}}`
	if _, body := post(t, url, fmt.Sprintf(call, ""), ann); !strings.Contains(body, "input_required") {
		t.Fatalf("nothing is asked: %s", body)
	}
	answer := fmt.Sprintf(call, `,"requestState":"S","inputResponses":{"q":{"action":"accept"}}`)
	for i, who := range []string{bob, ann, ann} {
		if _, body := post(t, url, answer, who); strings.Contains(body, "did not ask") != (i != 1) {
			t.Errorf("answer %d: %s", i, body)
		}
	}
}

// asksForBranch has a server ask a person in answer to a call.
func asksForBranch(w http.ResponseWriter, _ *http.Request, m *message) bool {
	if m == nil || m.method != "tools/call" || m.params["requestState"] != nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":"S","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Which branch?","requestedSchema":{}}}}}}`, m.id)
	return true
}

// request sends a request without a body, and returns status and body of the answer.
func request(t *testing.T, method, url string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestAddressesAreClients holds that clients without names of their own are told
// apart by their addresses.
func TestAddressesAreClients(t *testing.T) {
	t.Parallel()
	var clients []string
	remote := newFakeRemote(t, nil)
	for _, name := range []bool{true, false} {
		url := front(t, remote.URL, func(f *HTTPFrontEnd, o *Options) {
			if name {
				f.Tokens = tokensOf("")
			}
			o.JudgeFor = func(client, _ string) (ActionJudge, string) {
				clients = append(clients, client)
				return o.Judge, client
			}
		})
		post(t, url, callFrame, "Authorization: Bearer a-token-of-clients")
	}
	if !slices.Equal(clients, []string{"127.0.0.1", "127.0.0.1"}) {
		t.Errorf("clients are %q", clients)
	}
}

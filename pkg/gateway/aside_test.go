package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
)

// slow holds the results of calls back whose arguments say so, until it is let go.
type slow struct {
	mu    sync.Mutex
	begun chan string
	gates map[string]chan error
}

func newSlow() *slow { return &slow{begun: make(chan string, 64), gates: map[string]chan error{}} }

func (s *slow) gate(name string) chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan error, 1)
	}
	return s.gates[name]
}

func (s *slow) returned(_ context.Context, a *action.Action, _ any, _ Findings) error {
	for _, word := range strings.FieldsFunc(string(a.Raw), func(r rune) bool { return r == '"' }) {
		if strings.HasPrefix(word, "slow") {
			s.begun <- word
			return <-s.gate(word)
		}
	}
	return nil
}

func connectSlow(t *testing.T, serve reply) (*conn, *slow) {
	s := newSlow()
	c := connect(t, "", func(o *Options) { o.OnActionResult = s.returned }, serve)
	c.tools()
	return c, s
}

func (c *conn) echo(id int, message string) {
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":%q}}}`, id, message))
}

// TestSlowExamination demands that the examination of one result holds up no other
// answer, and that what the server tells after the result comes after it.
func TestSlowExamination(t *testing.T) {
	t.Parallel()
	c, s := connectSlow(t, func(c *conn, m *message) bool {
		if m.method != "tools/call" {
			return false
		}
		c.usual(m)
		if strings.Contains(string(m.raw), "slow") {
			c.say(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":"working"}}`)
		}
		return true
	})
	c.echo(901, "slow one")
	<-s.begun
	if said, failed := c.call("echo", `{"message":"quick"}`); said != "done" || failed {
		t.Errorf("the second call returns %q", said)
	}
	c.alive()
	s.gate("slow one") <- nil
	if first, second := c.got(), c.got(); string(first.id) != "901" || second.method != "notifications/tasks/status" {
		t.Errorf("the client gets %q, then %q", first.raw, second.raw)
	}
}

// TestSlowExaminationFails demands that a result is withheld whose examination fails,
// whatever else was forwarded before.
func TestSlowExaminationFails(t *testing.T) {
	t.Parallel()
	c, s := connectSlow(t, nil)
	c.echo(901, "slow one")
	c.echo(902, "slow two")
	names := []string{<-s.begun, <-s.begun}
	slices.Sort(names)
	if !slices.Equal(names, []string{"slow one", "slow two"}) {
		t.Fatalf("examined are %q", names)
	}
	s.gate("slow two") <- nil
	if m := c.got(); string(m.id) != "902" {
		t.Errorf("the client gets %q", m.raw)
	}
	s.gate("slow one") <- errors.New("it speaks to the agent")
	if said, failed := toolText(t, c.got()); !failed || !strings.Contains(said, "it speaks to the agent") {
		t.Errorf("the client gets %q", said)
	}
}

// TestSlowExaminationEnds demands that what is examined when the server ends is
// answered, and once.
func TestSlowExaminationEnds(t *testing.T) {
	t.Parallel()
	c, s := connectSlow(t, nil)
	c.echo(901, "slow one")
	<-s.begun
	c.hangUp()
	s.gate("slow one") <- nil
	if m := c.got(); string(m.id) != "901" || m.rpcError != nil {
		t.Errorf("the client gets %q", m.raw)
	}
	if err := <-c.ended; !errors.Is(err, ErrServerEnded) {
		t.Errorf("the relay ends with %v", err)
	}
	if line, more := <-c.lines; more {
		t.Errorf("the client gets %q, too", line)
	}
}

// TestAsideIsBounded demands that no more is examined and held at a time than the
// bounds allow, and that nothing is lost or changes its place.
func TestAsideIsBounded(t *testing.T) {
	t.Parallel()
	a := newAsyncResponseExaminer(1000)
	var mu sync.Mutex
	var order []int
	now, most := 0, 0
	gate := make(chan struct{})
	go func() {
		for range 400 {
			gate <- struct{}{}
		}
	}()
	for i := range 400 {
		a.examineResponse(100, func() {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-gate
			mu.Lock()
			now--
			mu.Unlock()
		})
		if err := a.forwardOrHoldServerNotification(10, func() error {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	a.waitUntilAllForwarded()
	if !slices.IsSorted(order) || len(order) != 400 {
		t.Errorf("notices are passed on in the order %v", order)
	}
	if most > 10 || most < 2 {
		t.Errorf("%d answers of 100 bytes at a time, want 2 to 10", most)
	}
	if a.pendingMessageBytes != 0 || len(a.runningResponses)+len(a.heldServerNotifications) != 0 {
		t.Errorf("%d bytes are left", a.pendingMessageBytes)
	}
}

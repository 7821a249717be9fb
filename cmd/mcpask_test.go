//go:build linux || darwin

package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/gateway"
	"github.com/shieldcli/shield/pkg/service"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A leftToSelf is a judge of a gateway that is asked where the service decides nothing.
type leftToSelf struct{ asked int }

func (l *leftToSelf) Evaluate(context.Context, *action.Action) verdict.Verdict {
	l.asked++
	return verdict.Verdict{Decision: verdict.Block, Reasoning: "left to itself"}
}

// TestServedCalls holds that a gateway gets the same answer from a service as from its
// own pipeline, and judges for itself what the service does not decide.
func TestServedCalls(t *testing.T) {
	w, folder := reachable(t)
	s := newServer(t, w)
	alone, beside := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "state")
	run(t, w, "{}", "policy", "--state", alone) // makes the key of seals
	copied(t, alone, beside)
	defer serving(t, folder, s.answer)()
	argv := []string{"server"}
	var own *shield.Pipeline
	app := newApp(&w, "mcp")
	app.Commands[0].Action = func(c *cli.Context) (err error) {
		_, own, err = loadSettingsAndMCPPipeline(c, &w)
		return err
	}
	if err := app.Run(append([]string{"shield", "mcp", "--state", alone, "--"}, argv...)); err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	own = own.ForMCPServer(gateway.NewServer(argv, w.WorkingDir, "").Name)
	w.args = append([]string{"mcp", "--state", beside, "--"}, argv...)
	decided := 0
	all := rows(t, "../testdata/sample/actions.jsonl", "../testdata/everyday/actions.jsonl", "../testdata/actions/structured.jsonl")
	for i, row := range all {
		if i%20 != 0 {
			continue
		}
		a, err := action.Parse(row)
		if err != nil {
			continue
		}
		self := &leftToSelf{}
		got := mcpToolCallJudge{&w, self}.Evaluate(t.Context(), a)
		want, early := own.EvaluateInProcess(t.Context(), a)
		if self.asked > 0 {
			continue
		}
		decided++
		if want.Decision != verdict.Allow {
			want.Reasoning = refs.ReplaceAllString(want.TextForAgent(), "$1 REF")
		}
		got.Reasoning = refs.ReplaceAllString(got.Reasoning, "$1 REF")
		if !early || got.Decision != want.Decision || got.Tier != want.Tier || got.Reasoning != want.Reasoning {
			t.Errorf("%s: %v %d %q, want %v %d %q", row, got.Decision, got.Tier, got.Reasoning, want.Decision, want.Tier, want.Reasoning)
		}
	}
	if decided < len(all)/40 {
		t.Errorf("the service decides %d of %d actions", decided, len(all)/20)
	}
}

// TestGatewayAsks holds that the gateway has a running service judge a call, and judges
// it for itself without one or where another process has taken the service's place.
func TestGatewayAsks(t *testing.T) {
	w, folder := reachable(t)
	s := newServer(t, w)
	const server = `while read -r l; do case $l in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
*tools/list*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"read_file","inputSchema":{"type":"object"}}]}}';;
*notes.txt*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"done"}]}}';;
*tools/call*) echo '{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"done"}]}}';;
esac; done`
	call := func() string {
		t.Helper()
		from, to := io.Pipe()
		defer from.Close()
		var out, errs bytes.Buffer
		answered := make(chan string, 8)
		w.In, w.Err = from, &errs
		w.Out = io.MultiWriter(&out, lineWriter(answered))
		done := make(chan int, 1)
		go func() {
			done <- Run(t.Context(), []string{"mcp", "--name", "x", "--", "/bin/sh", "-c", server}, w)
			_ = from.Close() // anyone who writes or waits then is told
			close(answered)
		}()
		for i, request := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"notes.txt"}}}`,
			`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/etc/shadow"}}}`,
		} {
			if _, err := fmt.Fprintln(to, request); err != nil {
				t.Fatal(err, errs.String())
			}
			if i == 0 {
				<-answered
				_, _ = fmt.Fprintln(to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`) // the next request shows an error
				continue
			}
			<-answered
		}
		_ = to.Close()
		<-done
		return out.String()
	}
	alone := call()
	if !strings.Contains(alone, "blocked by shield: read /etc/shadow: ") {
		t.Fatal(alone)
	}
	asked, decided := 0, 0
	end := serving(t, folder, func(ctx context.Context, q *peer.Question, from service.CallingProcess) peer.Answer {
		ans := s.answer(ctx, q, from)
		asked++
		if ans.ServiceDecided {
			decided++
		}
		return ans
	})
	with := call()
	end()
	if with != alone || asked != 2 || decided == 0 {
		t.Errorf("asked %d times, %d decided; with a service\n%swithout\n%s", asked, decided, with, alone)
	}
	other := filepath.Join(filepath.Dir(folder), "other") // has a key of its own
	end = serving(t, other, func(context.Context, *peer.Question, service.CallingProcess) peer.Answer {
		return peer.Answer{ServiceDecided: true, CommandStdout: []byte(`{"decision":"ALLOW","tier":0,"reasoning":""}` + "\n")}
	})
	defer end()
	socket := filepath.Join(folder, peer.SocketFileName)
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, peer.SocketFileName), socket); err != nil {
		t.Fatal(err)
	}
	if got := call(); got != alone {
		t.Errorf("beside an impostor\n%s, want\n%s", got, alone)
	}
}

// A lineWriter tells of each line that is written to it.
type lineWriter chan<- string

func (l lineWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		l <- string(line)
	}
	return len(p), nil
}

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

// killRounds is how often [TestKilledProcesses] starts from nothing. Each round
// takes some seconds: go test -run TestKilledProcesses -kill-rounds 50 .
var killRounds = flag.Int("kill-rounds", 1, "rounds of processes that are killed")

// A bench is one installation of shield with a test server for Tier 2.
type bench struct {
	t      testing.TB
	server *evaltest.Server
	dir    string
	config string
}

// newBench returns an installation whose evaluator is the server's model. more
// is further configuration.
func newBench(t testing.TB, server *evaltest.Server, model, more string) *bench {
	t.Helper()
	b := &bench{t: t, server: server, dir: t.TempDir()}
	b.config = b.file("shield.yaml", fmt.Sprintf("evaluator: {provider: custom, model: %q, base_url: %q, timeout: 60s}\n%s\n", model, server.BaseURL(), more))
	for _, dir := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(b.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// examined has the model of the installation take its exam, and returns the installation.
func (b *bench) examined() *bench {
	b.t.Helper()
	if out, status := b.run("", "evaluate", "--exam", "--jobs", "8"); status != 0 {
		b.t.Fatalf("status %d of the exam: %s", status, out)
	}
	b.server.ClearRequests()
	return b
}

func newServer(t testing.TB) *evaltest.Server {
	server := evaltest.NewServer()
	t.Cleanup(server.Close)
	return server
}

// file writes a file of the installation and returns its path.
func (b *bench) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// command returns a shield that is about to be started in the installation.
func (b *bench) command(in string, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	cmd = exec.Command("shield", args...)
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), out, errs
	cmd.Dir = filepath.Join(b.dir, "work")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(b.dir, "home"), "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "SHIELD_CONFIG="+b.config)
	return cmd, out, errs
}

// run runs shield and returns what it wrote and its status.
func (b *bench) run(in string, args ...string) (out string, status int) {
	b.t.Helper()
	cmd, stdout, stderr := b.command(in, args...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	if s := stderr.String(); strings.Contains(s, "panic") || strings.Contains(s, "DATA RACE") {
		b.t.Fatalf("shield %s: %s", strings.Join(args, " "), s)
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// line is what these tests read of a verdict, and of an entry of the log.
type line struct {
	Seq        uint64          `json:"seq"`
	ID         string          `json:"id"`
	Line       int             `json:"line"`
	Decision   string          `json:"decision"`
	Tier       int             `json:"tier"`
	Confidence float64         `json:"confidence"`
	Reasoning  string          `json:"reasoning"`
	Rule       string          `json:"rule"`
	Error      string          `json:"error"`
	Degraded   bool            `json:"degraded"`
	ActionHash string          `json:"action_hash"`
	PromptHash string          `json:"prompt_hash"`
	Type       string          `json:"type"`
	Payload    json.RawMessage `json:"payload"`
	Prints     struct {
		Policy, Rules, Config, Prompt string
	} `json:"fingerprints"`
	Caller struct {
		Command string
		PID     int
	} `json:"caller"`
}

// verdicts parses whole lines. What follows the last one was cut off by a kill.
func verdicts(t testing.TB, text string) []line {
	t.Helper()
	var list []line
	for l := range strings.Lines(text) {
		var v line
		if !strings.HasSuffix(l, "\n") {
			break
		}
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		list = append(list, v)
	}
	return list
}

// log returns the entries of the audit log, which must end with a whole line.
func (b *bench) log() []line {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "home", ".local", "state", "shield", "audit.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		b.t.Errorf("the log ends with a torn line: %.100q", text[bytes.LastIndexByte(text, '\n')+1:])
	}
	return verdicts(b.t, string(text))
}

// verify runs shield audit verify and returns the number of entries.
// Entries that tell of a sudden rise in evaluations are not counted.
func (b *bench) verify() int {
	b.t.Helper()
	var report struct{ Lines int }
	out, status := b.run("", "audit", "verify", "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 {
		b.t.Fatalf("audit verify: status %d: %s", status, out)
	}
	rises, status := b.run("", "audit", "query", `select(.kind == "budget" or .kind == "exam") | .seq`)
	if status != 0 {
		b.t.Fatalf("audit query: status %d", status)
	}
	return report.Lines - strings.Count(rises, "\n")
}

// charged returns how many evaluations the state file has counted.
func (b *bench) charged() int {
	b.t.Helper()
	var s struct {
		Used int `json:"budget_used"`
	}
	out, status := b.run("", "status", "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil || status != 0 {
		b.t.Fatalf("status: status %d: %s", status, out)
	}
	return s.Used
}

// writes returns n actions that Tier 2 has to judge, each another one, so
// that no verdict is used twice. Without a model no one would be asked about them, so that
// the model need not be examined.
func writes(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"%s-%d","type":"write_file","payload":{"path":"notes/%[1]s-%[2]d.txt","content":"x"}}`+"\n", name, i)
	}
	return b.String()
}

const exhausted = "daily evaluation budget exhausted; wait until tomorrow, or let the user raise daily_budget"

// TestBudgetIsShared has many processes spend one budget: not one evaluation
// more than it allows reaches the server, and every verdict is in the log.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	const processes, each, budget = 8, 60, 300
	b := newBench(t, newServer(t), "allow", fmt.Sprintf("rate_limit: 1000000\ndaily_budget: %d", budget))
	outs := make([]string, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			outs[i], _ = b.run(writes(fmt.Sprint(i), each), "evaluate", "--no-action", "--jobs", "4")
		})
	}
	group.Wait()
	got := map[string]int{}
	for i, out := range outs {
		list := verdicts(t, out)
		if len(list) != each {
			t.Fatalf("process %d wrote %d verdicts, want %d", i, len(list), each)
		}
		for _, v := range list {
			reason, _, _ := strings.Cut(v.Reasoning, "; reason for the review: ")
			got[fmt.Sprintf("%s %v %s", v.Decision, v.Confidence, reason)]++
		}
	}
	want := map[string]int{
		"ALLOW 0.98 judged by a test server": budget,
		"BLOCK 0.5 " + exhausted:             processes*each - budget,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if n := len(b.server.Requests()); n != budget {
		t.Errorf("%d evaluations reached the server, want %d", n, budget)
	}
	if n := b.charged(); n != budget {
		t.Errorf("%d evaluations were charged, want %d", n, budget)
	}
	if n := b.verify(); n != processes*each {
		t.Errorf("the log has %d entries, want %d", n, processes*each)
	}
}

// TestKilledProcesses kills processes at random moments and starts others in
// their place. A kill may waste a charge, but never gives one away, and never
// takes an entry away from a verdict that was given.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	for round := range *killRounds {
		killRound(t, server, round)
	}
}

func killRound(t *testing.T, server *evaltest.Server, round int) {
	const processes, each, budget, jobs = 8, 200, 1000, 2
	model := fmt.Sprintf("allow-%d", round) // to count this round's requests
	var mu sync.Mutex
	reached, kills := 0, 0
	var outs []string
	server.SetModelBehaviour(model, func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
		mu.Lock()
		reached++
		mu.Unlock()
		evaltest.Verdict("ALLOW", "0.98")(w, hr, r)
	})
	b := newBench(t, server, model, fmt.Sprintf("rate_limit: 1000000\ndaily_budget: %d", budget))
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			for life := 0; ; life++ {
				cmd, out, _ := b.command(writes(fmt.Sprintf("%d-%d-%d", round, i, life), each), "evaluate", "--no-action", "--jobs", fmt.Sprint(jobs))
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				doomed := life < 2 && rand.N(3) > 0
				if doomed {
					timer := time.AfterFunc(time.Duration(rand.Int64N(int64(1500*time.Millisecond))), func() { _ = cmd.Process.Kill() })
					defer timer.Stop()
				}
				_ = cmd.Wait() // its status is looked at below
				mu.Lock()
				outs = append(outs, out.String())
				killed := !slices.Contains([]int{0, 2, 3}, cmd.ProcessState.ExitCode())
				if killed {
					kills++
				}
				mu.Unlock()
				if !killed {
					return
				}
			}
		})
	}
	group.Wait()
	b.run(writes("last", 1), "evaluate") // the next append repairs a torn line
	charged := b.charged()
	mu.Lock()
	defer mu.Unlock()
	if reached > budget || reached > charged || charged-reached > kills*jobs {
		t.Errorf("round %d: %d evaluations reached the server, %d were charged, after %d kills", round, reached, charged, kills)
	}
	b.verify()
	logged := map[string]int{}
	for _, e := range b.log() {
		logged[e.ID+e.ActionHash+e.Decision+e.Reasoning]++
	}
	written := 0
	for _, out := range outs {
		for _, v := range verdicts(t, out) {
			written++
			if logged[v.ID+v.ActionHash+v.Decision+v.Reasoning] != 1 {
				t.Errorf("round %d: the verdict %s of %s has %d entries", round, v.Decision, v.ID, logged[v.ID+v.ActionHash+v.Decision+v.Reasoning])
			}
			if v.Decision != "ALLOW" && !strings.HasPrefix(v.Reasoning, exhausted) {
				t.Errorf("round %d: %s: %s: %s", round, v.ID, v.Decision, v.Reasoning)
			}
		}
	}
	t.Logf("round %d: %d kills; %d evaluations reached the server, %d charged, %d verdicts written, %d entries", round, kills, reached, charged, written, len(logged))
}

// TestJobsEvaluateAtOnce has a server that answers only when all of eight
// evaluations wait for it.
func TestJobsEvaluateAtOnce(t *testing.T) {
	t.Parallel()
	const n = 8
	server := newServer(t)
	var all sync.WaitGroup
	all.Add(n)
	server.SetModelBehaviour("together", func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
		all.Done()
		all.Wait()
		evaltest.Verdict("ALLOW", "0.98")(w, hr, r)
	})
	b := newBench(t, server, "together", "")
	out, status := b.run(writes("a", n), "evaluate", "--jobs", fmt.Sprint(n))
	if status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	for i, v := range verdicts(t, out) {
		if v.Line != i+1 || v.ID != fmt.Sprintf("a-%d", i) {
			t.Errorf("verdict %d is that of line %d, %s", i+1, v.Line, v.ID)
		}
	}
}

// TestJobsKeepLimits evaluates with more goroutines than rate or budget allow
// evaluations.
func TestJobsKeepLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config, refused string
		most                  int
		refill                time.Duration // of one token of the rate; 0 for the budget
	}{
		{"budget", "rate_limit: 1000000\ndaily_budget: 37", exhausted, 37, 0},
		{"budget of one", "rate_limit: 1000000\ndaily_budget: 1", exhausted, 1, 0},
		{"rate", "rate_limit: 7\ndaily_budget: 1000", "rate limit exceeded", 7, time.Minute / 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const n = 100
			b := newBench(t, newServer(t), "allow", tt.config)
			start := time.Now()
			out, status := b.run(writes("a", n), "evaluate", "--jobs", "32")
			most := tt.most
			if tt.refill > 0 {
				most += int(time.Since(start) / tt.refill)
			}
			reached := len(b.server.Requests())
			if reached < tt.most || reached > most || status != 2 {
				t.Errorf("%d evaluations reached the server, want %d to %d; status %d", reached, tt.most, most, status)
			}
			if charged := b.charged(); charged != reached {
				t.Errorf("%d evaluations reached the server and %d were charged", reached, charged)
			}
			allowed := 0
			for _, v := range verdicts(t, out) {
				switch {
				case v.Decision == "ALLOW":
					allowed++
				case v.Decision != "BLOCK" || !strings.HasPrefix(v.Reasoning, tt.refused):
					t.Errorf("%s: %s: %s", v.ID, v.Decision, v.Reasoning)
				}
			}
			if allowed != reached {
				t.Errorf("%d evaluations reached the server and %d were allowed", reached, allowed)
			}
		})
	}
}

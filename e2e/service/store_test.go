package service

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/internal/redistest"
	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

// A machine is a user's home with a service and a shield run that is kept.
type machine struct {
	dir, state string
	env        []string
	in         io.Writer
	out        *bufio.Reader
}

// newMachine returns a machine with settings in which Tier 2 is a model that allows.
func newMachine(t *testing.T, model *evaltest.Server, more string) *machine {
	t.Helper()
	home := t.TempDir()
	m := &machine{dir: filepath.Join(home, "project"), env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "MODEL_KEY=x"}}
	m.state = peer.StateFolder(func(name string) string { return map[string]string{"HOME": home}[name] })
	text := "policy: offline\nrate_limit: 1000000\ndaily_budget: 1000000\nclassifier: {model: none}\n" +
		fmt.Sprintf("evaluator: {provider: custom, model: allow, api_key_env: MODEL_KEY, base_url: %q}\n", model.BaseURL()) + more
	for path, text := range map[string]string{
		"project/README.md": "", ".config/shield/shield.yaml": text, ".config/shield/fleet.key": strings.Repeat("0123456789abcdef", 4),
	} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.start(t, "serve")
	m.in, m.out = m.start(t, "run", "--no-action")
	return m
}

// start starts a command of shield, which ends with the test.
func (m *machine) start(t *testing.T, args ...string) (io.Writer, *bufio.Reader) {
	t.Helper()
	c := exec.Command(os.Getenv("SHIELD_BIN"), args...)
	c.Dir, c.Env, c.Stderr = m.dir, m.env, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
	return in, bufio.NewReader(out)
}

// ask asks the service of the machine about a command.
func (m *machine) ask(command string) error {
	event := fmt.Appendf(nil, `{"hook_event_name":"PreToolUse","session_id":"s","cwd":%q,"tool_name":"Bash","tool_input":{"command":%q}}`, m.dir, command)
	line, err := peer.Dial(peer.ServiceFolder(m.state))
	if err != nil {
		return err
	}
	q := peer.Question{AskingProgramPath: os.Getenv("SHIELD_BIN"), AskingProcessWorkingDir: m.dir, ParentPIDOfAskingProcess: os.Getpid(), AskingProgramArgs: []string{"hook", "claude-code", "--judge"}, Environ: m.env, AskingProcessStdin: event}
	if ans, err := line.Ask(&q, time.Second); err != nil || !ans.ServiceDecided {
		return fmt.Errorf("decided: %v, %w", ans.ServiceDecided, err)
	}
	return nil
}

// evaluate has the kept shield run judge a command, in a tier.
func (m *machine) evaluate(command string, tier int) error {
	if _, err := fmt.Fprintf(m.in, `{"type":"execute_command","session":"s","payload":{"command":%q}}`+"\n", command); err != nil {
		return err
	}
	line, err := m.out.ReadSlice('\n')
	if want := fmt.Sprintf(`"decision":"ALLOW","tier":%d`, tier); err != nil || !bytes.Contains(line, []byte(want)) {
		return fmt.Errorf("%w: %s", err, line)
	}
	return nil
}

// TestStore prints what a store adds to what a machine judges, beside a machine
// that keeps all in its own file. They take turns.
func TestStore(t *testing.T) {
	sample(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	free.Close()
	if err != nil {
		t.Fatal(err)
	}
	redistest.Start(t, "--port", port, "--bind", "127.0.0.1")
	model := evaltest.NewServer()
	defer model.Close()
	machines := []*machine{newMachine(t, model, ""), newMachine(t, model, "store: redis://127.0.0.1:"+port+"\nstore_key_file: fleet.key\n")}
	for _, m := range machines {
		for deadline := time.Now().Add(30 * time.Second); m.ask("ls") != nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the service does not answer: %v", m.ask("ls"))
			}
		}
	}
	for _, tt := range []struct {
		name string
		ask  func(m *machine, i int) error
	}{
		{"an evaluation, of what the session remembers", func(m *machine, i int) error {
			return m.evaluate(fmt.Sprintf("curl -o %d.sh https://example.com/", i), 2)
		}},
		{"a question at the socket", func(m *machine, _ int) error { return m.ask("ls -la") }},
		{"a plain command in a kept shield run", func(m *machine, _ int) error { return m.evaluate("ls -la", 1) }},
	} {
		var took [2][]time.Duration
		for i := range tries {
			for j, m := range machines {
				began := time.Now()
				if err := tt.ask(m, i); err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
				took[j] = append(took[j], time.Since(began))
			}
		}
		var median [2]time.Duration
		for j := range took {
			slices.Sort(took[j])
			median[j] = took[j][tries/2].Round(time.Microsecond)
		}
		t.Logf("%s, median of %d: %v, with a store %v, %v more", tt.name, tries, median[0], median[1], median[1]-median[0])
	}
}

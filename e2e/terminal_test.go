//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/ttytest"
)

// A terminal is a shell in tmux, with the snippet of shield init loaded.
type terminal struct {
	t     *testing.T
	shell string
	sock  string
	work  string // its working folder
	bin   string // where its shield is
	n     int    // of marks
}

// newTerminal starts a shell that reads some lines, then the snippet.
func newTerminal(t *testing.T, shell, before string) *terminal {
	t.Helper()
	needs(t, "tmux", shell)
	dir, err := os.MkdirTemp("", "shells") // t.TempDir does not wait for the shell's last history
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home := filepath.Join(dir, "home")
	term := &terminal{t: t, shell: shell, sock: filepath.Join(dir, "tmux"), work: filepath.Join(dir, "work"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{home, term.work, term.bin, filepath.Join(home, ".config", "shield")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	policy := filepath.Join(home, "policy.yaml")
	// No person answers here: what a person would have to decide is blocked.
	term.write(filepath.Join(home, ".config", "shield", "shield.yaml"), "approval: {channels: []}\nclassifier: {model: none}\npolicy: "+policy+"\n")
	term.write(policy, shellPolicy)
	shield := filepath.Join(term.bin, "shield")
	if err := os.Symlink(builtShield, shield); err != nil {
		t.Fatal(err)
	}
	init := exec.Command(shield, "init", shell)
	init.Env = []string{"HOME=" + home}
	snippet, err := init.Output()
	if err != nil {
		t.Fatal(err)
	}
	// The snippet names a path that the tests can replace.
	text := strings.ReplaceAll(string(snippet), builtShield, shield)
	prompt := "PS1='ready> '\n"
	if shell == "fish" {
		prompt = "function fish_prompt; echo -n 'ready> '; end\nset -g fish_greeting\n"
	}
	rc := filepath.Join(home, ".zshrc")
	term.write(rc, prompt+before+"\n"+text)
	command := []string{"env", "-i", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=screen", "ZDOTDIR=" + home, shell}
	for _, a := range shells[shell] {
		command = append(command, strings.ReplaceAll(a, "RC", rc))
	}
	term.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "100", "-c", term.work}, command...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.sock, "kill-server").Run() })
	ttytest.AttachTmuxClient(t, term.sock, 100)
	term.waitFor("ready>")
	return term
}

func (term *terminal) write(path, text string) {
	term.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		term.t.Fatal(err)
	}
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", term.sock}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys types a line and Enter.
func (term *terminal) keys(line string) {
	term.t.Helper()
	term.tmux("send-keys", "-l", line)
	term.press("Enter")
}

// press presses keys by their names.
func (term *terminal) press(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

func (term *terminal) screen() string { return term.tmux("capture-pane", "-p", "-S", "-") }

// waitFor waits until the screen shows a text.
func (term *terminal) waitFor(text string) {
	term.t.Helper()
	for range 2400 {
		if strings.Contains(term.screen(), text) {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	term.t.Fatalf("%q did not come up:\n%s", text, term.screen())
}

// settle returns when the shell has done all that was typed.
func (term *terminal) settle() {
	term.t.Helper()
	term.n++
	term.keys(fmt.Sprintf("echo mark-%d''-end", term.n))
	term.waitFor(fmt.Sprintf("mark-%d-end", term.n))
}

// allowed types a line that runs.
func (term *terminal) allowed(line, output string) {
	term.t.Helper()
	term.keys(line)
	term.waitFor(output)
	term.settle()
}

// blocked types lines that do not run, in no part: each would create the file
// "ran" or read or write "secret".
func (term *terminal) blocked(lines ...string) {
	term.t.Helper()
	before := strings.Count(term.screen(), "shield: blocked: ")
	for _, line := range lines {
		term.keys(line)
	}
	term.settle()
	if strings.Count(term.screen(), "shield: blocked: ") <= before {
		term.t.Errorf("%q was not blocked:\n%s", lines, term.screen())
	}
	for _, name := range []string{"ran", "secret"} {
		if _, err := os.Lstat(filepath.Join(term.work, name)); err == nil {
			term.t.Errorf("%q made the file %s:\n%s", lines, name, term.screen())
			_ = os.Remove(filepath.Join(term.work, name))
		}
	}
}

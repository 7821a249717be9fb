//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A terminal is a shell in tmux, with the snippet of shield init loaded.
type terminal struct {
	t    *testing.T
	name string
	sock string
}

func newTerminal(t *testing.T, shell string, args ...string) *terminal {
	t.Helper()
	for _, program := range []string{"tmux", shell} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir, err := os.MkdirTemp("", "shells") // t.TempDir does not wait for the shell's last history
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home, work, bin := filepath.Join(dir, "home"), filepath.Join(dir, "work"), filepath.Join(dir, "bin")
	for _, d := range []string{home, work, bin, filepath.Join(home, ".config", "shield")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Nobody answers here: what a person would have to decide is blocked.
	if err := os.WriteFile(filepath.Join(home, ".config", "shield", "shield.yaml"), []byte("approval: {channels: []}\nclassifier: {model: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shield := filepath.Join(bin, "shield")
	if out, err := exec.Command("go", "build", "-o", shield, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	snippet, err := exec.Command(shield, "init", shell).Output()
	if err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(home, "snippet")
	prompt := "PS1='ready> '\n"
	if shell == "fish" {
		prompt = "function fish_prompt; echo -n 'ready> '; end\nset -g fish_greeting\n"
	}
	if err := os.WriteFile(rc, append([]byte(prompt), snippet...), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "RC", rc)
	}
	term := &terminal{t, "s", filepath.Join(dir, "tmux")}
	command := append([]string{"env", "-i", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=screen", "PS1=zsh0> ", "ZDOTDIR=" + home, shell}, args...)
	term.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", "-s", term.name, "-c", work}, command...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.sock, "kill-server").Run() })
	if shell == "zsh" {
		term.waitFor("zsh0>")
		term.keys("source " + rc)
	}
	term.waitFor("ready>")
	return term
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
	term.tmux("send-keys", "-t", term.name, "-l", line)
	term.tmux("send-keys", "-t", term.name, "Enter")
}

func (term *terminal) screen() string {
	return term.tmux("capture-pane", "-p", "-t", term.name)
}

// waitFor waits until the screen shows a text.
func (term *terminal) waitFor(text string) {
	term.t.Helper()
	for range 400 {
		if strings.Contains(term.screen(), text) {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	term.t.Fatalf("%q did not come up:\n%s", text, term.screen())
}

// TestShellSnippets types into real shells: what is allowed runs, what is not
// does not, and the shell goes on.
func TestShellSnippets(t *testing.T) {
	t.Parallel()
	for shell, args := range map[string][]string{
		"bash": {"--norc", "--noprofile", "--rcfile", "RC", "-i"},
		"zsh":  {"-f", "-i"},
		"fish": {"--no-config", "-i", "-C", "source RC"},
	} {
		if shell == "bash" {
			args = []string{"--noprofile", "--rcfile", "RC", "-i"}
		}
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, shell, args...)
			n := 0
			allowed := func(line, output string) {
				t.Helper()
				n++
				mark := fmt.Sprintf("mark-%d-end", n)
				term.keys(line)
				term.waitFor(output)
				term.keys("echo mark-" + fmt.Sprint(n) + "''-end")
				term.waitFor(mark)
			}
			allowed("echo one'' two", "one two")
			allowed("echo one'' two", "one two") // the same again
			allowed("  echo three'' four", "three four")

			term.keys("touch ran; cat ~/.ssh/id_rsa | wc -c; touch ran")
			term.waitFor("shield: blocked: ")
			allowed("ls ran; echo listed''!", "listed!")
			if screen := term.screen(); !strings.Contains(screen, "No such file") && !strings.Contains(screen, "cannot access") {
				t.Errorf("a blocked line ran in part:\n%s", screen)
			}

			// Over several lines.
			if shell == "fish" {
				term.keys("echo line-5''-x \\")
				term.keys("line-6''-x")
			} else {
				term.keys("for i in 5 6; do")
				term.keys("echo line-$i''-x")
				term.keys("done")
			}
			term.waitFor("line-5-x")
			term.waitFor("line-6-x")

			// ^C while typing, and an empty line.
			term.tmux("send-keys", "-t", term.name, "-l", "echo never")
			term.tmux("send-keys", "-t", term.name, "C-c")
			term.keys("")
			allowed("echo still'' here", "still here")

			if shell == "fish" {
				return // fish has no command that adds a line to the history
			}
			// What was blocked is in the history, to be mended and tried again.
			for range 40 {
				term.tmux("send-keys", "-t", term.name, "Up")
				time.Sleep(20 * time.Millisecond)
				lines := strings.Split(strings.TrimSpace(term.screen()), "\n")
				if strings.Contains(lines[len(lines)-1], "touch ran; cat") {
					return
				}
			}
			t.Errorf("the blocked line is not in the history:\n%s", term.screen())
		})
	}
}

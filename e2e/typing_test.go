//go:build unix

package e2e

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/hostile"
)

// typingStreams is how many streams of typing each terminal gets: a few, or as
// many as SHIELD_TYPING says (make typing).
func typingStreams(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SHIELD_TYPING")
	if text == "" {
		return 3
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What a question shows.
const (
	asked     = "shield asks whether to run “git push --force origin "
	gateOpens = "type your answer"
)

var codeShown = regexp.MustCompile(`\b([a-z]{3}) Enter: approve once`)

// visible returns what stands on the screen now.
func (term *terminal) visible() string { return term.tmux("capture-pane", "-p") }

// until waits until the screen is as expected, and reports whether it is.
func (term *terminal) until(wanted func(screen string) bool) bool {
	term.t.Helper()
	for range 400 {
		if wanted(term.visible()) {
			return true
		}
		time.Sleep(25 * time.Millisecond)
	}
	return false
}

// stream types, and waits in longer pauses until the question would take an
// answer.
func (term *terminal) stream(strokes []hostile.Keystrokes) (pauses int) {
	term.t.Helper()
	var bytes string
	send := func() {
		if bytes == "" {
			return
		}
		keys := []string{"send-keys", "-H"}
		for i := range len(bytes) {
			keys = append(keys, hex.EncodeToString([]byte{bytes[i]}))
		}
		term.tmux(keys...)
		bytes = ""
	}
	for _, s := range strokes {
		if s.PauseBefore >= time.Second {
			send()
			pauses++
			term.until(func(screen string) bool {
				return !strings.Contains(screen, asked) || strings.Contains(screen, gateOpens)
			})
		} else if s.PauseBefore > 200*time.Millisecond {
			send()
		}
		bytes += s.Bytes
	}
	send()
	return pauses
}

// approve types the code of the question.
func (term *terminal) approve(name string) {
	term.t.Helper()
	if !term.until(func(screen string) bool {
		return strings.Contains(screen, asked+name+"”") && strings.Contains(screen, gateOpens)
	}) {
		term.t.Fatalf("no question:\n%s", term.visible())
	}
	code := codeShown.FindStringSubmatch(term.visible())
	if code == nil {
		term.t.Fatalf("no code:\n%s", term.visible())
	}
	term.keys(code[1])
}

// leave gets back to an empty line of the shell, whatever was typed: it may have
// left a question, half a line, a search or a terminal that is stopped.
func (term *terminal) leave() {
	term.t.Helper()
	for round := range 20 {
		if round > 1 {
			term.press("C-q")
		}
		term.press("C-c")
		if !term.until(func(screen string) bool { return !strings.Contains(screen, asked) }) {
			continue
		}
		term.n++
		term.keys(fmt.Sprintf("echo mark-%d''-end", term.n))
		mark := fmt.Sprintf("mark-%d-end", term.n)
		for range 80 {
			if strings.Contains(term.visible(), mark) {
				return
			}
			time.Sleep(25 * time.Millisecond)
		}
	}
	term.t.Fatalf("the shell does not come back:\n%s", term.visible())
}

// askingConfig has a person asked at the terminal.
const askingConfig = "approval: {channels: [tty], max_per_hour: 10000}\nclassifier: {model: none}\npolicy: offline\n"

// TestTypingInShells types on while a question stands, in shells that have the
// snippet: nothing is approved. The code approves.
func TestTypingInShells(t *testing.T) {
	for shell, options := range map[string]string{"bash": "IGNOREEOF=100000", "zsh": "setopt ignore_eof"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			// Whatever of the typing the shell gets finds no program but git.
			term := newTerminal(t, shell, "PATH=$HOME/../bin\n"+options)
			pushed := filepath.Join(term.work, "pushed")
			term.write(filepath.Join(term.bin, "git"), "#!/bin/sh\ncase $* in *force*) echo \"$*\" >>"+pushed+";; esac\n")
			term.write(filepath.Join(term.home(), ".config", "shield", "shield.yaml"), askingConfig)
			pauses, n := 0, typingStreams(t)
			for seed := range n {
				term.keys(fmt.Sprintf("git push --force origin b%d", seed))
				term.waitFor(asked)
				pauses += term.stream(hostile.RandomTyping(seed))
				term.leave()
				if text, err := os.ReadFile(pushed); err == nil {
					t.Fatalf("stream %d approved %q: %q", seed, text, hostile.RandomTyping(seed))
				}
			}
			t.Logf("%d streams with %d pauses approved nothing", n, pauses)
			term.keys("git push --force origin wanted")
			term.approve("wanted")
			term.waitFor("shield: approved once: git push --force origin wanted")
			term.settle()
			if text, err := os.ReadFile(pushed); err != nil || string(text) != "push --force origin wanted\n" {
				t.Errorf("the code did not approve: %q, %v", text, err)
			}
		})
	}
}

// home is the shell's home folder.
func (term *terminal) home() string { return filepath.Join(filepath.Dir(term.work), "home") }

// newRawTerminal returns a terminal without a shell, which was raw before
// shield asks at it.
func newRawTerminal(t *testing.T) *terminal {
	t.Helper()
	term := newTerminal(t, "bash", "")
	term.write(filepath.Join(term.home(), ".config", "shield", "shield.yaml"), askingConfig)
	term.tmux("set-option", "-g", "remain-on-exit", "on")
	return term
}

// question has shield ask about a push, and returns the file of its verdict.
func (term *terminal) question(name string, flags ...string) (verdict string) {
	term.t.Helper()
	action, verdict := filepath.Join(term.work, name), filepath.Join(term.work, name+".verdict")
	term.write(action, `{"type":"execute_command","payload":{"command":"git push --force origin `+name+`"}}`)
	script := fmt.Sprintf("stty raw -echo; exec %s run %s <%s >%s", filepath.Join(term.bin, "shield"), strings.Join(flags, " "), action, verdict)
	term.tmux("respawn-pane", "-k", "env", "-i", "HOME="+term.home(), "PATH="+os.Getenv("PATH"), "TERM=screen", "sh", "-c", script)
	if !term.until(func(screen string) bool { return strings.Contains(screen, asked+name+"”") }) {
		term.t.Fatalf("no question about %s:\n%s", name, term.visible())
	}
	return verdict
}

// verdictIs waits for a verdict.
func (term *terminal) verdictIs(file, want string) {
	term.t.Helper()
	var text []byte
	for range 800 {
		if text, _ = os.ReadFile(file); strings.HasSuffix(string(text), "\n") {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if !strings.Contains(string(text), want) {
		term.t.Errorf("got %q, want %s", text, want)
	}
}

// TestTypingAtRawTerminal does the same where shield alone runs at a terminal.
func TestTypingAtRawTerminal(t *testing.T) {
	t.Parallel()
	term := newRawTerminal(t)
	pauses, n := 0, typingStreams(t)
	for seed := range n {
		verdict := term.question(fmt.Sprintf("b%d", seed))
		pauses += term.stream(hostile.RandomTyping(seed))
		if text, err := os.ReadFile(verdict); err != nil || strings.Contains(string(text), "ALLOW") {
			t.Fatalf("stream %d: %s, %v: %q", seed, text, err, hostile.RandomTyping(seed))
		}
	}
	t.Logf("%d streams with %d pauses approved nothing", n, pauses)
	verdict := term.question("wanted")
	term.approve("wanted")
	term.verdictIs(verdict, `"decision":"ALLOW","tier":3`)
}

// TestHangUp: when the terminal goes away there is a verdict, and one that only
// seems to go away has its screen back.
func TestHangUp(t *testing.T) {
	t.Parallel()
	const interrupted = `"decision":"BLOCK","tier":3,"confidence":1,"reasoning":"shield was interrupted`
	term := newRawTerminal(t)
	verdict := term.question("signal")
	if got := term.tmux("display-message", "-p", "#{alternate_on}"); got != "1\n" {
		t.Fatalf("the question is not on a screen of its own: %q", got)
	}
	pid := strings.TrimSpace(term.tmux("display-message", "-p", "#{pane_pid}"))
	if out, err := exec.Command("kill", "-HUP", pid).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	term.verdictIs(verdict, interrupted)
	term.waitFor("shield: interrupted: git push --force origin signal")
	if got := term.tmux("display-message", "-p", "#{alternate_on}"); got != "0\n" {
		t.Errorf("the screen of the question was left on: %q", got)
	}
	verdict = term.question("closed")
	term.tmux("kill-server")
	term.verdictIs(verdict, interrupted)
}

// TestQuestionWithoutBold checks --color never for the question.
func TestQuestionWithoutBold(t *testing.T) {
	t.Parallel()
	term := newRawTerminal(t)
	for _, tc := range []struct {
		flag string
		bold bool
	}{{"--color=auto", true}, {"--color=always", true}, {"--color=never", false}} {
		term.question("bold", tc.flag)
		if got := strings.Contains(term.tmux("capture-pane", "-e", "-p"), "\x1b[1mshield asks"); got != tc.bold {
			t.Errorf("%s: bold is %t, want %t", tc.flag, got, tc.bold)
		}
	}
}

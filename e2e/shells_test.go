//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shellPolicy blocks a made-up command and whatever touches files of one name.
const shellPolicy = `extends: offline
deny:
  - name: made-up
    action_types: [read_file, write_file, delete_file]
    paths: ["**/secret*"]
    reason: a test
allow:
  - name: loosen
    commands: [loosen]
    reason: a function of the session
`

// shells are the arguments that make each of them read RC and nothing else.
var shells = map[string][]string{
	"bash": {"--noprofile", "--rcfile", "RC", "-i"},
	"zsh":  {"-d", "-i"},
	"fish": {"--no-config", "-i", "-C", "source RC"},
}

// each runs a test in a terminal of each shell.
func each(t *testing.T, before map[string]string, test func(*testing.T, *terminal)) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			test(t, newTerminal(t, shell, before[shell]))
		})
	}
}

// TestShellSnippets types into real shells: what is allowed runs, what is not
// does not, and the shell goes on.
func TestShellSnippets(t *testing.T) {
	each(t, nil, func(t *testing.T, term *terminal) {
		term.allowed("echo one'' two", "one two")
		term.allowed("echo one'' two", "one two") // the same again
		term.allowed("  echo three'' four", "three four")
		term.allowed("true && echo a''nd; false || echo o''r", "or")
		term.blocked("touch ran; cat secret; touch ran")
		term.keys("cat secret")
		status := "$?"
		if term.shell == "fish" {
			status = "$status"
		}
		term.allowed("echo bloc''ked-"+status+"-", "blocked-130-") // as after ^C
		term.allowed("echo the''n-"+status+"-", "then-0-")
		term.blocked("true && cat secret && touch ran")
		term.blocked("touch ran | cat secret")
		term.blocked("  touch ran; cat secret") // by default, some histories leave it out
		term.allowed("echo li''sted", "listed")

		// Over several lines.
		if term.shell == "fish" {
			term.keys("for i in 5 6")
			term.keys("echo line-$i-x")
			term.keys("end")
			term.waitFor("line-6-x")
			term.blocked("for i in 5 6", "touch ran; cat secret", "end")
			term.blocked("begin; touch ran; cat secret; end")
			term.blocked("touch ran; and cat secret")
			term.blocked("not cat secret; touch ran")
			term.blocked("cat secret; or touch ran")
			term.blocked("function f; cat secret; end; touch ran")
			term.blocked(`touch ran; cat \x73ecret`)
			term.allowed("if true; echo y''es; end", "yes")
		} else {
			term.keys("for i in 5 6; do")
			term.keys("echo line-$i''-x")
			term.keys("done")
			term.waitFor("line-6-x")
			term.blocked("for i in 5 6; do", "touch ran", "cat secret", "done")
			term.blocked("touch ran; cat \\", "secret")
			term.keys("cat <<E")
			term.keys("# he''re $((1+1))")
			term.keys("E")
			term.waitFor("# he''re 2")
			term.blocked("sh <<E", "# a comment", "touch ran; cat secret", "E")
			term.blocked("f() { touch ran; cat secret; }")
			term.blocked("{ true; } > secret")
			term.blocked("( true ) > secret")
			term.blocked("while false; do true; done > secret")
			term.blocked("(touch ran; cat secret)", "echo $(touch ran; cat secret)")
			term.allowed("g() { echo fun''ction $1; }; g 8", "function 8")
			term.allowed("g 9", "function 9")
			// What a name means now was decided by lines before.
			term.keys(`h() { cat "$1"; }; k() { h "$1"; }; alias ca''lls=k`)
			term.settle()
			for _, line := range []string{"touch ran; h secret", "touch ran; k secret", `touch ran; "k" secret`, `touch ran; \k secret`, "touch ran; calls secret"} {
				term.blocked(line)
			}
			term.allowed("k /dev/null; echo nu''ll", "null")
			// History is expanded before the line is judged.
			term.keys("cat secret")
			term.waitFor("shield: blocked: ")
			term.blocked("!!; touch ran")
			term.blocked("fc -s")
			if term.shell == "bash" {
				term.blocked("{ touch ran; # '", "cat secret; } # '")
			} else { // here # is a letter
				term.blocked("touch ran; echo # && cat secret")
				term.allowed("echo is'' # all && echo wo''rds", "words")
			}
		}
		term.blocked(term.shell + " -c 'touch ran; cat secret'")

		// ^C while typing, and an empty line.
		term.tmux("send-keys", "-l", "echo never")
		term.press("C-c")
		term.keys("")
		term.allowed("echo still'' here", "still here")
		// ^C while the command runs: it says so itself, since between two commands a shell may miss ^C.
		term.keys(`sh -c "echo sle''eping; exec sleep 60"; touch ran`)
		term.waitFor("sleeping")
		term.press("C-c")
		term.settle()
		if _, err := os.Stat(filepath.Join(term.work, "ran")); err == nil {
			t.Error("^C did not end the line")
		}
	})
}

// loosen is a function that has the session point at other settings.
var loosen = map[string]string{
	"bash": "loosen() { export SHIELD_CONFIG=$PWD/loose.yaml HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_STATE_HOME=$PWD; }",
	"zsh":  "loosen() { export SHIELD_CONFIG=$PWD/loose.yaml HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_STATE_HOME=$PWD; }",
	"fish": "function loosen; set -gx SHIELD_CONFIG $PWD/loose.yaml; set -gx HOME $PWD; set -gx XDG_CONFIG_HOME $PWD; set -gx XDG_STATE_HOME $PWD; end",
}

// TestShellSnippetsKeepTheirSettings changes the environment of the session:
// the settings of before still judge.
func TestShellSnippetsKeepTheirSettings(t *testing.T) {
	each(t, loosen, func(t *testing.T, term *terminal) {
		const loose = "approval: {channels: []}\nclassifier: {model: none}\npolicy: permissive\n"
		if err := os.Mkdir(filepath.Join(term.work, "shield"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"loose.yaml", "shield/shield.yaml"} {
			term.write(filepath.Join(term.work, name), loose)
		}
		term.keys("loosen")
		term.settle()
		term.allowed("echo now'' $SHIELD_CONFIG", "now "+filepath.Join(term.work, "loose.yaml"))
		term.blocked("touch ran; cat secret")
		if _, err := os.Stat(filepath.Join(term.work, "shield", "seal.key")); err == nil {
			t.Error("the state moved to where the session points")
		}
	})
}

// ran reports whether a line made the file "ran".
func (term *terminal) ran() bool {
	_, err := os.Lstat(filepath.Join(term.work, "ran"))
	return err == nil
}

// withShield puts a script in the place of shield.
func (term *terminal) withShield(script string) {
	term.t.Helper()
	if err := os.Remove(filepath.Join(term.bin, "shield")); err != nil {
		term.t.Fatal(err)
	}
	if script != "" {
		term.write(filepath.Join(term.bin, "shield"), script)
	}
}

// TestShellSnippetsFailClosed takes shield away: no line runs, a message says
// so, and ^D still ends the shell.
func TestShellSnippetsFailClosed(t *testing.T) {
	for name, script := range map[string]string{
		"missing": "", "broken": "\x7fELF", "failing": "#!/bin/sh\nexit 1\n", "killed": "#!/bin/sh\nkill -9 $$\n",
	} {
		t.Run(name, func(t *testing.T) {
			each(t, nil, func(t *testing.T, term *terminal) {
				term.withShield(script)
				term.keys("touch ran")
				term.waitFor("shield: blocked: no verdict came; ^D ends")
				term.keys("echo 2; touch ran")
				for range 100 {
					if strings.Count(term.screen(), "shield: blocked: no") == 2 && strings.Count(term.screen(), "ready>") == 3 {
						break
					}
					time.Sleep(25 * time.Millisecond)
				}
				if term.ran() {
					t.Error("a line ran without a verdict")
				}
				term.press("C-d")
				for range 2400 {
					if exec.Command("tmux", "-S", term.sock, "has-session").Run() != nil {
						return
					}
					time.Sleep(25 * time.Millisecond)
				}
				t.Errorf("^D did not end the shell:\n%s", term.screen())
			})
		})
	}
}

// TestShellSnippetsInterrupted presses keys while shield judges.
func TestShellSnippetsInterrupted(t *testing.T) {
	for _, key := range []string{"C-c", "C-\\"} {
		t.Run(key, func(t *testing.T) {
			each(t, nil, func(t *testing.T, term *terminal) {
				if term.shell == "fish" {
					t.Skip("fish keeps keys until shield has answered")
				}
				judging := filepath.Join(term.work, "judging")
				term.withShield("#!/bin/sh\ncase $* in *ran*) touch " + judging + "; sleep 30;; esac\nexec " + builtShield + ` "$@"` + "\n")
				term.keys("touch ran")
				for range 6000 {
					if _, err := os.Stat(judging); err == nil {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				prompts := strings.Count(term.screen(), "ready>")
				// What is typed before the shell asks anew goes with the line that is thrown
				// away, and a key may come while nothing listens: one presses it again.
				for i := range 400 {
					if strings.Count(term.screen(), "ready>") > prompts {
						break
					}
					if i%40 == 0 {
						term.press(key)
					}
					time.Sleep(25 * time.Millisecond)
				}
				term.settle()
				if term.ran() {
					t.Errorf("%s let the line run:\n%s", key, term.screen())
				}
			})
		})
	}
}

// paste pastes lines as terminals do: as one, with marks around them.
func (term *terminal) paste(lines string) {
	term.t.Helper()
	term.tmux("set-buffer", lines)
	term.tmux("paste-buffer", "-p", "-r")
	term.press("Enter")
}

// history presses Up until a line that starts with a text comes up.
func (term *terminal) history(text string) bool {
	term.t.Helper()
	defer term.press("C-c")
	typed := func() string {
		lines := strings.Split(strings.TrimSpace(term.screen()), "ready> ")
		return lines[len(lines)-1]
	}
	for range 40 {
		before := typed()
		term.press("Up")
		for range 100 { // the next key only after this one has shown
			if typed() != before {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if strings.HasPrefix(typed(), text) {
			return true
		}
	}
	return false
}

// TestBashSnippet changes what the snippet depends on.
func TestBashSnippet(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, "bash", `
HISTCONTROL=ignoreboth
PROMPT_COMMAND='echo prom''pt $?;'
PS0='be''fore '
trap 'echo debug-$BASH_COMMAND' DEBUG
_complete() { COMPREPLY=(com''pleted); }
complete -F _complete cmd`)
	term.settle()
	if screen := term.screen(); !strings.Contains(screen, "before debug-echo mark-1''-end") || !strings.Contains(screen, "prompt 0") {
		t.Errorf("a trap or a prompt of the user's own was lost:\n%s", screen)
	}
	for _, line := range []string{
		"HISTCONTROL=ignorespace", "HISTCONTROL=ignoreboth:erasedups", "HISTIGNORE='*'", "HISTSIZE=0", "unset HISTSIZE", "shopt -u cmdhist",
		"shopt -u lithist", "shopt -u interactive_comments", "shopt -u promptvars", "COMP_LINE=1", "trap '' INT", "trap 'echo tr''ap' INT",
		"PS0=", "set -u", "HISTTIMEFORMAT='%F 1 '", "set -o vi", "set -o emacs", "alias c=ca''t", "set +u",
	} {
		term.keys(line)
		term.settle()
		term.blocked(" touch ran; cat secret")
		term.blocked("{", " touch ran # '", "cat secret # '", "}")
		term.blocked("HISTCONTROL=ignorespace; shopt -u cmdhist; cat secret")
	}
	term.allowed("echo 'quoted  two\n  lines'", "quoted  two")
	if !strings.Contains(term.screen(), "prompt 130") {
		t.Errorf("the user's own prompt did not see a blocked line:\n%s", term.screen())
	}
	term.tmux("send-keys", "-l", "echo cmd; cmd ")
	term.press("Tab")
	term.waitFor("cmd completed")
	term.press("C-c")
	term.waitFor("cmd completed ^C")
	term.paste("echo pas''ted-1\necho pas''ted-2")
	term.waitFor("pasted-2")
	term.paste("echo pas''ted-3\ntouch ran; cat secret")
	term.waitFor("shield: blocked")
	term.settle()
	term.tmux("send-keys", "-l", "touch ran")
	term.press("C-x", "C-e")
	term.waitFor("fc runs lines without a verdict")
	term.settle()
	term.blocked("touch ran; cat secret")
	if term.ran() {
		t.Errorf("a line ran that was not allowed:\n%s", term.screen())
	}
	for _, text := range []string{"touch ran; cat secret", "echo 'quoted  two"} {
		if !term.history(text) {
			t.Errorf("%q is not in the history:\n%s", text, term.screen())
		}
	}
}

// TestZshSnippet uses what zsh alone has.
func TestZshSnippet(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, "zsh", `
precmd() { echo prom''pt $? }
preexec() { echo be''fore }
alias c=cat
alias -g S=secret
alias -s txt='cat secret #'`)
	term.allowed("echo on''e", "one")
	term.blocked("touch ran; c secret")
	term.blocked("touch ran; cat S")
	term.blocked("x.txt")
	term.blocked("touch ran; echo x >! secret")
	term.blocked("touch ran; repeat 2 { cat secret }")
	term.blocked("for x (a b) cat secret")
	term.blocked("{ touch ran } always { cat secret }")
	term.blocked("touch ran; () { cat secret }")
	term.blocked("touch ran; a=(x cat); $a[2] secret")
	term.blocked("cat <<'E' > secret", "text", "E")
	term.blocked("touch ran; cat =(cat secret)")
	term.keys("setopt interactive_comments")
	term.settle()
	term.blocked("{ touch ran # '", "cat secret # '", "}")
	term.allowed("echo com''ment # cat secret", "comment")
	term.keys("unsetopt interactive_comments; trap 'echo tr''ap' INT")
	term.settle()
	term.blocked("touch ran; cat secret")
	if !term.history("touch ran; cat secret") {
		t.Errorf("the blocked line is not in the history:\n%s", term.screen())
	}
	term.keys("r")
	term.settle()
	term.paste("echo pas''ted-1\necho pas''ted-2")
	term.waitFor("pasted-2")
	term.paste("echo pas''ted-3\ntouch ran; cat secret")
	term.waitFor("shield: blocked")
	term.settle()
	if n := strings.Count(term.screen(), "before"); n < 10 {
		t.Errorf("the user's own preexec ran %d times:\n%s", n, term.screen())
	}
}

// TestFishSnippet uses what fish alone has.
func TestFishSnippet(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, "fish", `
abbr -a foo 'touch ran; cat secret'
abbr -a same same
abbr -a hi 'echo ex''panded'`)
	term.tmux("send-keys", "-l", "hi")
	term.press("Enter")
	term.waitFor("ready> echo ex")
	term.press("Enter")
	term.waitFor("expanded")
	term.settle()
	term.tmux("send-keys", "-l", "foo")
	term.press("Enter")
	term.waitFor("ready> touch ran; cat secret")
	term.blocked("")
	term.tmux("send-keys", "-l", "true; foo")
	term.press("Enter", "Enter")
	term.waitFor("true; touch ran; cat secret'")
	term.keys("set -g fish_key_bindings fish_vi_key_bindings")
	term.settle()
	term.blocked("touch ran; cat secret")
	term.tmux("send-keys", "-l", "touch ran; cat secret")
	term.press("Escape")
	time.Sleep(600 * time.Millisecond)
	term.press("Enter")
	term.keys("set -g fish_key_bindings fish_default_key_bindings")
	term.settle()
	term.paste("echo pas''ted-3\ntouch ran; cat secret")
	term.settle()
	term.allowed("echo hist''ory", "history")
	if term.ran() || !term.history("echo hist''ory") {
		t.Errorf("the history is not what ran:\n%s", term.screen())
	}
}

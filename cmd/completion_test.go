package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletion completes half-typed lines in the shells themselves.
func TestCompletion(t *testing.T) {
	drivers := map[string]string{
		"bash": `compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shield; printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh": `compdef() { :; }; _files() { :; }; compadd() { shift; print -l -- "$@"; }; source $1; shift; words=("$@"); CURRENT=$#
			_shield; typeset -i n=$#; true`,
		"fish": `source $argv[1]; complete -C (string join ' ' -- $argv[2..-1]) | string split -f 1 \t`,
	}
	for _, shell := range shellCompletionGenerators {
		t.Run(shell.shell, func(t *testing.T) {
			program, err := exec.LookPath(shell.shell)
			if err != nil {
				t.Skip(err)
			}
			file := filepath.Join(t.TempDir(), shell.file)
			status, text, errs := run(t, newWorld(t), "", "completion", shell.shell)
			if status != 0 {
				t.Fatal(errs)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for line, want := range map[string]string{
				"shield pol":                            "policy",
				"shield policy ch":                      "check",
				"shield run --unt":                      "--until",
				"shield run --until ev":                 "evaluate",
				"shield run --policy off":               "offline",
				"shield run --config x --until ":        "classify",
				"shield policy check --root x --color ": "never",
				"shield hook install --sc":              "--scope",
			} {
				args := []string{"-c", drivers[shell.shell], "x", file}
				if shell.shell == "fish" {
					args = []string{"--no-config", "-c", drivers[shell.shell], file}
				}
				cmd := exec.Command(program, append(args, strings.Split(line, " ")...)...)
				cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
				out, err := cmd.CombinedOutput()
				if err != nil || !slices.Contains(strings.Split(string(out), "\n"), want) {
					t.Errorf("%q: %v, %q does not hold %q", line, err, out, want)
				}
			}
		})
	}
}

// TestValuedFlags holds what completion rests on: it knows of each flag of a command
// whether it takes a value, also where another command has a switch of that name.
func TestValuedFlags(t *testing.T) {
	w := newWorld(t)
	commands := shellCompletionCommands(newApp(&w))
	all, some := joinValueTakingFlagNames(commands)
	for _, c := range commands {
		for _, f := range c.flags {
			everywhere := slices.Contains(strings.Fields(all), "--"+f.name)
			here := strings.Contains(some, "|"+c.commandPath+" --"+f.name+"|")
			if f.takesValue != (everywhere || here) {
				t.Errorf("%s --%s takes a value: %v; completion: %v", c.commandPath, f.name, f.takesValue, !f.takesValue)
			}
		}
	}
}

func TestDidYouMean(t *testing.T) {
	w := newWorld(t)
	for line, want := range map[string]string{
		"plicy":                       `unknown command "plicy"; did you mean "policy"?`,
		"rules shwo":                  `did you mean "show"?`,
		"run --polcy x":               `unknown flag --polcy; did you mean "--policy"?`,
		"rules show git_force_psh":    `did you mean "git_force_push"?`,
		"rules list --category dscvy": `unknown category "dscvy"; known are `,
	} {
		status, out, errs := run(t, w, "", strings.Fields(line)...)
		if status == 0 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q; want %q", line, status, out, errs, want)
		}
	}
}

func TestRuleByName(t *testing.T) {
	w := newWorld(t)
	_, want, _ := run(t, w, "", "rules", "show", "XP-013")
	for _, name := range []string{"xp-013", "git_force_push", "GIT_FORCE_PUSH"} {
		if status, out, errs := run(t, w, "", "rules", "show", name); status != 0 || out != want {
			t.Errorf("%s: status %d, %s\n%s", name, status, errs, out)
		}
	}
}

package shell

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// guardPlace is a home folder with a module of shield's name, and one that is a project.
func guardPlace(files map[string]string) *effect.PathContext {
	return &effect.PathContext{
		CWD: "/home/me/app", Home: "/home/me", WorkspaceRoots: []string{"/home/me/app"},
		ResolveLinks: func(p string) string {
			if to, ok := files["link "+p]; ok {
				return to
			}
			return p
		},
		ReadScript: func(p string) ([]byte, error) {
			if text, ok := files[p]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
	}
}

// guards says whether a command acts on the guard: surely, maybe or not.
func guards(command string, at *effect.PathContext) string {
	found := "no"
	for _, e := range Analyze(command, at).Effects {
		switch {
		case e.KindForPolicies() == effect.TamperWithShield && e.Certainty != effect.Possible:
			return "sure"
		case e.KindForPolicies() == effect.TamperWithShield:
			found = "maybe"
		}
	}
	return found
}

// TestGuardWords holds that a word of shield's which is not known to be harmless is one that
// changes the guard, whatever carries it.
func TestGuardWords(t *testing.T) {
	t.Parallel()
	at := guardPlace(map[string]string{
		"/home/me/src/guard/go.mod": "module github.com/shieldcli/shield // x\n",
		"/home/me/app/go.mod":       "module example.com/app\n",
		"link /home/me/app/q":       "/home/me/.local/bin/shield",
	})
	words := []string{
		"", "allow 3f2", "frobnicate", "rules", "rules show XP-001", "policy check x.yaml", "hook claude-code", "hook status",
		"exec -- ls", "mcp -- ls", "--config x allow y", "--version allow x", "rules show list", "doctor", "audit tail", "--help=false allow",
	}
	for _, w := range words {
		for _, program := range []string{
			"shield", `\shield`, "'shi''eld'", "shield.exe", "/usr/local/bin/shield", "~/.local/bin/shield", "./shield", "/opt/x/shield", `"$HOME/bin/shield"`, "./q",
			"$(which shield)", "`command -v shield`", "go run github.com/shieldcli/shield", "go run github.com/shieldcli/shield/v2@latest",
			"go run ../src/guard", "go run ../src/guard/main.go", "go -C ~/src/guard run .", "cd ../src/guard && go run .",
		} {
			if got := guards(program+" "+w, at); got != "sure" {
				t.Errorf("%s %s: %s", program, w, got)
			}
		}
	}
	for _, carrier := range []string{
		"env %s", "X=1 %s", "timeout 5 %s", "nohup %s &", "setsid %s", "sudo %s", "echo y | xargs %s", "find . -exec %s {} \\;", "sh -c '%s'", `bash -lc "%s"`,
		"ssh localhost %s", "ssh localhost '%s'", "tmux send-keys '%s' Enter", "tmux send -t dev -l '%s'", "tmux new-session -d '%s'", "tmux set-buffer '%s'",
		"screen -S a -X stuff '%s'", "screen -dmS a %s", "script -qc '%s' /dev/null", "zellij action write-chars '%s'", "zellij run -- %s", "dtach -n /tmp/a %s",
		"echo '%s' | at now", "at now <<< '%s'", "echo '* * * * * %s' | crontab -", "systemd-run --user %s", "watch %s",
		`python3 -c "import os; os.system('%s')"`, `node -e "require('child_process').execSync('%s')"`, `perl -e 'system("%s")'`,
		"git -c alias.x='!%s' x", "make -f - <<< 'all: ; %s'", "exec %s", "alias q='%s'; q", "f() { shield \"$@\"; }; f allow x # %s", "x=$(%s)", "cat <(%s)",
		"parallel %s ::: a", "strace %s", "nice -n 5 %s", "docker exec app %s", "trap '%s' EXIT", "eval '%s'", "if true; then %s; fi", "tmux send-keys s hield Space allow Enter # %s",
	} {
		command := strings.Replace(carrier, "%s", "shield allow x", 1)
		if got := guards(command, at); got != "sure" {
			t.Errorf("%s: %s", command, got)
		}
	}
	for file, text := range map[string]string{
		"/home/me/app/.git/hooks/pre-commit": "#!/bin/sh\nshield allow x\n",
		"/etc/cron.d/x":                      "* * * * * me shield allow x\n",
		"/home/me/.bashrc":                   "shield allow x\n",
	} {
		found := false
		for _, e := range AnalyzeWrittenFile(file, text, at) {
			found = found || e.KindForPolicies() == effect.TamperWithShield
		}
		if !found {
			t.Errorf("%s: writing it is not a change of the guard", file)
		}
	}
	for _, command := range []string{
		"cp ~/go/bin/shield x", "ln -s ~/.local/bin/shield x", "ln /usr/bin/shield /tmp/y", "mv ~/.local/bin/shield ~/old", "install -m 755 $(command -v shield) x",
	} {
		if got := guards(command, at); got != "sure" {
			t.Errorf("%s: %s", command, got)
		}
	}
	for _, command := range []string{
		"shield --version", "shield --help", "shield help", "shield help hook", "shield rules list", "shield rules list --json", "~/.local/bin/shield --version",
		"go run ../src/guard --help", "go run .", "go run ./cmd/server", "go run main.go allow x", "go run example.com/shields allow x",
		"cd ../src/guard && go test ./... && go build .", "which shield", "command -v shield", "ls -l ~/go/bin/shield",
		"tmux send-keys -t dev 'npm run dev' Enter", "tmux send-keys 'echo shield' Enter", "git commit -m 'shield allow x: new command'",
		"echo 'run shield allow 3f2'", "grep -rn 'shield allow' docs", "./shields allow x", "cp bin/shield dist/tool", "cp -r docs/shield docs/x",
		"python3 -c \"print('shield allow x')\"", "screen -ls", "screen -r a", "tmux ls",
	} {
		if got := guards(command, at); got != "no" {
			t.Errorf("%s: %s", command, got)
		}
	}
}

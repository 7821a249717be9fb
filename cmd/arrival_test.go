package cmd

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
)

// TestUserReachable holds where a user can learn of a question on the page.
func TestUserReachable(t *testing.T) {
	const desktop = "DBUS_SESSION_BUS_ADDRESS=unix:path=/x DISPLAY=:0"
	for _, c := range []struct {
		name, env, host string
		args            []string
		why             string // "" if one can
	}{
		{"a desktop", desktop, "codex", nil, ""},
		{"a desktop, without a host", desktop, "", nil, ""},
		{"neither", "", "", nil, "no terminal and no desktop"},
		{"a build server with a desktop", desktop + " CI=true", "codex", nil, "CI is set"},
		{"a variable that says no", desktop + " CI=false", "codex", nil, ""},
		{"a host that says that it has no user", desktop + " CLAUDE_CODE_SESSION_ATTENDED=0", "claude-code", nil, "Claude Code runs without a user"},
		{"a host with a prompt", desktop, "claude-code", []string{"-p", "x"}, "without a user"},
		{"a subcommand without a user", desktop, "codex", []string{"exec", "x"}, "without a user"},
		{"other options", desktop, "codex", []string{"--model", "x"}, ""},
	} {
		w := newWorld(t)
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		w.Getenv = func(name string) string { return env[name] }
		w.OS, w.verdictRequesterPID = "linux", 1
		w.isUserSessionDBusAddress = func(string) bool { return true }
		w.findRunningHost = func(*Environment, *host.Host) (*host.HostProcess, error) { return &host.HostProcess{Args: c.args}, nil }
		if c.host != "" {
			h, err := host.Named(c.host)
			if err != nil {
				t.Fatal(err)
			}
			w.callingHost = h
		}
		err := checkUserCanBeNotified(&w, c.host != "")
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestArrival holds what is said about how the questions of hosts reach their users.
func TestArrival(t *testing.T) {
	for _, c := range []struct {
		name, host string
		approval   config.Approval
		env        string
		says       string
		fails      bool
	}{
		{"its own prompt", "claude-code", config.Approval{Channels: config.ApprovalChannels{"auto"}}, "", "Questions: asked in Claude Code's own prompt, and on the approval page where", false},
		{"the page", "codex", config.Approval{Channels: config.ApprovalChannels{"auto"}}, "", "Questions: asked on the approval page; no desktop notification can be shown here", false},
		{"a build server", "codex", config.Approval{Channels: config.ApprovalChannels{"auto"}}, "CI", "Questions cannot be asked: the variable CI is set", true},
		{"a build server that waits", "codex", config.Approval{Channels: config.ApprovalChannels{"auto"}, UnattendedDenyOrWait: "wait 10m"}, "CI", "where they wait for 10m", false},
		{"a terminal", "codex", config.Approval{Channels: config.ApprovalChannels{"tty"}}, "", "Questions cannot be asked: a hook has no terminal", true},
		{"the host, which does not ask", "droid", config.Approval{Channels: config.ApprovalChannels{"host"}}, "", "Questions cannot be asked: in tests, Factory Droid did not wait", true},
		{"no channel, which is chosen", "codex", config.Approval{}, "", "Questions cannot be asked: approval.channels is empty; set approval.channels: auto", false},
	} {
		w := newWorld(t)
		w.Getenv = func(name string) string {
			if name == c.env {
				return "1"
			}
			return ""
		}
		h, err := host.Named(c.host)
		if err != nil {
			t.Fatal(err)
		}
		set := &config.LoadedSettings{Settings: config.Default(), OriginBySetting: map[string]string{}}
		set.Approval = c.approval
		a := questionRouteOf(&w, set, h)
		if !strings.HasPrefix(a.String(), c.says) && !strings.Contains(a.String(), c.says) || (a.checkReachable() != nil) != c.fails {
			t.Errorf("%s: %s, %v", c.name, a, a.checkReachable())
		}
	}
}

package cmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/config"
)

// TestFirstBus holds that the bus of notifications is the one that the user's session had
// before a host, or a command of an agent, was given another.
func TestFirstBus(t *testing.T) {
	t.Parallel()
	for chain, want := range map[string]string{
		"":                      "",
		"- - -":                 "",
		"unix:a unix:a -":       "unix:a",
		"unix:evil unix:a -":    "unix:a", // the nearest process first
		"unix:evil - unix:a":    "unix:a",
		"unix:evil ? ?":         "unix:evil", // nothing above shows another
		"unix:evil ? unix:a ?":  "unix:a",
		"unix:a:unix:b unix:a ": "unix:a",
	} {
		words := strings.Fields(chain)
		var all []ancestry.Process
		for i := range words {
			all = append(all, ancestry.Process{PID: i})
		}
		got := sessionBusOfTopmostAncestor(all, func(pid int) ([]string, error) {
			switch words[pid] {
			case "?":
				return nil, errors.New("another user")
			case "-":
				return []string{"A=b", sessionBusVariable + "="}, nil
			}
			return []string{"A=b", sessionBusVariable + "=" + words[pid]}, nil
		})
		if got != want {
			t.Errorf("%s: %q, want %q", chain, got, want)
		}
	}
}

// TestForeignBus holds that no question is announced on a bus that a project named.
func TestForeignBus(t *testing.T) {
	t.Parallel()
	w := &Environment{Getenv: func(name string) string {
		return map[string]string{sessionBusVariable: "unix:path=/tmp/evil", "DISPLAY": ":0"}[name]
	}, isUserSessionDBusAddress: func(value string) bool { return value != "unix:path=/tmp/evil" }, Environ: func() []string { return nil }}
	if w.getenvExceptUntrustedDBus(sessionBusVariable) != "" || w.getenvExceptUntrustedDBus("DISPLAY") != ":0" {
		t.Errorf("the bus is %q", w.getenvExceptUntrustedDBus(sessionBusVariable))
	}
	if o := approvalOptions(&config.LoadedSettings{}, w, "exec"); o.Getenv(sessionBusVariable) != "" || o.UserCannotNoticePageReason() == nil {
		t.Error("a question is announced on the bus of a project")
	}
}

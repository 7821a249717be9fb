package approve

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestAuto holds where a question is asked if the settings leave that to shield, and that
// no one is asked where no user can learn of it.
func TestAuto(t *testing.T) {
	t.Parallel()
	yes, no := func() error { return nil }, func() error { return errors.New("no user here") }
	for _, c := range []struct {
		name       string
		hosted     bool
		host       func() error
		reachable  func() error
		unattended string
		channels   string // those asked
		patience   time.Duration
		why        string
	}{
		{"a host that asks", true, yes, yes, "", "host", time.Minute, ""},
		{"a host that asks, and no other way", true, yes, no, "", "host", time.Minute, ""},
		{"a host that does not", true, no, yes, "", "web", time.Minute, ""},
		{"nobody", true, no, no, "", "", 0, "no user here"},
		{"nobody, explicitly denied", true, no, no, "deny", "", 0, "no user here"},
		{"nobody, and it waits", true, no, no, "wait 10m", "web", 10 * time.Minute, ""},
		{"somebody, whose answer is not waited for longer", true, no, yes, "wait 10m", "web", time.Minute, ""},
		{"no hook, nobody", false, nil, no, "", "", 0, "tty: "},
		{"no hook, a desktop", false, nil, yes, "", "web", time.Minute, ""},
		{"no hook, but the host of another is claimed", false, yes, no, "", "", 0, "tty: "},
	} {
		a, err := New(Options{
			Store: &memory{}, RememberedAnswerKey: testBinding, StateDir: t.TempDir(), SharesParentTerminal: c.hosted, HostCannotAskReason: c.host, UserCannotNoticePageReason: c.reachable,
			Approval: config.Approval{Channels: config.ApprovalChannels{config.AutoChannels}, Timeout: config.Duration(time.Minute), UnattendedDenyOrWait: c.unattended},
		})
		if err != nil {
			t.Fatal(err)
		}
		a.channels = replaceTTY(a.channels)
		usable, patience, why := a.channelsToAsk(false)
		var names []string
		for _, ch := range usable {
			names = append(names, ch.Name())
		}
		if strings.Join(names, ",") != c.channels || c.channels != "" && patience != c.patience || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v for %v, %q", c.name, names, patience, why)
		}
		if c.channels == "" {
			if v, err := a.Judge(t.Context(), command1(t, push, "s")); err != nil || v.Decision != verdict.Block || v.ErrorCode != "nobody" {
				t.Errorf("%s: %+v, %v", c.name, v, err)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := New(Options{Approval: config.Approval{UnattendedDenyOrWait: "wait"}}); err == nil {
		t.Error("a wait without a duration is accepted")
	}
}

// replaceTTY puts a terminal that is missing in the place of the real one, which the test
// may have or not.
func replaceTTY(list []ApprovalChannel) []ApprovalChannel {
	for i, ch := range list {
		if ch.Name() == "tty" {
			list[i] = &fake{name: "tty", broken: errors.New("no terminal"), say: func(context.Context, *Request) (Answer, error) { return Answer{}, nil }}
		}
	}
	return list
}

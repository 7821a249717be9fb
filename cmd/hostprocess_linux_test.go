package cmd

import (
	"os"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// TestUnknownAncestors holds that a host is not known to run with a user at its terminal
// where the processes that have started shield cannot be read.
func TestUnknownAncestors(t *testing.T) {
	t.Parallel()
	h, err := host.Named("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []int{1 << 30, 0, -1} {
		if r, err := runningHost(&Environment{verdictRequesterPID: parent}, h); err == nil || r != nil {
			t.Errorf("process %d: %+v, %v", parent, r, err)
		}
	}
	if r, err := runningHost(&Environment{verdictRequesterPID: os.Getpid()}, h); r != nil && err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

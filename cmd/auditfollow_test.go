package cmd

import (
	"context"
	"io"
	"strings"
	"testing"
)

// A follower takes lines, and does something when one has come.
type follower struct {
	lines []string
	then  func(n int)
}

func (f *follower) Write(p []byte) (int, error) {
	f.lines = append(f.lines, string(p))
	f.then(len(f.lines))
	return len(p), nil
}

// What is judged while the log is exported is exported, too.
func TestExportFollows(t *testing.T) {
	w := newWorld(t)
	judge := func() { run(t, w, `{"type":"read_file","payload":{"path":"a"}}`, "run", "--until", "policy") }
	judge()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &follower{then: func(n int) {
		switch n {
		case 1:
			judge()
		case 2:
			cancel()
		}
	}}
	following := w
	following.Out, following.Err = out, io.Discard
	if status := Run(ctx, []string{"audit", "export", "--follow", "--format", "cef"}, following); status != 0 {
		t.Errorf("status %d", status)
	}
	if len(out.lines) != 2 || !strings.Contains(out.lines[1], "externalId=2 ") {
		t.Errorf("got %q", out.lines)
	}
}

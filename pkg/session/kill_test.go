package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/reexec"
	"github.com/shieldcli/shield/pkg/state"
)

func TestMain(m *testing.M) { reexec.Main(m, child) }

// child adds a label to the session with the ID of its folder's name, says so, and
// waits to be killed.
func child(dir string) error {
	w := newWorld()
	file, err := state.Open(filepath.Dir(dir), state.Options{Clock: func() time.Time { return w.now }})
	if err != nil {
		return err
	}
	s, ctx := NewStore(file, w.options()), context.Background()
	id := filepath.Base(dir)
	memory := s.Load(ctx, Key{"host", id, "me"}, Lineage{}, "")
	label, _ := strconv.Atoi(id)
	if err := s.Add(ctx, memory, &RecordDelta{Labels: []SessionTaintLabel{{Label: SessionLabelsInDisplayOrder[label%len(SessionLabelsInDisplayOrder)], EffectOrActionType: "x"}}}); err != nil {
		return err
	}
	fmt.Println("kept")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// What is added is on the disk when Add returns: a process that is killed right
// after loses nothing.
func TestKill(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), newWorld()
	for i := range 2 {
		cmd := reexec.Command(t, filepath.Join(dir, strconv.Itoa(i)))
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err := errors.Join(err, cmd.Process.Kill()); err != nil || line != "kept\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_ = cmd.Wait() // it was killed
	}
	s := NewStore(openState(t, dir, w), w.options())
	for id, want := range map[string]string{"0": "[secret]", "1": "[private]"} {
		if got := labels(t, s, Key{"host", id, "me"}); got != want {
			t.Errorf("session %s: labels %s, want %s", id, got, want)
		}
	}
}

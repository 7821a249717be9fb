package modelstore

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/reexec"
)

// The test binary runs itself as the process that is to be killed: with the
// store and the source, a line each.
func TestMain(m *testing.M) {
	reexec.Main(m, func(arg string) error {
		store, source, _ := strings.Cut(arg, "\n")
		_, err := Open(store, nil, clock).Install(context.Background(), source, InstallOptions{ReplacesInstalledModel: true, CheckModelFolder: func(dir string) error {
			fmt.Println(dir)
			time.Sleep(time.Hour) // until it is killed
			return nil
		}})
		return fmt.Errorf("installed before it was killed: %v", err)
	})
}

// TestKilledPull holds that a process that dies with a model half installed
// leaves what was there before, and does not block others.
func TestKilledPull(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	kill := func(source string) {
		t.Helper()
		puller := reexec.Command(t, s.dir+"\n"+source)
		out, err := puller.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := puller.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.Contains(line, unfinishedModelFolderPrefix) {
			t.Errorf("it printed %q, error %v; want the folder it works in", line, err)
		}
		if err := puller.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = puller.Wait() // it was killed
	}
	kill(folder(t, plain()))
	if list, err := s.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("half a model shows: %+v, error %v", list, err)
	}
	if _, err := s.Install(t.Context(), folder(t, plain()), InstallOptions{}); err != nil {
		t.Errorf("a killed pull is in the way: %v", err)
	}
	kill(folder(t, with(map[string]string{"model.onnx": "other"})))
	if got := weights(t, s); got != "weights" {
		t.Errorf("weights %q, want those of before", got)
	}
	if names, err := s.Names(); !slices.Equal(names, []string{"tiny"}) || err != nil {
		t.Errorf("%q, error %v", names, err)
	}
	s.clock = func() time.Time { return time.Now().Add(25 * time.Hour) }
	s.cleanUpInterruptedInstalls()
	if left := seen(t, s); !slices.Equal(left, []string{"tiny"}) {
		t.Errorf("the store has %q", left)
	}
}

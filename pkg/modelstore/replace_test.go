package modelstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestReplaceInTwoSteps is for systems where two folders cannot change places.
func TestReplaceInTwoSteps(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, name := range []string{"tiny", "work"} {
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name, "model.onnx"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A process died between the steps: the model gets its place back.
	if err := os.Rename(filepath.Join(s.dir, "tiny"), filepath.Join(s.dir, replacedModelFolderPrefix+"tiny")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find("tiny"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	s.cleanUpInterruptedInstalls()
	if got := weights(t, s); got != "tiny" {
		t.Errorf("weights %q, want those of before", got)
	}
	if err := s.replaceModel(filepath.Join(s.dir, "work"), "tiny"); err != nil {
		t.Fatal(err)
	}
	if got := weights(t, s); got != "work" {
		t.Errorf("weights %q, want the new ones", got)
	}
	// A process died after the steps: the old model goes.
	if err := os.MkdirAll(filepath.Join(s.dir, replacedModelFolderPrefix+"tiny", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.cleanUpInterruptedInstalls()
	if left := seen(t, s); !slices.Equal(left, []string{"tiny"}) || weights(t, s) != "work" {
		t.Errorf("the store has %q", left)
	}
}

func TestOldWorkIsRemoved(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for name, age := range map[string]time.Duration{unfinishedModelFolderPrefix + "old": 25 * time.Hour, unfinishedModelFolderPrefix + "young": time.Hour} {
		dir := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Join(dir, "m"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, clock(), clock().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Install(t.Context(), folder(t, plain()), InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := seen(t, s); !slices.Equal(left, []string{unfinishedModelFolderPrefix + "young", "tiny"}) {
		t.Errorf("the store has %q", left)
	}
	if names, err := s.Names(); !slices.Equal(names, []string{"tiny"}) || err != nil {
		t.Errorf("names %q, error %v", names, err)
	}
}

// TestManyPull holds that of those who pull the same name one wins, and that
// anyone who looks meanwhile sees a whole model or none.
func TestManyPull(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		s := newStore(t)
		sources := []string{folder(t, plain()), folder(t, with(map[string]string{"model.onnx": "other"}))}
		stop := make(chan struct{})
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			for {
				select {
				case <-stop:
					return
				default:
				}
				list, err := s.List(context.Background())
				if err != nil || len(list) > 1 {
					t.Errorf("%+v, error %v", list, err)
				}
			}
		}()
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for i := range 8 {
			wg.Go(func() {
				_, err := s.Install(t.Context(), sources[i%2], InstallOptions{ReplacesInstalledModel: force})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.Is(err, ErrExists) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		close(stop)
		<-looked
		if want := map[bool]int{false: 1, true: 8}[force]; won != want {
			t.Errorf("force %v: %d won, want %d", force, won, want)
		}
		if _, problems, err := s.DigestAndManifestDifferences(t.Context(), "tiny"); problems != nil || err != nil {
			t.Errorf("%q, error %v", problems, err)
		}
		if left := seen(t, s); !slices.Equal(left, []string{"tiny"}) {
			t.Errorf("the store has %q", left)
		}
	}
}

// TestReplaceLeavesNoGap holds that a model is there all the time while it is
// replaced, where the system lets two folders change places.
func TestReplaceLeavesNoGap(t *testing.T) {
	t.Parallel()
	if err := swapPaths(t.TempDir(), t.TempDir()); err != nil {
		t.Skip("folders cannot change places here: ", err)
	}
	s := newStore(t)
	source := folder(t, plain())
	if _, err := s.Install(t.Context(), source, InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			if _, err := s.Install(t.Context(), source, InstallOptions{ReplacesInstalledModel: true}); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, err := os.Lstat(filepath.Join(s.dir, "tiny")); err != nil {
			t.Error(err)
			<-done
			return
		}
	}
}

// TestCommitWaits holds that of two who change the store one waits.
func TestCommitWaits(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	if err := s.createPrivateStoreFolder(); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.lockStore()
	if err != nil {
		t.Fatal(err)
	}
	checked, done := make(chan struct{}), make(chan error, 1)
	source := folder(t, plain())
	go func() {
		_, err := s.Install(t.Context(), source, InstallOptions{CheckModelFolder: func(string) error { close(checked); return nil }})
		done <- err
	}()
	<-checked
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
		done <- err
	case <-time.After(100 * time.Millisecond):
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

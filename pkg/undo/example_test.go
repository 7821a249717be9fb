//go:build unix

package undo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/shieldcli/shield/pkg/undo"
)

func Example() {
	dir, err := os.MkdirTemp("", "undo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		fmt.Println(err)
		return
	}
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("all that I know\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	s, ctx := undo.New(undo.Options{Dir: filepath.Join(dir, "kept"), Clock: time.Now}), context.Background()
	set, err := s.BackUpFiles(ctx, undo.UndoableAction{Description: "rm notes.txt"}, []undo.FileLoss{{Path: notes}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(os.Remove(notes))
	results, _, err := s.RestoreBackupSet(ctx, set.ID, nil, false)
	fmt.Println(results[0].Outcome, err)
	text, err := os.ReadFile(notes)
	fmt.Print(string(text), err)
	// Output:
	// <nil>
	// restored <nil>
	// all that I know
	// <nil>
}

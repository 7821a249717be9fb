//go:build !unix

package undo

import (
	"context"
	"errors"
)

// BackUpFiles keeps nothing on this system.
func (s *Store) BackUpFiles(context.Context, UndoableAction, []FileLoss) (*BackupSet, error) {
	return nil, &BackupError{Why: "'shield undo' does not work on this system, so the user must confirm the loss"}
}

// RestoreBackupSet restores nothing on this system.
func (s *Store) RestoreBackupSet(context.Context, string, []string, bool) ([]RestoreResult, *BackupSet, error) {
	return nil, nil, errors.ErrUnsupported
}

// RecordFilesAfterAction records nothing on this system.
func (s *Store) RecordFilesAfterAction(context.Context, string, string) (*BackupSet, error) {
	return nil, nil
}

func totalFileSystemBytes(string) int64 { return 0 }

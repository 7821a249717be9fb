//go:build !unix

package undo

import (
	"context"
	"errors"
)

// Keep keeps nothing on this system.
func (s *Store) Keep(context.Context, ActionInfo, []FileLoss) (*Set, error) {
	return nil, &KeepError{Why: "'shield undo' does not work on this system, so the user must confirm the loss"}
}

// Apply restores nothing on this system.
func (s *Store) Apply(context.Context, string, []string, bool) ([]Result, *Set, error) {
	return nil, nil, errors.ErrUnsupported
}

// Ended records nothing on this system.
func (s *Store) Ended(context.Context, string, string) (*Set, error) { return nil, nil }

func diskSize(string) int64 { return 0 }

package state

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Repair replaces a damaged or missing state file in dir, and reports whether
// it did: a file that can be read is left alone. The damaged one is kept beside
// it. seq and hash are the last entry of the audit log, 0 and "" if there is
// none.
//
// What was used is not known any more, so everything counts as used: the
// budget until the next midnight, the rate for a minute, approvals for an
// hour. Losing the state is then no way to get more out of it.
func Repair(ctx context.Context, dir string, opts Options, seq uint64, hash string) (bool, error) {
	opts.Used = func() (string, error) { return "it is being repaired", nil } // and not created as on first use
	s, err := Open(dir, opts)
	if err != nil {
		return false, err
	}
	_, err = s.Status(ctx, Limits{})
	s.Close()
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVanished) {
		return false, err
	}
	old := newBoltFile(dir, s.opts)
	defer old.close()
	if err := old.acquire(); err != nil {
		return false, err
	}
	aside := old.path + ".damaged-" + opts.Clock().UTC().Format("20060102T150405.000000000")
	if err := os.Rename(old.path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("repair state: %w", err)
	}
	rec := new(record)
	rec.advance(old.now())
	rec.Used = usedUp
	rec.RateFrom = rec.Now + rateWindow
	rec.AskFrom = rec.Now + askWindow
	if err := create(old.path, rec); err != nil {
		return false, err
	}
	if err := old.release(); err != nil {
		return false, err
	}
	fixed, err := Open(dir, opts)
	if err != nil {
		return false, err
	}
	defer fixed.Close()
	return true, fixed.AdvanceHead(ctx, func(uint64, string) (uint64, string, error) { return seq, hash, nil })
}

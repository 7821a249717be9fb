package state

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Repair replaces a state file in dir that is damaged, missing or written by a newer shield, and
// restarts a shared store that was emptied or set back. It reports whether it did either;
// other state is not changed. The old file is kept beside the new one. seq and hash are the last entry
// of the audit log, 0 and "" if there is none.
//
// Since the used part of the limits is lost, everything counts as used: the budget until the next
// midnight, the rate for a minute, approvals for an hour. Deleting the state therefore frees no
// limits. A shared store that another machine has restarted is used as it is.
func Repair(ctx context.Context, dir string, opts Options, seq uint64, hash string) (bool, error) {
	opts.Used = func() (string, error) { return "shield is repairing it", nil } // not a first use, so limits count as used
	done, err := repairFile(ctx, dir, opts, seq, hash)
	if err != nil || opts.Remote == nil {
		return done, err
	}
	s, err := Open(dir, opts)
	if err != nil {
		return done, err
	}
	defer s.Close()
	err = s.values.look(ctx, func(*tx) error { return nil })
	if errors.Is(err, ErrReset) || errors.Is(err, ErrCorrupt) {
		return true, s.values.medium.(*remote).repair(ctx)
	}
	return done, err
}

func repairFile(ctx context.Context, dir string, opts Options, seq uint64, hash string) (bool, error) {
	opts.Remote = nil
	s, err := Open(dir, opts)
	if err != nil {
		return false, err
	}
	_, _, err = s.Head(ctx)
	s.Close()
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVanished) && !errors.Is(err, ErrNewer) {
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
	if err := create(old.path, spent(old.now())); err != nil {
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
	if err := fixed.head.reset(ctx, seq, hash); err != nil {
		return true, err
	}
	if err := fixed.file.read(ctx, fixed.head.ensure); err != nil {
		return true, err
	}
	return true, old.restampAll() // cached data of the old file is invalid
}

// spent returns limits that are used up.
func spent(now instant) *record {
	rec := new(record)
	rec.advance(now)
	rec.Used = usedUp
	rec.RateFrom = rec.Now + rateWindow
	rec.AskFrom = rec.Now + askWindow
	return rec
}

// repair accepts a store that another machine has restarted, and restarts one that was emptied or set
// back: with an epoch far ahead of what any machine has seen, so that the others need no repair.
func (r *remote) repair(ctx context.Context) error {
	old, seen, merr := r.mirror.read()
	v := &remoteView{of: r, ctx: ctx, seen: map[place]*remoteHash{}}
	if _, err := v.begin(epoch{}, false, nil); err != nil {
		return err
	}
	if v.raw == "" || seen && merr == nil && v.epoch.store == old.store {
		if seen && merr == nil {
			v.epoch = epoch{old.store, max(old.count, v.epoch.count)}
		}
		v.epoch.count += repairEpochStep
		if err := v.drop(cachePlace); err != nil { // it may contain approvals that were already used
			return err
		}
		if err := v.put(limitsPlace, recordKey, spent(v.at).encode()); err != nil {
			return err
		}
		if done, err := v.commit(); err != nil {
			return err
		} else if !done {
			return &Error{Kind: ErrAway, Path: r.address, Err: errors.New("another machine wrote to the store at the same time; try again")}
		}
	}
	return r.mirror.write(v.epoch, true)
}

package state

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// RepairIfDamaged replaces a state file in dir that is damaged, missing or written by a newer
// shield, and restarts a shared store that was emptied or set back. It reports whether it did
// either; other state is not changed. The old file is kept beside the new one. lastAuditSeq and
// lastAuditHash identify the last entry of the audit log; they are 0 and "" if there is none.
//
// Since the used part of the limits is lost, everything counts as used: the budget until the next
// midnight, the rate for a minute, approvals for an hour. Deleting the state therefore frees no
// limits. A shared store that another machine has restarted is used as it is.
func RepairIfDamaged(ctx context.Context, dir string, opts Options, lastAuditSeq uint64, lastAuditHash string) (bool, error) {
	opts.EvidenceOfEarlierStateFile = func() (string, error) { return "shield is repairing it", nil } // shows that a missing state file existed before, so the repair counts all limits as used
	done, err := repairLocalStateFile(ctx, dir, opts, lastAuditSeq, lastAuditHash)
	if err != nil || opts.Remote == nil {
		return done, err
	}
	s, err := Open(dir, opts)
	if err != nil {
		return done, err
	}
	defer s.Close()
	err = s.limitsAndNamespacesQueue.runReadOnly(ctx, func(*tx) error { return nil })
	if errors.Is(err, ErrStoreReset) || errors.Is(err, ErrCorrupt) {
		return true, s.limitsAndNamespacesQueue.backend.(*remoteBackend).repair(ctx)
	}
	return done, err
}

func repairLocalStateFile(ctx context.Context, dir string, opts Options, lastAuditSeq uint64, lastAuditHash string) (bool, error) {
	opts.Remote = nil
	s, err := Open(dir, opts)
	if err != nil {
		return false, err
	}
	_, _, err = s.AuditHead(ctx)
	s.Close()
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrStateFileMissing) && !errors.Is(err, ErrNewerStateFile) {
		return false, err
	}
	old := newBoltFile(dir, s.opts)
	defer old.close()
	if err := old.acquireLock(); err != nil {
		return false, err
	}
	aside := old.path + ".damaged-" + opts.Clock().UTC().Format("20060102T150405.000000000")
	if err := os.Rename(old.path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("repair state: %w", err)
	}
	if err := createStateFile(old.path, newExhaustedLimitRecord(old.now())); err != nil {
		return false, err
	}
	if err := old.releaseLock(); err != nil {
		return false, err
	}
	fixed, err := Open(dir, opts)
	if err != nil {
		return false, err
	}
	defer fixed.Close()
	if err := fixed.auditHeadFile.recreate(ctx, lastAuditSeq, lastAuditHash); err != nil {
		return true, err
	}
	if err := fixed.localStateFileQueue.runPossiblyWriting(ctx, fixed.auditHeadFile.ensureExists); err != nil {
		return true, err
	}
	return true, old.renewAllNamespaceRevisions() // cached data of the old file is invalid
}

// newExhaustedLimitRecord returns limits that are used up.
func newExhaustedLimitRecord(now clockReading) *limitRecord {
	rec := new(limitRecord)
	rec.advanceClock(now)
	rec.EvaluationsUsed = exhaustedEvaluationCount
	rec.RateBlockedUntil = rec.StoreClockUnixNano + rateWindow
	rec.ApprovalsBlockedUntil = rec.StoreClockUnixNano + approvalWindow
	return rec
}

// repair accepts a store that another machine has repaired, and repairs a store that was emptied or
// rolled back. A repair sets a transaction count far above any that a machine has seen, so that the
// other machines need no repair.
func (r *remoteBackend) repair(ctx context.Context) error {
	old, seen, merr := r.lastSeenIDAndTxCountFile.read()
	v := &remoteTransaction{remote: r, ctx: ctx, cachedBucketByPath: map[bucketPath]*cachedBucket{}}
	if _, err := v.readInitialValues(storeIDAndTxCount{}, false, nil); err != nil {
		return err
	}
	if v.sealedLimitRecord == "" || seen && merr == nil && v.storeIDAndTxCount.storeID == old.storeID {
		if seen && merr == nil {
			v.storeIDAndTxCount = storeIDAndTxCount{old.storeID, max(old.transactionCount, v.storeIDAndTxCount.transactionCount)}
		}
		v.storeIDAndTxCount.transactionCount += repairTxCountStep
		if err := v.dropBucket(cacheBucket); err != nil { // it may contain approvals that were already used
			return err
		}
		if err := v.put(limitsBucket, limitRecordKey, newExhaustedLimitRecord(v.clock).encode()); err != nil {
			return err
		}
		if done, err := v.commitUnlessConflict(); err != nil {
			return err
		} else if !done {
			return &Error{Kind: ErrSharedStoreUnreachable, Path: r.address, Err: errors.New("another machine wrote to the store at the same time; try again")}
		}
	}
	return r.lastSeenIDAndTxCountFile.write(v.storeIDAndTxCount, true)
}

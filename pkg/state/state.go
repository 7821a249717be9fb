// Package state stores what shield must remember between actions: the used part of the evaluator's rate and
// daily budget, approval requests of the last hour, verdicts that may be reused, and the head of the audit log
// (its last entry). The state is one file that many processes share, with the head in a second file beside it.
// [Open] returns the [Store] of a state folder. Each method of the store is one transaction that is on disk when
// the method returns, except for the head.
//
// # Time
//
// Limits are measured on the store's own clock, which starts as UTC and only moves forward, by the time passed
// between two transactions. Setting the system clock back therefore neither refills a limit early nor blocks it
// for longer, and correcting a clock that was wrong by years locks no one out. If [Options.BootIDAndUptime]
// returns the time since boot, setting the clock forward refills nothing either: the lesser time of both clocks
// counts. Without it, a jump of the wall clock is believed once.
//
// Each daily refill sets the time of the next refill: the first midnight that is at least 23 hours after the
// time at which the current refill was due. Changing the time zone later does not move the next refill, and
// changing zones repeatedly yields at most one refill in 23 hours.
package state

import (
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/shieldcli/shield/internal/owner"
)

// Names of files in the state folder.
const (
	stateFileName     = "state.db"
	stateLockFileName = "state.lock"
)

// Options are the clocks, the shared store and the other settings of a [Store].
type Options struct {
	Clock               func() time.Time // the wall clock; required
	BudgetResetLocation *time.Location   // time zone whose midnight refills the daily budget; nil is UTC

	// BootIDAndUptime returns an ID of this boot of the machine and the time since boot; ok is
	// false if they are unknown. nil means that only the wall clock is used.
	BootIDAndUptime func() (boot string, up time.Duration, ok bool)

	// EvidenceOfEarlierStateFile returns evidence that this installation was used before, such as "the audit log has
	// entries", or "". It is called only if the state file is missing: deleting the file must not free
	// used limits. nil treats a missing file as a first start.
	EvidenceOfEarlierStateFile func() (string, error)

	// Remote is a store that machines share; the file then holds only the head of the audit log. nil
	// stores everything in the file.
	Remote *SharedStoreServer

	// MaxFileLockWait is how long a transaction waits for other processes; 0 means [DefaultMaxFileLockWait].
	MaxFileLockWait time.Duration
}

// DefaultMaxFileLockWait is the default time that a transaction waits for other processes. Dozens of them can finish
// in that time.
const DefaultMaxFileLockWait = 10 * time.Second

// A Store is the state of one installation. Goroutines may share it; transactions that are ready at
// the same time share a commit.
type Store struct {
	opts                     Options
	localStateFileQueue      *transactionQueue // transactions on this machine's state file, which holds the head of the audit log
	auditHeadFile            auditHeadFile
	limitsAndNamespacesQueue *transactionQueue // transactions on limits, cache and namespaces; localStateFileQueue unless a store is shared
}

// Open returns the store in dir, and creates the folder (mode 0700) if necessary. The first
// transaction opens the state file.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Clock == nil {
		return nil, errors.New("internal error: the state file is opened without a clock; please report this")
	}
	if opts.BudgetResetLocation == nil {
		opts.BudgetResetLocation = time.UTC
	}
	opts.MaxFileLockWait = cmp.Or(opts.MaxFileLockWait, DefaultMaxFileLockWait)
	if err := checkStateFolderPermissions(dir); err != nil {
		return nil, err
	}
	bolt := newBoltFile(dir, opts)
	file := &transactionQueue{backend: bolt, budgetZone: opts.BudgetResetLocation}
	s := &Store{opts: opts, localStateFileQueue: file, auditHeadFile: auditHeadFile{path: filepath.Join(dir, auditHeadFileName), stateFile: bolt}, limitsAndNamespacesQueue: file}
	file.beforeCommit = s.auditHeadFile.recordHead
	if opts.Remote != nil {
		shared, err := newRemoteBackend(dir, opts.Remote, opts.Clock)
		if err != nil {
			return nil, err
		}
		s.limitsAndNamespacesQueue = &transactionQueue{backend: shared, budgetZone: opts.BudgetResetLocation}
	}
	return s, nil
}

// Close closes the files. It does not wait: what a running transaction uses stays open, and the kernel
// closes it when the process ends.
func (s *Store) Close() error {
	err := errors.Join(s.auditHeadFile.close(), s.localStateFileQueue.close())
	if s.limitsAndNamespacesQueue != s.localStateFileQueue {
		err = errors.Join(err, s.limitsAndNamespacesQueue.close())
	}
	return err
}

// checkStateFolderPermissions checks that no other user can replace files in the folder.
func checkStateFolderPermissions(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: err}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: err}
	}
	if !info.IsDir() {
		return &Error{Kind: ErrUnwritable, Path: dir, Err: errors.New("not a folder")}
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits); err != nil {
		return &Error{Kind: ErrStateAccessibleToOtherUsers, Path: dir, Err: err}
	}
	return nil
}

// uint64 keys and counters are stored big-endian.
var byteOrder = binary.BigEndian

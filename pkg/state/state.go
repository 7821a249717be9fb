// Package state keeps what shield must remember between actions: how much of
// the evaluator's rate and daily budget is used, how many approvals were asked
// for in the last hour, verdicts that may be reused, and the head of the audit
// log. It is one file that many processes share, with that head beside it; [Open] it,
// and each method is one transaction that is on the disk when the method returns,
// except for the head.
//
// # Time
//
// Limits are kept on the store's own clock, which starts as UTC and then only
// goes forward, by the time that passed between two transactions. Setting the
// system's clock back therefore neither refills a limit early nor blocks it
// longer than it would have lasted, and correcting a clock that was wrong by
// years locks no one out. Where [Options.Uptime] tells the time since boot,
// setting the clock forward refills nothing either: passed is the lesser of
// what both clocks say. Without it, time that a wrong clock claims has passed
// is believed, once.
//
// The daily budget refills at an instant that is computed when the budget
// before it refilled, as the next midnight, and at least 23 hours after the
// refill that was due then. Changing the time zone later does not move it, and
// hopping from zone to zone yields no more than one refill in 23 hours.
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

// Names of the files in the state folder.
const (
	fileName = "state.db"
	lockName = "state.lock"
)

// Options say how a [Store] sees the world around it.
type Options struct {
	Clock    func() time.Time // the wall clock; required
	Location *time.Location   // whose midnight refills the daily budget; nil is UTC

	// Uptime returns an identifier of this boot of the machine and the time
	// passed since; ok is false where that is unknown. It is [Uptime] outside
	// tests; nil trusts the wall clock alone.
	Uptime func() (boot string, up time.Duration, ok bool)

	// Used returns what shows that this installation was used before, such as
	// "the audit log has entries", or "". It is asked only when the state file is
	// missing: used limits must not be forgotten by removing it. nil takes a
	// missing file for a first start.
	Used func() (string, error)

	// Remote is a store that machines share. nil keeps everything in the file;
	// with it, only the head of the audit log is there.
	Remote *Remote

	// LockWait is how long a transaction waits for other processes; 0 means
	// [LockWait].
	LockWait time.Duration
}

// LockWait is how long a transaction waits for other processes unless told
// otherwise. Dozens of them finish their turns in that time.
const LockWait = 10 * time.Second

// A Store is the state of one installation. Goroutines may share it, and
// transactions that are ready together are committed together.
type Store struct {
	opts   Options
	file   *queue // what belongs to this machine: that there is a head of its audit log
	head   headFile
	values *queue // the rest
}

// Open returns the store kept in dir, and creates the folder (mode 0700) if
// need be. The state file itself is looked at by the first transaction.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Clock == nil {
		return nil, errors.New("internal error: the state file is opened without a clock; please report this")
	}
	if opts.Location == nil {
		opts.Location = time.UTC
	}
	opts.LockWait = cmp.Or(opts.LockWait, LockWait)
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	bolt := newBoltFile(dir, opts)
	file := &queue{medium: bolt, loc: opts.Location}
	s := &Store{opts: opts, file: file, head: headFile{path: filepath.Join(dir, headName), bolt: bolt}, values: file}
	file.note = s.head.note
	if opts.Remote != nil {
		shared, err := newRemote(dir, opts.Remote, opts.Clock)
		if err != nil {
			return nil, err
		}
		s.values = &queue{medium: shared, loc: opts.Location}
	}
	return s, nil
}

// Close waits for transactions that have begun and frees what is open.
func (s *Store) Close() error {
	err := errors.Join(s.head.close(), s.file.close())
	if s.values != s.file {
		err = errors.Join(err, s.values.close())
	}
	return err
}

// checkFolder makes sure that no other user can replace what is in the folder.
func checkFolder(dir string) error {
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
	if err := owner.Check(info, owner.Write); err != nil {
		return &Error{Kind: ErrExposed, Path: dir, Err: err}
	}
	return nil
}

// uint64 keys and counters are stored big-endian.
var order = binary.BigEndian

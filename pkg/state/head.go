package state

import (
	"context"
	"errors"
)

// AdvanceHead gives next the sequence number and hash of the last entry of the
// audit log that is known here (0 and "" if there is none) and keeps what it
// returns, all in one transaction. An error of next is returned and leaves the
// head as it was.
//
// Other processes wait while next runs; that is what keeps log and head in
// step.
func (s *Store) AdvanceHead(ctx context.Context, next func(seq uint64, hash string) (uint64, string, error)) error {
	return s.file.change(ctx, func(t *tx) error {
		seq, hash, err := t.head()
		if err != nil {
			return err
		}
		seq, hash, err = next(seq, hash)
		if err != nil {
			return err
		}
		return t.setHead(seq, hash)
	})
}

// Head returns the sequence number and hash of the last entry of the audit log
// that is known here.
func (s *Store) Head(ctx context.Context) (seq uint64, hash string, err error) {
	err = s.file.look(ctx, func(t *tx) (err error) {
		seq, hash, err = t.head()
		return err
	})
	return seq, hash, err
}

func (t *tx) head() (uint64, string, error) {
	b := t.get(limitsPlace, headKey)
	if b == nil {
		return 0, "", nil
	}
	if len(b) < 8 {
		return 0, "", &Error{Kind: ErrCorrupt, Path: fileName, Err: errors.New("audit head is cut short")}
	}
	return order.Uint64(b), string(b[8:]), nil
}

func (t *tx) setHead(seq uint64, hash string) error {
	return t.put(limitsPlace, headKey, append(order.AppendUint64(nil, seq), hash...))
}

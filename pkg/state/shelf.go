package state

import (
	"context"

	bolt "go.etcd.io/bbolt"
)

// A Shelf is a part of the state file in which another package keeps records of
// its own: values by key, in groups by name. It is good for one transaction.
type Shelf struct {
	t    *tx
	root *bolt.Bucket // nil if nothing was ever put there
	name []byte

	changed bool // by Put or Drop
}

// Shelf runs fn on a part of the state file, in one transaction. What fn puts
// there is kept unless it returns an error, which it may return only before it
// has put anything. Where fn changes nothing, nothing is written.
func (s *Store) Shelf(ctx context.Context, name string, fn func(*Shelf) error) error {
	return s.read(ctx, func(t *tx) error {
		sh := newShelf(t, name)
		err := fn(sh)
		if err == nil && sh.changed {
			err = s.restamp(name)
		}
		return err
	})
}

// LookShelf is [Store.Shelf] for a fn that changes nothing. It works on a folder
// that cannot be written to.
func (s *Store) LookShelf(ctx context.Context, name string, fn func(*Shelf) error) error {
	return s.look(ctx, func(t *tx) error { return fn(newShelf(t, name)) })
}

func newShelf(t *tx, name string) *Shelf {
	return &Shelf{t: t, root: t.Bucket([]byte(name)), name: []byte(name)}
}

// group returns the bucket of a group, or nil if there is none.
func (sh *Shelf) group(name []byte) *bolt.Bucket {
	if sh.root == nil {
		return nil
	}
	return sh.root.Bucket(name)
}

// Groups calls fn with the name of each group, until it returns an error.
func (sh *Shelf) Groups(fn func(name []byte) error) error {
	if sh.root == nil {
		return nil
	}
	return sh.root.ForEachBucket(fn)
}

// Get returns a value, or nil if there is none. It is good until the
// transaction ends.
func (sh *Shelf) Get(group, key []byte) []byte {
	if b := sh.group(group); b != nil {
		return b.Get(key)
	}
	return nil
}

// Each calls fn with the keys and values of a group, in the order of the keys.
// They are good until the transaction ends.
func (sh *Shelf) Each(group []byte, fn func(key, value []byte) error) error {
	if b := sh.group(group); b != nil {
		return b.ForEach(fn)
	}
	return nil
}

// Put keeps a value; nil removes what was there.
func (sh *Shelf) Put(group, key, value []byte) (err error) {
	if sh.root == nil {
		if sh.root, err = sh.t.CreateBucketIfNotExists(sh.name); err != nil {
			return err
		}
	}
	b, err := sh.root.CreateBucketIfNotExists(group)
	if err != nil {
		return err
	}
	sh.t.changed, sh.changed = true, true
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, value)
}

// Drop removes a group, if there is one.
func (sh *Shelf) Drop(group []byte) error {
	if sh.group(group) == nil {
		return nil
	}
	sh.t.changed, sh.changed = true, true
	return sh.root.DeleteBucket(group)
}

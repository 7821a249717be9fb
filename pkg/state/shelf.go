package state

import "context"

// A Shelf is a part of the state in which another package stores records: values by key, in named
// groups. It is valid for one transaction.
type Shelf struct {
	t    *tx
	name string

	changed bool // by Put or Drop
}

// Shelf runs fn on a part of the state, in one transaction; fn may run several times, and the last run
// counts. Its writes are stored unless it returns an error, which it may do only before it writes. If
// fn writes nothing, nothing is stored. wants are the values that fn usually reads, which a shared
// store then fetches at once.
func (s *Store) Shelf(ctx context.Context, name string, fn func(*Shelf) error, wants ...Want) error {
	return s.values.read(ctx, func(t *tx) error {
		sh := &Shelf{t: t, name: name}
		err := fn(sh)
		if err == nil && sh.changed {
			err = t.restamp(name)
		}
		return err
	}, wanted(name, wants)...)
}

// LookShelf is [Store.Shelf] for an fn that writes nothing. It works on a read-only folder.
func (s *Store) LookShelf(ctx context.Context, name string, fn func(*Shelf) error, wants ...Want) error {
	return s.values.look(ctx, func(t *tx) error { return fn(&Shelf{t: t, name: name}) }, wanted(name, wants)...)
}

// A Want names a value of a group.
type Want struct{ Group, Key []byte }

func wanted(shelf string, wants []Want) (out []want) {
	for _, w := range wants {
		out = append(out, want{place{shelf, string(w.Group)}, string(w.Key)})
	}
	return out
}

func (sh *Shelf) place(group []byte) place { return place{sh.name, string(group)} }

// Groups calls fn with the name of each group and its value of key, nil if it has none. It stops at an
// error of fn.
func (sh *Shelf) Groups(key []byte, fn func(name, value []byte) error) error {
	return sh.t.groups(sh.name, key, fn)
}

// Get returns a value, or nil if there is none. It is valid until the transaction ends.
func (sh *Shelf) Get(group, key []byte) []byte { return sh.t.get(sh.place(group), key) }

// Each calls fn with the keys and values of a group, in key order. They are valid until the
// transaction ends.
func (sh *Shelf) Each(group []byte, fn func(key, value []byte) error) error {
	return sh.t.each(sh.place(group), fn)
}

// Put stores a value; nil removes the key.
func (sh *Shelf) Put(group, key, value []byte) error {
	sh.t.changed, sh.changed = true, true
	return sh.t.put(sh.place(group), key, value)
}

// Drop removes a group, if there is one.
func (sh *Shelf) Drop(group []byte) error {
	sh.t.changed, sh.changed = true, true
	return sh.t.drop(sh.place(group))
}
